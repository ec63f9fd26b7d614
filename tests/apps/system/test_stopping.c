/* SPDX-License-Identifier: MIT */
/* Ctrl-C in commands that measure: the results so far are shown, a line says what is missing, and the exit code is
 * 130. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "apps/program.h"

#define SLOW "--calculator", "reference"

/* Wait for `text`, which may be in the line that only terminals see, let it compute a little longer, then press the
 * keys. */
#define STOPPED(text, ...) stopped((text), (const char *const[]){__VA_ARGS__, NULL})
static const program *stopped(const char *text, const char *const *words)
{
    static program p;
    p = (program){.errors_terminal = true};
    program_start(&p, words);
    CHECK(program_wait_for(&p, text));
    program_compute(&p, 0.7);
    kill(p.process, SIGINT);
    program_finish(&p);
    CHECK_EQUAL(p.code, 130);
    CHECK_SAYS(&p, "stopped by Ctrl-C");
    return &p;
}

/* The printed JSON, which must report the interruption, too. The caller releases it. */
static json_t *interrupted_json(const program *p)
{
    json_error_t error;
    json_t *all = json_loads(p->out, 0, &error);
    if (CHECK(all != NULL)) CHECK(json_is_true(json_object_get(all, "interrupted")));
    return all;
}

static const char *weights(const char *net)
{
    static char file[512];
    snprintf(file, sizeof file, "%s", test_path("weights.safetensors"));
    unlink(file);
    SDLF(0, "train", "--net", net, "--data", "digits:100", "--epochs", "1", "--no-test", "--out", file);
    return file;
}

static void tests_of_weights(void)
{
    const char *file = weights("lenet5");
    const program *p = STOPPED("  from ", "eval", "--weights", file, "--data", "digits:60000", "--batch", "16", SLOW);
    CHECK_SAYS(p, " of 10,000 samples; the figures above cover only these");
    CHECK_SAYS(p, "test   ");
}

/* Images in a file that every build reads. */
static void pictures(void)
{
    enum { PICTURES = 1000, FIRST = 4 };
    static const char *words[FIRST + PICTURES + 1] = {"predict", "--weights", NULL, "--calculator=reference"};
    char idx[16 + 28 * 28] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28, 99};
    const char *file = test_path("images-idx3-ubyte");
    test_write_file(file, idx, sizeof idx);
    static char picture[512];
    snprintf(picture, sizeof picture, "%s", file);
    words[2] = weights("simple_cnn");
    for (int i = 0; i < PICTURES; i++) words[FIRST + i] = picture;
    static program p;
    p = (program){.terminal = true}; /* a line at a time */
    program_start(&p, words);
    CHECK(program_wait_for(&p, "images-idx3-ubyte"));
    kill(p.process, SIGINT);
    program_finish(&p);
    CHECK_EQUAL(p.code, 130);
    CHECK_SAYS(&p, "stopped by Ctrl-C after ");
    CHECK_SAYS(&p, " of 1000 files");
}

static void an_epoch_of_a_network(void)
{
    const program *p = STOPPED("limits ", "bench", "--net", "lenet5", "--batch", "4", "--copy-size", "64kB", SLOW);
    CHECK_SAYS(p, "; extrapolated from ");
    CHECK_SAYS(p, " of 15,000 steps");
    CHECK_SAYS(p, "stopped by Ctrl-C; no layer was timed");
    p = STOPPED("limits ", "bench", "--net", "lenet5", "--mode", "infer", "--batch", "1", "--repeats", "100000",
                "--data", "digits:100", "--copy-size", "64kB", SLOW);
    CHECK_SAYS(p, "pass   ");
    CHECK_SAYS(p, "layers' times are of fewer runs");
}

static void runs_of_a_model(void)
{
    const program *p =
        STOPPED("sdlf ", "bench", "model", weights("lenet5"), "--repeats", "100000", "--calculator", "reference");
    CHECK_SAYS(p, " of 100000 runs; no layer was timed");
    CHECK_SAYS(p, "run    ");
}

/* The keys are pressed while the second batch size is timed. */
static void batch_sizes(void)
{
    const program *p = STOPPED("batch  4,", "bench", "epoch", "--net", "lenet5", "--batch", "4", "--batch", "300",
                               "--steps", "2", "--host-calculator", "reference", "--device-calculator", "reference");
    CHECK_SAYS(p, "after 1 of 2 batch sizes; the others are left out");
    CHECK_SAYS(p, "samples/s"); /* the summary */
}

static void places(void)
{
    const program *p =
        STOPPED("batch  16, ", "bench", "placement", "--net", "lenet5", "--device-calculator", "reference");
    CHECK_SAYS(p, "rows not reached have no time");
    p = STOPPED("net  ", "bench", "placement", "--net", "lenet5", "--batch", "256", "--host-calculator", "reference",
                "--device-calculator", "reference", "--threads", "1");
    CHECK_SAYS(p, "no row was timed");
}

static void a_graph(void)
{
    const program *p = STOPPED("net  ", "gcn", "infer", "--graph", "uniform:2000,10000,1", "--repeats", "100000", SLOW);
    CHECK_SAYS(p, "all together");
    CHECK_SAYS(p, "stopped by Ctrl-C; only whole runs were timed");
    p = STOPPED("timing 100,000 runs", "gcn", "infer", "--graph", "uniform:2000,10000,1", "--repeats", "100000", SLOW,
                "--json");
    CHECK(strstr(p->out, "stopped") == NULL); /* that is on standard error */
    json_t *all = interrupted_json(p);
    CHECK_EQUAL(json_array_size(json_object_get(all, "steps")), 0);
    json_decref(all);
}

static void a_plan_with_its_times(void)
{
    const program *p = STOPPED("sdlf ", "info", "--net", "lenet5", "--batch", "2000", "--time", SLOW);
    CHECK_SAYS(p, "optimizer states");
    CHECK_SAYS(p, "stopped by Ctrl-C; there are no times");
}

/* The key press is confirmed at once; the current step takes longer. */
static void it_says_that_it_has_heard(void)
{
    static program p;
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"bench", "--net", "simple_cnn", "--data", "digits:2000", "--batch", "300",
                                            "--copy-size", "64kB", SLOW, NULL});
    CHECK(program_wait_for(&p, "limits "));
    program_compute(&p, 0.3);
    kill(p.process, SIGINT);
    CHECK(program_wait_for(&p, "stopping after the current step; a second signal ends at once"));
    kill(p.process, SIGINT);
    program_finish(&p);
    CHECK_EQUAL(p.signal, SIGINT);
}

/* "sdlf info --json | true": the failed output is noticed when the program ends. */
static void a_reader_that_goes_away(void)
{
    static program p;
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"info", "--net", "lenet5", "--time", "--json", "--threads", "1", NULL});
    close(p.pipe[0]);
    p.pipe[0] = -1;
    program_finish(&p);
    CHECK_EQUAL(p.code, 128 + SIGPIPE);
    CHECK_TEXT(p.err, "");
}

int main(void)
{
    setenv("TERM", "xterm-256color", 1); /* for the status line */
    RUN(tests_of_weights);
    RUN(pictures);
    RUN(an_epoch_of_a_network);
    RUN(runs_of_a_model);
    RUN(batch_sizes);
    RUN(places);
    RUN(a_graph);
    RUN(a_plan_with_its_times);
    RUN(it_says_that_it_has_heard);
    RUN(a_reader_that_goes_away);
    return test_summary();
}
