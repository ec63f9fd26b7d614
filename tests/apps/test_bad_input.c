/* SPDX-License-Identifier: MIT */
/* Invalid user input: each time an exit code, one clear line, and nothing lost. */
#include "testing.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

#define CALCULATOR "--calculator", "reference"
#define SMALL      "--net", small_network(), "--data", "digits:600,3", CALCULATOR

/* Check a failure: the exit code, one line on standard error with `text`, and with --json no data on stdout. */
#define CHECK_REFUSED(code, text, ...) check_refused(__LINE__, (code), (text), (const char *const[]){__VA_ARGS__, NULL})
static void check_refused(int line, int code, const char *text, const char *const *words)
{
    const program *p = sdlf_run(__FILE__, line, code, words);
    program_check_says(__FILE__, line, p, text);
    bool error = strncmp(p->err, "sdlf ", 5) == 0 && strstr(p->err, ": error: ");
    if (!test_check(error, __FILE__, line, "an error is said")) printf("  said: %s\n", p->err);
}

static const char *file_with(const char *name, const char *text)
{
    const char *path = test_path(name);
    test_write_file(path, text, strlen(text));
    return path;
}

/* ---- networks ---- */

#define HEAD "{\"name\": \"bad\", \"input\": {\"name\": \"x\", \"shape\": [1, 28, 28]}, \"layers\": [\n"

static void networks(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"{\"name\": ", "bad.json"},
        {HEAD "{\"type\": \"relu\", \"colour\": 3}]}", "colour"},
        {HEAD "{\"type\": \"conv2d\", \"filters\": \"many\", \"kernel\": 3}]}", "filters"},
        {HEAD "{\"type\": \"conv2d\", \"filters\": 4, \"kernel\": 99}]}", "conv2d"},
        {HEAD "{\"type\": \"convolution\"}]}", "conv2d"}, /* the message lists valid ones */
        {HEAD "{\"type\": \"relu\", \"name\": \"a\", \"inputs\": [\"b\"]},\n{\"type\": \"relu\", \"name\": \"b\", "
              "\"inputs\": [\"a\"]}]}",
         "bad.json:2"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *path = file_with("bad.json", bad[i].text);
        CHECK_REFUSED(1, bad[i].message, "train", "--net", path, "--data", "digits:600", CALCULATOR, "--no-save");
        CHECK_REFUSED(1, bad[i].message, "info", "--net", path, CALCULATOR);
    }
    CHECK_REFUSED(1, "nowhere.json", "train", "--net", "/nowhere.json", "--no-save", CALCULATOR);
    const char *five = file_with("five.json", HEAD "{\"type\": \"fully_connected\", \"units\": 5}]}");
    CHECK_REFUSED(1, "5", "train", "--net", five, "--data", "digits:600", CALCULATOR, "--no-save");
}

/* ---- data ---- */

/* Write an IDX file of unsigned bytes with these sizes in its header (0 ends them) and `bytes` bytes of data. */
static void write_idx(const char *folder, const char *name, unsigned magic, const unsigned *sizes, int bytes, int value)
{
    unsigned char header[16] = {0, 0, 8, (unsigned char)magic};
    int count = 4;
    for (; *sizes; sizes++) {
        for (int shift = 24; shift >= 0; shift -= 8) header[count++] = (unsigned char)(*sizes >> shift);
    }
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    fwrite(header, 1, (size_t)count, file);
    for (int i = 0; i < bytes; i++) fputc(value, file);
    fclose(file);
}

/* Write a folder in MNIST's form with this training half. Returns the --data that names it. */
static const char *mnist_with(const char *name, unsigned magic, unsigned images, int pixels, unsigned labels, int label)
{
    static char data[512];
    char folder[400];
    snprintf(folder, sizeof folder, "%s", test_path(name));
    mkdir(folder, 0777);
    for (int half = 0; half < 2; half++) {
        const char *images_name = half ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte";
        const char *labels_name = half ? "t10k-labels-idx1-ubyte" : "train-labels-idx1-ubyte";
        write_idx(folder, images_name, magic, (const unsigned[]){images, 28, 28, 0}, pixels, 9);
        write_idx(folder, labels_name, 1, (const unsigned[]){labels, 0}, (int)labels, label);
    }
    snprintf(data, sizeof data, "mnist:%s", folder);
    return data;
}

static void data_sets(void)
{
    enum { IMAGE = 28 * 28 };
    char net[512]; /* there are more paths below than test_path keeps */
    snprintf(net, sizeof net, "%s", small_network());
#define TRAIN_ON(data) "train", "--net", net, "--no-save", CALCULATOR, "--data", data
    SDLF(0, TRAIN_ON(mnist_with("good", 3, 20, 20 * IMAGE, 20, 1)));
    CHECK_REFUSED(1, "train-images-idx3-ubyte", TRAIN_ON(mnist_with("truncated", 3, 20, 19 * IMAGE, 20, 1)));
    CHECK_REFUSED(1, "train-images-idx3-ubyte", TRAIN_ON(mnist_with("oversized", 3, 20, 21 * IMAGE, 20, 1)));
    CHECK_REFUSED(1, "train-images-idx3-ubyte", TRAIN_ON(mnist_with("magic", 2, 20, 20 * IMAGE, 20, 1)));
    CHECK_REFUSED(1, "train-images-idx3-ubyte", TRAIN_ON(mnist_with("huge", 3, 0xFFFFFFFF, 20 * IMAGE, 20, 1)));
    CHECK_REFUSED(1, "19", TRAIN_ON(mnist_with("disagree", 3, 20, 20 * IMAGE, 19, 1)));
    CHECK_REFUSED(1, "200", TRAIN_ON(mnist_with("label", 3, 20, 20 * IMAGE, 20, 200)));
    CHECK_REFUSED(1, "nowhere", TRAIN_ON("mnist:/nowhere"));
    const char *no_test = mnist_with("no_test", 3, 20, 20 * IMAGE, 20, 1);
    CHECK(unlink(test_path("no_test/t10k-labels-idx1-ubyte")) == 0);
    CHECK_REFUSED(1, "what is tested on (--no-test does without): mnist: ", TRAIN_ON(no_test));
    SDLF(0, TRAIN_ON(no_test), "--no-test");
    CHECK_REFUSED(2, "digits", TRAIN_ON("digitz"));
    CHECK_REFUSED(2, "digits", TRAIN_ON("digits:none"));
    CHECK_REFUSED(2, "digits", TRAIN_ON("digits:0"));
}

/* ---- weights ---- */

static void flip(const char *path, long at, unsigned char bits)
{
    FILE *file = fopen(path, "r+b");
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    fputc(byte ^ bits, file);
    fclose(file);
}

/* The file's weights, with one NaN. */
static void spoil(const char *path)
{
    sdlf_model *model = NULL;
    if (CHECK_OK(sdlf_model_open(&model, path))) {
        *(float *)sdlf_model_parameter(model, 0)->value.data = NAN;
        CHECK_OK(sdlf_model_save(model, path));
    }
    sdlf_model_free(model);
}

static void weights(void)
{
    const char *good = test_path("weights.safetensors");
    SDLF(0, "train", SMALL, "--epochs", "1", "--out", good);
    CHECK_REFUSED(1, "none.safetensors", "eval", "--weights", test_path("none.safetensors"), CALCULATOR);
    CHECK_REFUSED(2, "leaves only the batch open", "run", good, "--dim", "x=3", CALCULATOR);
    CHECK_REFUSED(2, "leaves only the batch open", "bench", good, "--dim", "x=3", CALCULATOR);
    CHECK_REFUSED(1, "text.safetensors", "eval", "--weights", file_with("text.safetensors", "hello, I am no weights"),
                  CALCULATOR);
    CHECK_REFUSED(1, "empty.safetensors", "eval", "--weights", file_with("empty.safetensors", ""), CALCULATOR);
    CHECK_REFUSED(1, "weights.safetensors", "eval", "--weights", good, "--net", "mlp", CALCULATOR);
    CHECK(truncate(good, 4000) == 0);
    CHECK_REFUSED(1, "weights.safetensors", "eval", "--weights", good, CALCULATOR);
    CHECK_REFUSED(1, "weights.safetensors", "train", "--resume", good, CALCULATOR);
    SDLF(0, "train", SMALL, "--epochs", "1", "--out", good);
    spoil(good);
    CHECK_REFUSED(1, "outputs that are not numbers", "eval", "--weights", good, "--data", "digits:60", CALCULATOR);
    flip(good, 7, 0x40); /* a header of 4 EB */
    CHECK_REFUSED(1, "weights.safetensors", "eval", "--weights", good, CALCULATOR);
}

/* ---- training that goes wrong ---- */

static void losses_that_are_no_numbers(void)
{
    const char *out = test_path("nan.safetensors");
    const program *p = SDLF(1, "train", "--net", "mlp", "--data", "digits:600,3", CALCULATOR, "--learning-rate", "1000",
                            "--schedule", "constant", "--out", out);
    CHECK_SAYS(p, "the loss became ");
    CHECK_SAYS(p, "at step ");
    CHECK_SAYS(p, "of epoch 1");
    CHECK(access(out, F_OK) != 0); /* no useless file was kept */
}

/* 13 MB of activations per sample: 13 TB per batch. */
static void sizes_beyond_the_machine(void)
{
    char wide[512];
    snprintf(wide, sizeof wide, "%s",
             file_with("wide.json", HEAD "{\"type\": \"conv2d\", \"filters\": 4096, \"kernel\": 1},"
                                         "{\"type\": \"global_avg_pool2d\"},"
                                         "{\"type\": \"fully_connected\", \"units\": 10}]}"));
    CHECK_REFUSED(1, "smaller --batch", "info", "--net", wide, "--batch", "1000000", CALCULATOR);
    CHECK_REFUSED(1, "smaller --batch", "train", "--net", wide, "--batch", "1000000", "--no-save", CALCULATOR);
}

/* ---- outputs ---- */

static void outputs(void)
{
    CHECK_REFUSED(1, "the folder /nowhere is not there", "train", SMALL, "--out", "/nowhere/x.safetensors");
    CHECK_REFUSED(1, "expected the name of a file, found a folder", "train", SMALL, "--out", test_path(""));
    CHECK_REFUSED(1, "cannot create a file in its folder", "train", SMALL, "--out", "/proc/x.safetensors");
    CHECK_REFUSED(1, "the log /nowhere/log cannot be written", "train", SMALL, "--no-save", "--log", "/nowhere/log");
}

/* The whole file, to compare. */
static char *contents(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *bytes = malloc(1 << 20);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* A limit on the file size simulates a full disk: the old checkpoint is unchanged, and nothing else is left beside
 * it. */
static void full_disks(void)
{
    const char *out = test_path("full.safetensors");
    SDLF(0, "train", SMALL, "--epochs", "1", "--out", out);
    size_t before_size = 0, after_size = 0;
    char *before = contents(out, &before_size);
    static program p;
    p = (program){.file_size_limit = 4096};
    program_run(&p, (const char *const[]){"train", "--resume", out, "--epochs", "2", CALCULATOR, NULL});
    CHECK_EQUAL(p.code, 1);
    CHECK_SAYS(&p, "full.safetensors");
    CHECK_SAYS(&p, "File too large");
    char *after = contents(out, &after_size);
    CHECK(before && after && before_size == after_size && memcmp(before, after, before_size) == 0);
    free(before);
    free(after);
    char command[600];
    snprintf(command, sizeof command, "test $(ls -A '%s' | grep -c full) = 1", test_path(""));
    CHECK(system(command) == 0);
    SDLF(0, "train", "--resume", out, "--epochs", "2", CALCULATOR);
}

static void standard_output_that_is_full(void)
{
    char command[1024];
    snprintf(command, sizeof command, "'%s' --help > /dev/full 2> '%s'; test $? = 1", program_path, test_path("said"));
    CHECK(system(command) == 0);
}

/* Printed text must not end up in the file that was opened first. */
static void standard_streams_that_are_closed(void)
{
    const char *log = test_path("closed.jsonl");
    char command[2048];
    snprintf(command, sizeof command,
             "'%s' train --net '%s' --data digits:200 --epochs 1 --no-save --log '%s' >&- 2>&- <&-; test $? = 1",
             program_path, small_network(), log);
    CHECK(system(command) == 0);
    snprintf(command, sizeof command, "test -s '%s' && ! grep -v '^{\"event\":.*}$' '%s'", log, log);
    CHECK(system(command) == 0);
}

int main(void)
{
    RUN(networks);
    RUN(data_sets);
    RUN(weights);
    RUN(losses_that_are_no_numbers);
    RUN(sizes_beyond_the_machine);
    RUN(outputs);
    RUN(full_disks);
    RUN(standard_output_that_is_full);
    RUN(standard_streams_that_are_closed);
    return test_summary();
}
