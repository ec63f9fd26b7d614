/* SPDX-License-Identifier: MIT */
/* Signals: Ctrl-C keeps the trained weights, a second one ends at once, and a kill at any time loses no checkpoint. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/program.h"

#define CALCULATOR "--calculator", "reference"
#define LONG       "--net", small_network(), "--data", "digits:2000,3", "--epochs", "2000", CALCULATOR
#define SHORT      "--net", small_network(), "--data", "digits:2000,3", CALCULATOR

static void nap(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

/* Train until the first epoch is done, then send `number`. */
static const program *interrupted(const char *out, int number)
{
    static program p;
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"train", LONG, "--schedule", "constant", "--out", out, NULL});
    CHECK(program_wait_for(&p, "epoch    1/2000"));
    kill(p.process, number);
    program_finish(&p);
    return &p;
}

static void the_first_one_saves(void)
{
    const char *out = test_path("stopped.safetensors");
    const program *p = interrupted(out, SIGINT);
    CHECK_EQUAL(p->code, 130);
    CHECK_SAYS(p, "stopped by Ctrl-C in epoch ");
    CHECK_SAYS(p, "saved  ");
    CHECK_SAYS(p, "continue with --resume ");
    SDLF(0, "eval", "--weights", out, CALCULATOR);
}

static void termination_saves_too(void)
{
    const char *out = test_path("terminated.safetensors");
    const program *p = interrupted(out, SIGTERM);
    CHECK_EQUAL(p->code, 128 + SIGTERM);
    CHECK_SAYS(p, "stopped by Terminated in epoch ");
    SDLF(0, "eval", "--weights", out, CALCULATOR);
}

/* An uninterrupted run ends with the same weights as one that was stopped somewhere in the middle and resumed. */
static void stopped_and_resumed_is_never_stopped(void)
{
    const char *whole = test_path("whole.safetensors"), *parts = test_path("parts.safetensors");
    char expected[16], pattern[64];
    const program *p = SDLF(0, "train", SHORT, "--epochs", "100", "--out", whole, "--no-test");
    const char *last = strstr(p->out, "epoch 100/100");
    last = last ? strstr(last, "weights ") : NULL;
    if (!CHECK(last != NULL)) return;
    snprintf(expected, sizeof expected, "%.8s", last + strlen("weights "));

    static program stopped;
    stopped = (program){.code = 0};
    program_start(&stopped,
                  (const char *const[]){"train", SHORT, "--epochs", "100", "--out", parts, "--no-test", NULL});
    CHECK(program_wait_for(&stopped, "epoch   3/100")); /* it cannot print the rest until somebody reads on */
    kill(stopped.process, SIGINT);
    program_finish(&stopped);
    CHECK_EQUAL(stopped.code, 130);
    p = SDLF(0, "train", "--resume", parts, "--no-test", CALCULATOR);
    snprintf(pattern, sizeof pattern, "weights %s", expected);
    const char *end = strstr(p->out, "epoch 100/100");
    CHECK(end != NULL && strstr(end, pattern) != NULL);
}

/* "sdlf train | head -1": training stops when nobody reads the output, and the trained weights are kept. */
static void a_reader_that_goes_away_stops_it(void)
{
    const char *out = test_path("unread.safetensors"), *log = test_path("unread.jsonl");
    static program p;
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"train", LONG, "--schedule", "constant", "--out", out, "--log", log,
                                            "--no-test", NULL});
    CHECK(program_wait_for(&p, "epoch    1/2000"));
    close(p.pipe[0]);
    p.pipe[0] = -1;
    program_finish(&p);
    CHECK_EQUAL(p.code, 128 + SIGPIPE);
    SDLF(0, "eval", "--weights", out, CALCULATOR);
    char command[1200];
    snprintf(command, sizeof command, "tail -1 '%s' | grep -q '\"event\":\"end\"'", log);
    CHECK(system(command) == 0);
}

/* During one long step the first Ctrl-C waits for the step's end; the second does not. */
static void the_second_one_ends_at_once(void)
{
    static program p;
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"train", "--net", "simple_cnn", "--data", "digits:4000", "--batch", "2000",
                                            CALCULATOR, "--out", test_path("never.safetensors"), NULL});
    CHECK(program_wait_for(&p, "allocated now"));
    program_compute(&p, 0.3);
    kill(p.process, SIGINT);
    CHECK(program_wait_for(&p, "a second signal ends at once")); /* two at the same time are one */
    kill(p.process, SIGINT);
    program_finish(&p);
    CHECK_EQUAL(p.code, -1);
    CHECK_EQUAL(p.signal, SIGINT);
}

/* nohup, which ignores SIGHUP, means that training continues after a hang-up. */
static void ignored_signals_stay_ignored(void)
{
    static program p;
    p = (program){.code = 0};
    void (*before)(int) = signal(SIGHUP, SIG_IGN);
    program_start(&p, (const char *const[]){"train", SHORT, "--epochs", "100", "--no-save", NULL});
    CHECK(program_wait_for(&p, "epoch   1/100"));
    kill(p.process, SIGHUP);
    program_finish(&p);
    signal(SIGHUP, before);
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "epoch 100/100");
}

/* Killed at any time, often in the middle of a save: an epoch of this network takes about as long as its save. */
static void killed_while_saving_loses_nothing(void)
{
    char out[512]; /* test_path soon reuses its own storage */
    snprintf(out, sizeof out, "%s", test_path("killed.safetensors"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:60", CALCULATOR, "--epochs", "1", "--out", out);
    for (int i = 0; i < 25; i++) {
        static program p;
        p = (program){.code = 0};
        program_start(&p, (const char *const[]){"train", "--net", small_network(), "--data", "digits:60", "--epochs",
                                                "100000", CALCULATOR, "--out", out, NULL});
        CHECK(program_wait_for(&p, "/100000  loss"));
        nap(0.001 * i);
        kill(p.process, SIGKILL);
        program_finish(&p);
        CHECK_EQUAL(p.signal, SIGKILL);
        SDLF(0, "eval", "--weights", out, CALCULATOR, "--data", "digits:60");
    }
}

int main(void)
{
    RUN(the_first_one_saves);
    RUN(termination_saves_too);
    RUN(stopped_and_resumed_is_never_stopped);
    RUN(a_reader_that_goes_away_stops_it);
    RUN(the_second_one_ends_at_once);
    RUN(ignored_signals_stay_ignored);
    RUN(killed_while_saving_loses_nothing);
    return test_summary();
}
