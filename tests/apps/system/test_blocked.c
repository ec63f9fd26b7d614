/* SPDX-License-Identifier: MIT */
/* Commands that wait for the other end of a pipe: the first signal ends them, and their results are kept. */
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/program.h"
#include "onnx/fixtures.h"

#define CALCULATOR "--calculator=reference"

static char weights[512], picture[512], empty_pipe[512];

static void prepare(void)
{
    unsigned char idx[16 + 28 * 28] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28, 99};
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    snprintf(picture, sizeof picture, "%s", test_path("picture"));
    snprintf(empty_pipe, sizeof empty_pipe, "%s", test_path("pipe.npy"));
    test_write_file(picture, idx, sizeof idx);
    CHECK(mkfifo(empty_pipe, 0600) == 0);
    SDLF(0, "train", "--net", small_network(), "--data", "digits:200", "--epochs", "1", CALCULATOR, "--out", weights);
}

/* Long enough for a program to reach its wait; if it does not, the signal ends it nevertheless. */
static void nap(void)
{
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

static void the_first_signal_ends_it(void)
{
    static const struct {
        bool needs_onnx;
        const char *words[10];
    } cases[] = {
        {false, {"predict", "--weights", weights, CALCULATOR, empty_pipe}},
        {false, {"run", weights, CALCULATOR, "--input", empty_pipe}},
        {false, {"run", weights, CALCULATOR, "--input", picture, "--output", empty_pipe}},
        {false, {"export", "--c", weights, "--out", empty_pipe}},
        {true, {"export", weights, "--out", empty_pipe}},
        {false, {"info", "--net", empty_pipe}},
        {false, {"train", "--net", "mlp", "--no-save", "--log", empty_pipe}},
        {false,
         {"bench", "conv", "--shape=1x1x3x3", "--kernel=1x1x1", CALCULATOR, "--copy-size=64kB", "--repeats=1", "--json",
          empty_pipe}},
        {false,
         {"bench", "kernels", "--operation=add", CALCULATOR, "--copy-size=64kB", "--elements=1024", "--repeats=1",
          "--json", empty_pipe}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].needs_onnx && !onnx_available()) continue;
        static program p;
        p = (program){.code = 0};
        int number = i % 2 == 0 ? SIGTERM : SIGINT;
        program_start(&p, cases[i].words);
        nap();
        kill(p.process, number);
        program_finish(&p);
        if (!CHECK(p.code == 128 + number || p.signal == number)) printf("  that was sdlf %s\n", cases[i].words[0]);
    }
}

/* A writer has opened the pipe but writes nothing. */
static void a_writer_that_is_silent(void)
{
    static program p;
    p = (program){.terminal = true}; /* a line at a time */
    program_start(&p, (const char *const[]){"predict", "--weights", weights, CALCULATOR, picture, empty_pipe, NULL});
    CHECK(program_wait_for(&p, "picture"));
    int writer = open(empty_pipe, O_WRONLY); /* once it is open for reading */
    CHECK(writer >= 0);
    kill(p.process, SIGTERM);
    program_finish(&p);
    close(writer);
    CHECK_EQUAL(p.code, 128 + SIGTERM);
    CHECK_SAYS(&p, "stopped by Terminated after 1 of 2 files");
}

/* Late input is accepted, also in parts. */
static void a_writer_that_is_late(void)
{
    static program p;
    unsigned char idx[16 + 28 * 28] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28, 99};
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"predict", "--weights", weights, CALCULATOR, empty_pipe, NULL});
    int writer = open(empty_pipe, O_WRONLY);
    CHECK(write(writer, idx, 400) == 400);
    nap();
    CHECK(write(writer, idx + 400, sizeof idx - 400) == (ssize_t)(sizeof idx - 400));
    close(writer);
    program_finish(&p);
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "%");
}

/* A late reader gets the complete output. */
static void a_reader_that_is_late(void)
{
    static program p;
    p = (program){.code = 0};
    program_start(&p,
                  (const char *const[]){"run", weights, CALCULATOR, "--input", picture, "--output", empty_pipe, NULL});
    nap();
    int reader = open(empty_pipe, O_RDONLY);
    char array[4096];
    size_t size = 0;
    for (ssize_t more = 1; more > 0 && size < sizeof array; size += (size_t)(more > 0 ? more : 0))
        more = read(reader, array + size, sizeof array - size);
    close(reader);
    program_finish(&p);
    CHECK_EQUAL(p.code, 0);
    CHECK(size == 128 + 4 * 10 && memcmp(array, "\x93NUMPY", 6) == 0);
}

/* Weights are replaced with each checkpoint, plan files when they have grown, and both are read again: a pipe cannot
 * be used. */
static void what_is_replaced_is_no_pipe(void)
{
    CHECK_SAYS(SDLF(2, "info", "--net", "mlp", "--plan-file", empty_pipe),
               "pipe.npy: expected a file that can be replaced as a whole, found a pipe");
    CHECK_SAYS(SDLF(2, "train", "--net", "mlp", "--data", "digits:100", "--out", empty_pipe),
               "pipe.npy: expected a file that can be replaced as a whole, found a pipe");
}

int main(void)
{
    RUN(prepare);
    RUN(the_first_signal_ends_it);
    RUN(a_writer_that_is_silent);
    RUN(a_writer_that_is_late);
    RUN(a_reader_that_is_late);
    RUN(what_is_replaced_is_no_pipe);
    return test_summary();
}
