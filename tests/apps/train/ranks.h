/* SPDX-License-Identifier: MIT */
/* What tests of ranks share, be they processes or threads: trainings that have to come out alike with any number of
 * them. */
#ifndef SDLF_TESTS_APPS_TRAIN_RANKS_H
#define SDLF_TESTS_APPS_TRAIN_RANKS_H

#include "apps/shell.h"

enum { EPOCHS = 2 };

typedef struct curve {
    double loss[2 * EPOCHS], test[2 * EPOCHS];
    char weights[2 * EPOCHS][16];
    int epochs;
} curve;

static curve read_curve(const char *path)
{
    curve found = {.epochs = 0};
    static char line[1 << 16];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && found.epochs < 2 * EPOCHS) {
        const char *loss = strstr(line, "\"loss\":"), *test = strstr(line, "\"test_loss\":");
        const char *weights = strstr(line, "\"weights\":\"");
        if (strstr(line, "\"event\":\"epoch\"") == NULL || loss == NULL || test == NULL || weights == NULL) continue;
        found.loss[found.epochs] = atof(loss + 7);
        found.test[found.epochs] = atof(test + 12);
        sscanf(weights + 11, "%8s", found.weights[found.epochs++]);
    }
    if (file != NULL) fclose(file);
    return found;
}

/* Train with these words before the options. */
static curve train_with(const char *words, int ranks, const char *options)
{
    remove("ranks.jsonl");
    int code = shell("%s --quiet --log ranks.jsonl --log-steps 0 %s", words, options);
    if (!CHECK_EQUAL(code, 0)) printf("%d ranks, %s:\n%s\n", ranks, options, output);
    return read_curve("ranks.jsonl");
}

static const char *const cases[] = {
    "--no-save --net lenet5 --data digits:301 --batch 50 --epochs 2",            /* the last batch is one sample */
    "--no-save --net ranks_dropout.json --data digits:300 --batch 7 --epochs 2", /* parts that begin anywhere */
    "--no-save --net lenet5 --data digits:300 --batch 64 --epochs 2 --optimizer adamw --clip-norm 0.5",
    "--no-save --net lenet5 --data digits:301 --batch 20 --epochs 2 --accumulate 3 --ema 0.9 --learning-rate 0.01",
    "--no-save --net lenet5 --data digits:301 --batch 50 --epochs 2 --class-weights balanced --augment-shift 2",
    "--no-save --net lenet5 --data digits:301 --batch 51 --epochs 2 --mixup 0.4", /* parts overlap their partners */
    ("--no-save --net lenet5 --data digits:301 --batch 50 --epochs 2 --cutmix 1 --mixup 1 --class-weights balanced "
     "--augment-shift 2"),
    "--no-save --net ranks_norm.json --data digits:301 --batch 50 --epochs 2 --sync-batch-norm",
    "--no-save --net ranks_norm.json --data digits:300 --batch 20 --epochs 2 --accumulate 3 --sync-batch-norm",
};

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return CHECK(file != NULL) && CHECK(fputs(text, file) >= 0) && CHECK(fclose(file) == 0);
}

/* The files that some of the cases name. */
static bool write_networks(void)
{
    bool written = write_text(
        "ranks_dropout.json",
        "{\"name\": \"ranks_dropout\", \"inputs\": [{\"name\": \"image\", \"shape\": [1, 28, 28]}], \"layers\": ["
        "{\"name\": \"flat\", \"type\": \"flatten\", \"inputs\": [\"image\"]},"
        "{\"name\": \"a\", \"type\": \"fully_connected\", \"inputs\": [\"flat\"], \"units\": 37},"
        "{\"name\": \"relu\", \"type\": \"relu\", \"inputs\": [\"a\"]},"
        "{\"name\": \"drop\", \"type\": \"dropout\", \"inputs\": [\"relu\"], \"probability\": 0.5},"
        "{\"name\": \"b\", \"type\": \"fully_connected\", \"inputs\": [\"drop\"], \"units\": 10}],"
        "\"outputs\": {\"class\": \"b\"}}\n");
    written =
        written &&
        write_text(
            "ranks_norm.json",
            "{\"name\": \"ranks_norm\", \"inputs\": [{\"name\": \"image\", \"shape\": [1, 28, 28]}], \"layers\": ["
            "{\"name\": \"c\", \"type\": \"conv2d\", \"inputs\": [\"image\"], \"filters\": 6, \"kernel\": 5, "
            "\"stride\": 2},"
            "{\"name\": \"n\", \"type\": \"batch_norm2d\", \"inputs\": [\"c\"]},"
            "{\"name\": \"r\", \"type\": \"relu\", \"inputs\": [\"n\"]},"
            "{\"name\": \"flat\", \"type\": \"flatten\", \"inputs\": [\"r\"]},"
            "{\"name\": \"a\", \"type\": \"fully_connected\", \"inputs\": [\"flat\"], \"units\": 16},"
            "{\"name\": \"m\", \"type\": \"batch_norm2d\", \"inputs\": [\"a\"]},"
            "{\"name\": \"b\", \"type\": \"fully_connected\", \"inputs\": [\"m\"], \"units\": 10}],"
            "\"outputs\": {\"class\": \"b\"}}\n");
    return written;
}

/* Sums in another order differ by rounding, which some steps of training enlarge. */
static void check_same_curve(const curve *several, const curve *alone)
{
    CHECK_EQUAL(several->epochs, EPOCHS);
    for (int e = 0; e < several->epochs; e++) {
        CHECK_CLOSE(several->loss[e], alone->loss[e], 5e-5 * alone->loss[e]);
        CHECK_CLOSE(several->test[e], alone->test[e], 5e-5 * alone->test[e]);
    }
}

/* The case as one rank trains it. */
static curve train_alone(const char *options)
{
    char words[256], own[256];
    snprintf(words, sizeof words, "%s train", program_path);
    snprintf(own, sizeof own, "%s", options);
    char *of_ranks = strstr(own, " --sync-batch-norm"); /* which one rank does anyway */
    if (of_ranks != NULL) *of_ranks = '\0';
    curve alone = train_with(words, 1, own);
    CHECK_EQUAL(alone.epochs, EPOCHS);
    return alone;
}

#endif
