/* SPDX-License-Identifier: MIT */
/* sdlf train and eval: what is printed, kept and logged; stopping and going on gives the same weights. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

#define SMALL "--net", small_network(), "--data", "digits:600,3", "--calculator", "reference"

/* The eight digits after the last "weights " of the output. */
static const char *last_hash(const program *p)
{
    static char hashes[4][9];
    static int next;
    const char *at = NULL;
    for (const char *found = p->out; (found = strstr(found, "weights ")); found++) at = found + strlen("weights ");
    char *hash = hashes[next++ % 4];
    snprintf(hash, sizeof hashes[0], "%.8s", at ? at : "none");
    return hash;
}

static void trains_and_says_so(void)
{
    const char *out = test_path("first.safetensors");
    const program *p = SDLF(0, "train", SMALL, "--epochs", "2", "--out", out, "--confusion");
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(p, "sdlf 0.");
    CHECK_SAYS(p, "reference:");
    CHECK_SAYS(p, "data   digits (procedural, seed 3)  600 train  100 test  1x28x28\n");
    CHECK_SAYS(p, "net    small  970 parameters");
    CHECK_SAYS(p, "all of it allocated now");
    CHECK_SAYS(p, "epoch 1/2  loss ");
    CHECK_SAYS(p, "epoch 2/2  loss ");
    CHECK_SAYS(p, "  test ");
    CHECK_SAYS(p, "class  samples  precision");
    CHECK_SAYS(p, "true  ");
    CHECK_SAYS(p, "for 2 epochs");
    CHECK_SAYS(p, "continue with --resume");
    CHECK(strstr(p->out, "\033[") == NULL);
    struct stat file;
    CHECK(stat(out, &file) == 0 && file.st_size > 970 * 4);
}

static void says_nothing_when_quiet(void)
{
    const program *p = SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--quiet");
    CHECK_TEXT(p->out, "");
    CHECK_TEXT(p->err, "");
}

/* What is left alone is told, kept in files, and listed in the log. */
static void freezes_what_it_is_told(void)
{
    const char *out = test_path("frozen.safetensors"), *log = test_path("frozen.log");
    const program *p = SDLF(0, "train", SMALL, "--epochs", "1", "--no-save");
    CHECK(strstr(p->out, "trains") == NULL);
    p = SDLF(0, "train", SMALL, "--epochs", "1", "--out", out, "--log", log, "--freeze", "fully_connected.*");
    CHECK_SAYS(p, "trains 2 parameters (170 numbers); left alone 2: fully_connected.weight, fully_connected.bias\n");
    json_t *start = json_loadf(fopen(log, "r"), JSON_DISABLE_EOF_CHECK, NULL);
    json_t *first = json_array_get(json_object_get(start, "trained"), 0);
    CHECK_TEXT(json_string_value(json_object_get(first, "name")), "fully_connected.weight");
    CHECK(json_is_false(json_object_get(first, "trained")));
    CHECK_EQUAL((int64_t)json_array_size(json_object_get(start, "trained")), 4);
    json_decref(start);
    p = SDLF(0, "train", "--resume", out, "--epochs", "2", "--out", test_path("on.safetensors"));
    CHECK_SAYS(p, "trains 2 parameters (170 numbers); left alone 2: ");
    p = SDLF(1, "train", "--resume", out, "--epochs", "2", "--no-save", "--unfreeze", "fully_connected.bias");
    CHECK(strstr(p->err, "the checkpoint lacks state 0 of sgd for fully_connected.bias") != NULL);
    p = SDLF(2, "train", SMALL, "--no-save", "--freeze", "fully_connected.wait");
    CHECK(strstr(p->err, "--freeze: network 'small' has no parameter 'fully_connected.wait'") != NULL);
    p = SDLF(2, "train", SMALL, "--no-save", "--unfreeze", "conv*");
    CHECK(strstr(p->err, "has no parameter 'conv*' that can be trained") != NULL);
}

static void one_seed_one_result(void)
{
    const char *first = last_hash(SDLF(0, "train", SMALL, "--epochs", "2", "--no-save", "--seed", "7"));
    const char *again = last_hash(SDLF(0, "train", SMALL, "--epochs", "2", "--no-save", "--seed", "7"));
    const char *other = last_hash(SDLF(0, "train", SMALL, "--epochs", "2", "--no-save", "--seed", "8"));
    CHECK_TEXT(again, first);
    CHECK(strcmp(other, first) != 0);
}

/* The calculator that runs unless another is asked for, at each level that this machine has: the same bits with any number of threads,
 * whether training went on with another number of them or not. */
static void threads_and_stops_change_nothing(void)
{
#define LENET "train", "--net", "lenet5", "--data", "digits:1200", "--schedule", "constant"
    static const char *const levels[] = {"plain", "neon", "avx2", "avx512"}, *const threads[] = {"1", "2", "3"};
    char file[512];
    snprintf(file, sizeof file, "%s", test_path("level.safetensors"));
    for (int level = 0; level < 4; level++) {
        if (!test_set_level(levels[level])) continue;
        SDLF(0, LENET, "--epochs", "1", "--threads", "1", "--out", file);
        const char *expected = last_hash(SDLF(0, "train", "--resume", file, "--epochs", "2", "--threads", "3"));
        for (int i = 0; i < 3; i++)
            CHECK_TEXT(last_hash(SDLF(0, LENET, "--epochs", "2", "--no-save", "--threads", threads[i])), expected);
        unlink(file);
    }
    test_set_level(NULL);
}

/* Forward passes here and backward passes there; one layer elsewhere; nothing fused. */
static void placement_is_heard(void)
{
    const program *p = SDLF(0, "train", "--net", small_network(), "--data", "digits:600", "--epochs", "1", "--no-save",
                            "--forward", "cpu", "--backward", "reference", "--place",
                            "fully_connected=forward:reference,backward:cpu", "--no-fusion");
    CHECK_SAYS(p, "cpu: ");
    CHECK_SAYS(p, "reference: ");
    CHECK_SAYS(p, "epoch 1/1");
    p = SDLF(0, "info", "--net", small_network(), "--place", "fully_connected_2=reference");
    CHECK_SAYS(p, "  on ");
    CHECK_SAYS(p, "  reference");
    SDLF(0, "train", "--net", small_network(), "--data", "digits:600", "--epochs", "1", "--no-save", "--place",
         "loss=forward:reference,backward:cpu"); /* the loss that training adds; testing has none */
    p = SDLF(0, "info", "--net", "lenet5", "--no-fusion", "--conv-algorithm", "cpu:im2col");
    CHECK_TEXT(p->err, "");
    p = SDLF(0, "info", "--net", "lenet5", "--conv-algorithm", "cpu:im2col"); /* all are fused */
    CHECK_SAYS(p, "sdlf info: warning: --conv-algorithm cpu:im2col: no convolution here is computed by it");
    CHECK_SAYS(SDLF(2, "info", "--net", "lenet5", "--conv-algorithm", "abacus:im2col"),
               "nothing of this plan runs on 'abacus'");
}

/* With all options that a checkpoint must carry. */
#define OPTIONS                                                                                                        \
    "--batch", "48", "--seed", "5", "--optimizer", "adamw", "--weight-decay", "0.01", "--schedule", "step", "--every", \
        "2", "--learning-rate", "0.01", "--label-smoothing", "0.1", "--clip-norm", "1", "--augment-shift", "2"

static void resuming_changes_nothing(void)
{
    const char *whole = test_path("whole.safetensors"), *half = test_path("half.safetensors");
    const char *expected = last_hash(SDLF(0, "train", SMALL, OPTIONS, "--epochs", "4", "--out", whole));
    SDLF(0, "train", SMALL, OPTIONS, "--epochs", "2", "--out", half);
    const program *p = SDLF(0, "train", "--resume", half, "--epochs", "4", "--calculator", "reference");
    CHECK_SAYS(p, "data   digits (procedural, seed 3)"); /* the checkpoint's own data, batch and options */
    CHECK_SAYS(p, "epoch 3/4");
    CHECK(strstr(p->out, "epoch 2/4") == NULL);
    CHECK_TEXT(last_hash(p), expected);
}

static void resuming_refuses_what_cannot_be(void)
{
    const char *done = test_path("done.safetensors");
    SDLF(0, "train", SMALL, "--epochs", "1", "--out", done);
    CHECK_SAYS(SDLF(2, "train", "--resume", done), "has had its 1 epoch; --epochs 2 would add as many again");
    CHECK_SAYS(SDLF(2, "train", "--resume", done, "--net", "mlp"), "--net has no place beside --resume");
    CHECK_SAYS(SDLF(1, "train", "--resume", test_path("none.safetensors")), "none.safetensors");
    CHECK_SAYS(SDLF(2, "train", "--resume", done, "--epochs", "2", "--batch", "3", "--calculator", "reference"),
               "batch");
}

/* Commands that are offered can be copied back into a shell, and a network's name in any language names its file. */
static void names_with_spaces_and_accents(void)
{
    const char *out = test_path("two words.safetensors");
    char command[1024];
    snprintf(command, sizeof command, "continue with --resume '%s' --epochs 2", out);
    CHECK_SAYS(SDLF(0, "train", SMALL, "--epochs", "1", "--out", out), command);

    static const char net[] = "{\"name\": \"n\u00e4he 1\", \"input\": {\"name\": \"x\", \"shape\": [1, 28, 28]},"
                              " \"layers\": [{\"type\": \"fully_connected\", \"units\": 10}]}";
    const char *path = test_path("net.json");
    test_write_file(path, net, sizeof net - 1);
    static program p;
    p = (program){.folder = test_path("")};
    program_run(&p, (const char *const[]){"train", "--net", path, "--data", "digits:100", "--epochs", "1", NULL});
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "saved  n\u00e4he_1.safetensors");
}

static void old_weights_are_not_written_over_by_default(void)
{
    static program p;
    p = (program){.folder = test_path("")};
    const char *const words[] = {"train", SMALL, "--epochs", "1", NULL};
    program_run(&p, words);
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "saved  small.safetensors");
    program_run(&p, words);
    CHECK_EQUAL(p.code, 2);
    CHECK_SAYS(&p, "small.safetensors is there already; go on from it with --resume");
}

/* The first line of a log; NULL where there is none. */
static json_t *start_of(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return NULL;
    json_t *start = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(file);
    CHECK_TEXT(json_string_value(json_object_get(start, "event")), "start");
    return start;
}

/* The rate that a run begins with, by its log. */
static double rate_with(const char *batch, const char *optimizer)
{
    const char *path = test_path("rate.jsonl");
    SDLF(0, "train", "--net", small_network(), "--data", "digits:100", "--no-test", "--epochs", "1", "--no-save",
         "--batch", batch, "--optimizer", optimizer, "--log", path);
    json_t *start = start_of(path);
    double rate = json_number_value(json_object_get(start, "learning_rate"));
    json_decref(start);
    return rate;
}

static void small_batches_take_smaller_rates(void)
{
    CHECK_CLOSE(rate_with("64", "sgd"), 0.05, 1e-8);
    CHECK_CLOSE(rate_with("100", "sgd"), 0.05, 1e-8);
    CHECK_CLOSE(rate_with("16", "sgd"), 0.0125, 1e-8);
    CHECK_CLOSE(rate_with("16", "adam"), 0.001, 1e-9);
}

/* Every line of the log is an object; the events come in order. */
static void logs_json_lines(void)
{
    const char *path = test_path("log.jsonl");
    SDLF(0, "train", SMALL, "--epochs", "2", "--no-save", "--log", path, "--log-steps", "4");
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return;
    char line[65536];
    int starts = 0, steps = 0, epochs = 0, ends = 0, count = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL);
        if (!CHECK(json_is_object(object))) break;
        const char *event = json_string_value(json_object_get(object, "event"));
        starts += strcmp(event, "start") == 0 && count == 0;
        steps += strcmp(event, "step") == 0;
        if (strcmp(event, "epoch") == 0) {
            CHECK_EQUAL(json_integer_value(json_object_get(object, "epoch")), ++epochs);
            CHECK_EQUAL(json_integer_value(json_object_get(object, "samples")), 600);
            CHECK_EQUAL((int64_t)json_string_length(json_object_get(object, "weights")), 8);
            CHECK(json_is_number(json_object_get(object, "test_accuracy")));
        }
        if (strcmp(event, "end") == 0) {
            ends++;
            CHECK_TEXT(json_string_value(json_object_get(object, "status")), "ok");
            json_t *test = json_object_get(object, "test");
            CHECK_EQUAL(json_integer_value(json_object_get(test, "samples")), 100);
            CHECK_EQUAL((int64_t)json_array_size(json_object_get(test, "classes")), 10);
        }
        json_decref(object);
        count++;
    }
    fclose(file);
    CHECK_EQUAL(starts, 1);
    CHECK_EQUAL(steps, 4); /* 10 steps an epoch: the 4th and 8th of each */
    CHECK_EQUAL(epochs, 2);
    CHECK_EQUAL(ends, 1);
}

/* Each option that --help lists, so that a new one cannot be left out. */
static void the_log_names_every_option(void)
{
    const char *path = test_path("options.jsonl");
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", path);
    json_t *start = start_of(path);
    const program *p = SDLF(0, "train", "--help");
    int count = 0;
    for (const char *at = p->out; (at = strstr(at, "--")) != NULL;) {
        bool begins_line = strncmp(at - 3, "\n  ", 3) == 0 || (at[-2] == ',' && strncmp(at - 7, "\n  -", 4) == 0);
        at += 2;
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-"), at);
        for (char *c = key; *c; c++) *c = *c == '-' ? '_' : *c;
        if (!begins_line || strcmp(key, "config") == 0 || strcmp(key, "help") == 0)
            continue; /* what every command takes */
        count++;
        if (!CHECK(json_object_get(start, key) != NULL)) printf("  %s\n", key);
    }
    CHECK(count > 45);
    json_decref(start);
}

static void check_number(const json_t *start, const char *key, double expected)
{
    const json_t *value = json_object_get(start, key);
    if (!CHECK(json_is_number(value)) || !CHECK_CLOSE(json_number_value(value), expected, 1e-6 * expected))
        printf("  %s\n", key);
}

/* What was given, what holds by default, and what a checkpoint has brought. */
static void the_log_says_what_was_trained_with(void)
{
    const char *weights = test_path("logged.safetensors"), *first = test_path("first.jsonl"),
               *second = test_path("second.jsonl");
    SDLF(0, "train", SMALL, OPTIONS, "--decay-all", "--epochs", "1", "--out", weights, "--log", first);
    SDLF(0, "train", "--resume", weights, "--epochs", "2", "--calculator", "reference", "--log", second);
    const char *const paths[] = {first, second};
    for (int i = 0; i < 2; i++) {
        json_t *start = start_of(paths[i]);
        check_number(start, "batch", 48);
        check_number(start, "weight_decay", 0.01);
        check_number(start, "beta2", 0.999);
        check_number(start, "every", 2);
        check_number(start, "gamma", 0.1);
        check_number(start, "label_smoothing", 0.1);
        check_number(start, "clip_norm", 1);
        check_number(start, "augment_shift", 2);
        check_number(start, "learning_rate", 0.01);
        CHECK_TEXT(json_string_value(json_object_get(start, "optimizer")), "adamw");
        CHECK_TEXT(json_string_value(json_object_get(start, "schedule")), "step");
        CHECK_TEXT(json_string_value(json_object_get(start, "forward")), "reference");
        CHECK(json_is_true(json_object_get(start, "decay_all")));
        CHECK(json_is_null(json_object_get(start, "momentum")) &&
              json_is_null(json_object_get(start, "start_divisor")));
        json_decref(start);
    }
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", first);
    json_t *start = start_of(first);
    check_number(start, "momentum", 0.9);
    check_number(start, "warmup", 0.3);
    check_number(start, "start_divisor", 25);
    CHECK(json_is_null(json_object_get(start, "clip_norm")) && json_is_null(json_object_get(start, "beta1")));
    json_decref(start);
}

/* fast_cnn's own options hold unless they are given, or another optimizer is; the log says which they are. */
static void a_network_brings_its_options(void)
{
    const char *path = test_path("own.jsonl"), *weights = test_path("own.safetensors");
#define FAST "train", "--net", "fast_cnn", "--data", "digits:200", "--no-test"
    const program *p = SDLF(0, FAST, "--epochs", "1", "--seed", "3", "--out", weights, "--log", path);
    json_t *start = start_of(path);
    sdlf_trainer_options own = {.batch = 0};
    CHECK(sdlf_network_builtin_training(&own, "fast_cnn"));
    check_number(start, "batch", (double)own.batch);
    check_number(start, "learning_rate", (double)own.schedule.peak);
    check_number(start, "label_smoothing", (double)own.label_smoothing);
    check_number(start, "weight_decay", own.optimizer.options.sgd.weight_decay);
    check_number(start, "augment_shift", (double)own.augment.shift);
    CHECK(json_is_string(json_object_get(start, "own_options")));
    CHECK_SAYS(p, "with   fast_cnn's own --batch ");
    CHECK_SAYS(p, json_string_value(json_object_get(start, "own_options")));
    json_decref(start);

    SDLF(0, FAST, "--epochs", "1", "--no-save", "--log", path, "--batch", "64"); /* one of them: it alone is another */
    start = start_of(path);
    check_number(start, "batch", 64);
    check_number(start, "learning_rate", (double)own.schedule.peak);
    check_number(start, "weight_decay", own.optimizer.options.sgd.weight_decay);
    json_decref(start);

    CHECK_SAYS(SDLF(0, FAST, "--class-weights", "balanced", "--dry-run"), "--class-weights balanced"); /* a text */
    p = SDLF(0, "train", "--net", "cifar_fast", "--data", "digits:200", "--lr-scale", "head=0.5", "--dry-run");
    CHECK_SAYS(p, "--lr-scale head=0.5");
    CHECK_SAYS(p, "--decay 'head=0.19"); /* the network's own */

    SDLF(0, FAST, "--epochs", "1", "--no-save", "--log", path, "--optimizer", "sgd"); /* all are the usual ones */
    start = start_of(path);
    check_number(start, "learning_rate", 0.05);
    CHECK(json_is_null(json_object_get(start, "own_options")));
    CHECK_CLOSE(json_number_value(json_object_get(start, "weight_decay")), 0, 0);
    json_decref(start);

    SDLF(0, "train", "--resume", weights, "--epochs", "2", "--no-test", "--log", path); /* the checkpoint brings them */
    SDLF(0, "train", SMALL, "--epochs", "1", "--no-save", "--log", path);
    start = start_of(path);
    CHECK(json_is_null(json_object_get(start, "own_options")));
    json_decref(start);
}

static void evaluates_what_was_trained(void)
{
    const char *out = test_path("eval.safetensors");
    const program *p = SDLF(0, "train", SMALL, "--epochs", "3", "--out", out);
    char test[64] = "";
    const char *at = strstr(p->out, "\ntest ");
    if (CHECK(at != NULL)) snprintf(test, sizeof test, "%.*s", (int)strcspn(at + 1, "("), at + 1);
    test[strcspn(test, "\n")] = '\0';
    p = SDLF(0, "eval", "--weights", out, "--calculator", "reference");
    CHECK_SAYS(p, test); /* the same figures, from the file */
    CHECK_SAYS(p, "digits (procedural, seed 3)  100 test");
    CHECK_SAYS(SDLF(0, "eval", "--weights", out, "--calculator", "reference", "--train-half"), "600 train");

    p = SDLF(0, "eval", "--weights", out, "--calculator", "reference", "--json", "--data", "digits:60,4");
    json_t *object = json_loads(p->out, 0, NULL);
    CHECK_EQUAL(json_integer_value(json_object_get(object, "samples")), 10);
    CHECK_EQUAL((int64_t)json_array_size(json_object_get(object, "confusion")), 10);
    json_decref(object);
}

/* A terminal gets a bar that redraws itself, and colours unless NO_COLOR says otherwise. */
static void draws_on_a_terminal(void)
{
    static program p;
    p = (program){.terminal = true};
    setenv("TERM", "xterm-256color", 1);
    unsetenv("NO_COLOR");
    const char *const words[] = {"train", "--net",     small_network(), "--data",    "digits:6000", "--epochs",
                                 "1",     "--no-save", "--calculator",  "reference", NULL};
    program_run(&p, words);
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "\r");
    CHECK_SAYS(&p, "\033[K");
    CHECK_SAYS(&p, "100%");
    CHECK_SAYS(&p, "###");
    CHECK_SAYS(&p, "\033[1m");
    setenv("NO_COLOR", "1", 1);
    program_run(&p, words);
    CHECK_SAYS(&p, "\033[K");
    CHECK(strstr(p.out, "\033[1m") == NULL && strstr(p.out, "\033[32m") == NULL);
    unsetenv("NO_COLOR");
}

int main(void)
{
    RUN(trains_and_says_so);
    RUN(says_nothing_when_quiet);
    RUN(freezes_what_it_is_told);
    RUN(one_seed_one_result);
    RUN(threads_and_stops_change_nothing);
    RUN(placement_is_heard);
    RUN(resuming_changes_nothing);
    RUN(resuming_refuses_what_cannot_be);
    RUN(names_with_spaces_and_accents);
    RUN(old_weights_are_not_written_over_by_default);
    RUN(small_batches_take_smaller_rates);
    RUN(logs_json_lines);
    RUN(the_log_names_every_option);
    RUN(the_log_says_what_was_trained_with);
    RUN(a_network_brings_its_options);
    RUN(evaluates_what_was_trained);
    RUN(draws_on_a_terminal);
    return test_summary();
}
