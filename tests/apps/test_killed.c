/* SPDX-License-Identifier: MIT */
/* The program killed at any moment (SIGKILL): its output file is the old or the new one, complete, and leftover
 * files are removed by the next run. SDLF_KILLS=N in the environment: N times for each command, instead of a
 * few. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/fixtures.h"
#include "apps/program.h"
#include "framework/clock.h"

/* ---- is a file whole? ---- */

static bool weights_are_whole(const char *path)
{
    sdlf_model *model = NULL;
    sdlf_status status = sdlf_model_open(&model, path);
    sdlf_model_free(model);
    return CHECK_OK(status);
}

static char first[512], second[512]; /* two weights of one network */

static bool graph_is_whole(const char *path)
{
    sdlf_model *found = NULL, *one = NULL, *two = NULL;
    bool same = CHECK_OK(sdlf_model_from_onnx(&found, path, NULL)) && CHECK_OK(sdlf_model_open(&one, first)) &&
                CHECK_OK(sdlf_model_open(&two, second));
    same = same && (sdlf_model_hash(found) == sdlf_model_hash(one) || sdlf_model_hash(found) == sdlf_model_hash(two));
    sdlf_model_free(found);
    sdlf_model_free(one);
    sdlf_model_free(two);
    return same;
}

static bool array_is_whole(const char *path)
{
    sdlf_tensor tensor;
    bool whole = CHECK_OK(sdlf_tensor_read_file(&tensor, path));
    if (whole) sdlf_tensor_release(&tensor, NULL);
    return whole;
}

static bool choices_are_whole(const char *path)
{
    sdlf_choices *choices = sdlf_choices_create();
    bool whole = CHECK_OK(sdlf_choices_read(choices, path)) && sdlf_choices_count(choices) > 0;
    sdlf_choices_free(choices);
    return whole;
}

/* ---- killing ---- */

typedef struct job {
    const char *path;                          /* of the file, in a separate folder */
    bool (*is_whole)(const char *path);        /* the existing file */
    int files;                                 /* that a run creates */
    double seconds;                            /* it is killed within; 0: within a little more than it takes */
    const char *const *words[2], *const *last; /* alternating runs, and one that is not killed */
} job;

static char number[16]; /* different in each run, for words that need one */

static void count_run(void)
{
    snprintf(number, sizeof number, "%d", atoi(number) + 1);
}

static double finish(const job *j, const char *folder)
{
    static program p;
    count_run();
    double begun = sdlf_clock();
    program_run(&p, j->last);
    double seconds = sdlf_clock() - begun;
    CHECK_EQUAL(p.code, 0);
    CHECK(j->is_whole(j->path));
    CHECK_EQUAL(test_count_files(folder), j->files);
    return seconds;
}

static void kill_often(const job *j)
{
    static program p;
    char folder[512];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(j->path, '/') - j->path), j->path);
    CHECK(mkdir(folder, 0755) == 0);
    const char *wanted = getenv("SDLF_KILLS");
    int rounds = wanted != NULL ? atoi(wanted) : 12, killed = 0, left = 0;
    double seconds = 1.3 * finish(j, folder);
    if (j->seconds > 0) seconds = j->seconds;
    uint32_t random = 12345;
    for (int i = 0; i < rounds || killed == 0;
         i++) { /* on a busy machine the first run may have taken longer than all others */
        p = (program){.code = 0};
        count_run();
        program_start(&p, j->words[i % 2]);
        random = random * 1664525 + 1013904223;
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds * random / UINT32_MAX)}, NULL);
        kill(p.process, SIGKILL);
        program_finish(&p);
        CHECK(p.signal == SIGKILL || p.code == 0);
        killed += p.signal == SIGKILL;
        CHECK(j->is_whole(j->path));
        left += test_count_files(folder) > j->files;
    }
    printf("%s: killed %d times; something was left beside it %d times\n", strrchr(j->path, '/') + 1, killed, left);
    finish(j, folder);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void train(void)
{
    const char *path = test_path("train/weights.safetensors"), *net = small_network();
#define TRAIN(epochs, seed)                                                                                            \
    WORDS("train", "--net", net, "--data", "digits:100", "--calculator", "reference", "--no-test", "--epochs", epochs, \
          "--seed", seed, "--out", path)
    kill_often(&(job){path, weights_are_whole, 1, 0.2, {TRAIN("5000", "1"), TRAIN("5000", "2")}, TRAIN("1", "1")});
}

static void export(void)
{
    const char *path = test_path("export/net.onnx"), *probe = test_path("probe.onnx");
    for (int i = 0; i < 2; i++) {
        char *weights = i == 0 ? first : second;
        snprintf(weights, sizeof first, "%s", test_path(i == 0 ? "first.safetensors" : "second.safetensors"));
        SDLF(0, "train", "--net", "lenet5", "--data", "digits:10", "--epochs", "1", "--seed", i == 0 ? "1" : "2",
             "--out", weights);
    }
    static program p;
    program_run(&p, WORDS("export", first, "-o", probe));
    if (p.code != 0 && strstr(p.err, "protobuf-c")) {
        test_skip("this build writes no ONNX files");
        return;
    }
#define EXPORT(weights) WORDS("export", weights, "-o", path, "--external-data")
    kill_often(&(job){path, graph_is_whole, 2, 0, {EXPORT(first), EXPORT(second)}, EXPORT(first)});

    const char *array = test_path("run/scores.npy"), *input = test_path("input.npy");
    static float pixels[28 * 28];
    sdlf_tensor picture = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 1, 28, 28), pixels);
    CHECK_OK(sdlf_tensor_write_file(&picture, input));
    const char *const *run = WORDS("run", probe, "--input", input, "--output", array);
    kill_often(&(job){array, array_is_whole, 1, 0, {run, run}, run});
}

/* Batch sizes that the file does not contain yet: it is written every time. */
static void plan_file(void)
{
    const char *path = test_path("plan/choices");
    const char *const *info = WORDS("info", "--net", "lenet5", "--batch", number, "--plan-file", path);
    kill_often(&(job){path, choices_are_whole, 1, 0, {info, info}, info});
}

int main(void)
{
    RUN(train);
    RUN(export);
    RUN(plan_file);
    return test_summary();
}
