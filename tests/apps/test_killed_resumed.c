/* SPDX-License-Identifier: MIT */
/* Training killed repeatedly (SIGKILL) and resumed until it ends: the weights are those of an uninterrupted run, the
 * log is readable at every moment, and nothing is left behind. Two processes that save to one file, one of them killed:
 * the file is intact. SDLF_KILLS=N in the environment: N kills of each kind, instead of a few. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "apps/runs/run_log.h"

#define CALCULATOR "--calculator", "reference", "--no-test"

static int kills_wanted(int usual)
{
    const char *wanted = getenv("SDLF_KILLS");
    return wanted != NULL ? atoi(wanted) : usual;
}

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

/* In [0, 1). */
static double chance(void)
{
    static uint64_t drawn;
    return sdlf_philox4x32(11, drawn++, 0, 0).word[0] / 4294967296.0;
}

static uint32_t hash_of(const char *path)
{
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_open(&model, path));
    uint32_t hash = model != NULL ? sdlf_model_hash(model) : 0;
    sdlf_model_free(model);
    return hash;
}

/* Check that every complete line of the log is readable. Returns the last epoch in it. */
static int logged_epochs(const char *path)
{
    run_log run;
    sdlf_status status = run_log_read(&run, path);
    bool begun = status == SDLF_OK || strstr(sdlf_error_message(), "it is empty") == NULL;
    if (begun) CHECK_OK(status);
    size_t count = begun ? json_array_size(run.epochs) : 0;
    int last = count > 0 ? (int)run_number(json_array_get(run.epochs, count - 1), "epoch") : 0;
    run_log_release(&run);
    return last;
}

typedef struct paths {
    char folder[300], weights[330], log[330];
} paths;

static paths paths_in(const char *name)
{
    paths p;
    snprintf(p.folder, sizeof p.folder, "%s", test_path(name));
    snprintf(p.weights, sizeof p.weights, "%s/weights.safetensors", p.folder);
    snprintf(p.log, sizeof p.log, "%s/run.jsonl", p.folder);
    CHECK(mkdir(p.folder, 0755) == 0);
    return p;
}

/* Train 60 epochs, killed repeatedly until the training ends. Returns the number of kills. */
static int kill_until_it_ends(const paths *at, uint32_t expected)
{
    static program p;
    int killed = 0;
    unlink(at->weights);
    unlink(at->log);
    for (p.code = -1; p.code != 0;) {
        bool resumes = access(at->weights, F_OK) == 0;
        if (!resumes) unlink(at->log); /* else it would be kept beside the new log */
        p = (program){.code = 0};
        if (resumes)
            program_start(&p, (const char *const[]){"train", "--resume", at->weights, "--log", at->log, "--log-steps",
                                                    "1", CALCULATOR, NULL});
        else
            program_start(&p, (const char *const[]){"train", "--net", small_network(), "--data", "digits:60",
                                                    "--epochs", "60", "--optimizer", "adam", "--out", at->weights,
                                                    "--log", at->log, "--log-steps", "1", CALCULATOR, NULL});
        if (chance() < 0.9) program_wait_for(&p, "/60  loss");
        nap(0.02 * chance());
        kill(p.process, SIGKILL);
        program_finish(&p);
        killed += p.signal == SIGKILL;
        /* only the first run can be killed before a log exists */
        int epochs = resumes || access(at->log, F_OK) == 0 ? logged_epochs(at->log) : 0;
        if (strstr(p.err, "has done its 60 epochs") != NULL) break; /* it was killed at the very end */
        if (!CHECK(p.signal == SIGKILL || p.code == 0)) return printf("%s", p.err);
        if (p.code == 0) CHECK_EQUAL(epochs, 60);
    }
    CHECK_EQUAL((int64_t)hash_of(at->weights), (int64_t)expected);
    if (p.code == 0) CHECK_EQUAL(test_count_files(at->folder), 2); /* else no save followed the last kill */
    return killed;
}

static void killed_and_resumed_is_never_killed(void)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s", test_path("whole.safetensors"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:60", "--epochs", "60", "--optimizer", "adam", "--out",
         whole, "--quiet", CALCULATOR);
    paths at = paths_in("resumed");
    int killed = 0, trainings = 0;
    for (; killed < kills_wanted(10); trainings++) killed += kill_until_it_ends(&at, hash_of(whole));
    printf("%d trainings, killed %d times\n", trainings, killed);
}

/* After both have saved, one is killed at any moment; the other continues. */
static void two_save_to_one_file(void)
{
    static program p[2];
    paths at = paths_in("shared");
    int rounds = kills_wanted(5);
    const char *const once[] = {"train", "--net", small_network(), "--data",   "digits:60", "--epochs",
                                "1",     "--out", at.weights,      CALCULATOR, NULL};
    sdlf_run(__FILE__, __LINE__, 0, once); /* the first line of a training comes before its first save */
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++) {
            p[k] = (program){.code = 0};
            program_start(&p[k], (const char *const[]){"train", "--net", small_network(), "--data", "digits:60",
                                                       "--epochs", "100000", "--seed", k == 0 ? "1" : "2", "--out",
                                                       at.weights, CALCULATOR, NULL});
        }
        for (int k = 0; k < 2; k++) CHECK(program_wait_for(&p[k], "/100000  loss"));
        nap(0.01 * chance());
        for (int k = 0; k < 2; k++) {
            kill(p[(i + k) % 2].process, SIGKILL);
            hash_of(at.weights);
            program_finish(&p[(i + k) % 2]);
        }
    }
    sdlf_run(__FILE__, __LINE__, 0, once);
    CHECK_EQUAL(test_count_files(at.folder), 1);
}

int main(void)
{
    RUN(killed_and_resumed_is_never_killed);
    RUN(two_save_to_one_file);
    return test_summary();
}
