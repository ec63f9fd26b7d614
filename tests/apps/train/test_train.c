/* SPDX-License-Identifier: MIT */
/* sdlf train and eval: their output and files (the log: test_log.c); stopping and resuming gives the same weights. */
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

/* NaN weights are kept for inspection, and the run is a failure. */
static void fails_where_it_goes_astray(void)
{
    const char *out = test_path("astray.safetensors");
    CHECK_SAYS(SDLF(1, "train", SMALL, "--epochs", "1", "--batch", "600", "--lr-scale", "*=1e38", "--out", out),
               "training diverged in the last step: there are scores");
    CHECK(access(out, R_OK) == 0);
    CHECK_SAYS(SDLF(1, "train", SMALL, "--epochs", "1", "--batch", "600", "--lr-scale", "*=1e38", "--learning-rate",
                    "1000", "--no-test", "--no-save"),
               "training diverged in the last step: there are weights");
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

/* Frozen parameters are reported, stored in files, and listed in the log. */
static void freezes_what_it_is_told(void)
{
    const char *out = test_path("frozen.safetensors"), *log = test_path("frozen.log");
    const program *p = SDLF(0, "train", SMALL, "--epochs", "1", "--no-save");
    CHECK(strstr(p->out, "trains") == NULL);
    p = SDLF(0, "train", SMALL, "--epochs", "1", "--out", out, "--log", log, "--freeze", "fully_connected.*");
    CHECK_SAYS(p, "trains 2 parameters (170 numbers); not trained 2: fully_connected.weight, fully_connected.bias\n");
    json_t *start = json_loadf(fopen(log, "r"), JSON_DISABLE_EOF_CHECK, NULL);
    json_t *first = json_array_get(json_object_get(start, "trained"), 0);
    CHECK_TEXT(json_string_value(json_object_get(first, "name")), "fully_connected.weight");
    CHECK(json_is_false(json_object_get(first, "trained")));
    CHECK_EQUAL((int64_t)json_array_size(json_object_get(start, "trained")), 4);
    json_decref(start);
    p = SDLF(0, "train", "--resume", out, "--epochs", "2", "--out", test_path("on.safetensors"));
    CHECK_SAYS(p, "trains 2 parameters (170 numbers); not trained 2: ");
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

/* The default calculator, at each level that this machine has: the same bits with any number of threads, even if
 * training resumes with another number. */
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

/* Forward and backward passes on different calculators; one layer elsewhere; nothing fused. */
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
               "no layer of this plan runs on calculator 'abacus'");
}

/* With all options that a checkpoint must store. */
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
    CHECK_SAYS(SDLF(2, "train", "--resume", done), "has done its 1 epoch; --epochs 2 would add as many again");
    CHECK_SAYS(SDLF(2, "train", "--resume", done, "--net", "mlp"), "--net cannot be combined with --resume");
    CHECK_SAYS(SDLF(1, "train", "--resume", test_path("none.safetensors")), "none.safetensors");
    CHECK_SAYS(SDLF(2, "train", "--resume", done, "--epochs", "2", "--batch", "3", "--calculator", "reference"),
               "batch");
    CHECK_SAYS(
        SDLF(2, "train", "--resume", done, "--epochs", "2", "--learning-rate", "0.3", "--calculator", "reference"),
        "(learning-rate), but 0.3 is asked for");
    const char *part = test_path("part.safetensors"); /* that stopped early: the command it prints must work */
    SDLF(0, "train", SMALL, "--epochs", "5", "--learning-rate", "1e-12", "--patience", "1", "--keep", "last", "--out",
         part);
    CHECK_SAYS(SDLF(2, "train", "--resume", part, "--epochs", "1"),
               "epochs of its 5; use --epochs 5, or leave it out, to continue");
    SDLF(0, "train", "--resume", part, "--epochs", "5", "--calculator", "reference");
}

/* The criterion for the best epoch is the checkpoint's, unless it is given again: a plain --resume keeps the best. */
static void resuming_keeps_the_best(void)
{
    const char *path = test_path("best.safetensors");
    SDLF(0, "train", SMALL, "--epochs", "2", "--schedule", "constant", "--keep", "best", "--patience", "7", "--out",
         path);
    const program *p = SDLF(0, "train", "--resume", path, "--epochs", "4", "--calculator", "reference", "--dry-run");
    CHECK_SAYS(p, "\nkeep = best\n");
    CHECK_SAYS(p, "\npatience = 7\n");
    CHECK_SAYS(
        SDLF(0, "train", "--resume", path, "--epochs", "4", "--keep", "last", "--calculator", "reference", "--dry-run"),
        "\nkeep = last\n");
}

/* Suggested commands can be copied into a shell, and a network's name in any language is used for its file. */
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
    CHECK_SAYS(&p, "small.safetensors exists; continue from it with --resume");
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
    RUN(fails_where_it_goes_astray);
    RUN(says_nothing_when_quiet);
    RUN(freezes_what_it_is_told);
    RUN(one_seed_one_result);
    RUN(threads_and_stops_change_nothing);
    RUN(placement_is_heard);
    RUN(resuming_changes_nothing);
    RUN(resuming_refuses_what_cannot_be);
    RUN(resuming_keeps_the_best);
    RUN(names_with_spaces_and_accents);
    RUN(old_weights_are_not_written_over_by_default);
    RUN(evaluates_what_was_trained);
    RUN(draws_on_a_terminal);
    return test_summary();
}
