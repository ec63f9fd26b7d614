/* SPDX-License-Identifier: MIT */
/* The cpu calculator's threads if the system creates none, and in a child of fork(): each in a separate process. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calculators/cpu/cpu.h"
#include "calculators/cpu/threads.h"
#include "testing.h"

enum { TASKS = 40, LONG = 1000000 /* nanoseconds: worth sharing */, NOBODY = 65534, HANGS = 600 /* seconds */ };

/* The result of `act` in a child process; -1 if it was killed or hung. */
static int in_child(int (*act)(sdlf_calculator *cpu), sdlf_calculator *cpu)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(HANGS);
        _exit(act(cpu));
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    return ended ? WEXITSTATUS(status) : -1;
}

static void note(void *context, int64_t index, int thread)
{
    atomic_int *done = context;
    (void)thread;
    done[index]++;
}

/* True if all tasks are run once. */
static bool shares(sdlf_calculator *cpu)
{
    bool good = true;
    for (int again = 0; again < 50; again++) {
        atomic_int done[2][TASKS] = {{0}};
        cpu_parallel(cpu_from(cpu), TASKS, LONG, note, done[0]);
        cpu_parallel_static(cpu_from(cpu), TASKS, LONG, note, done[1]);
        for (int i = 0; i < 2 * TASKS; i++) good = good && done[i / TASKS][i % TASKS] == 1;
    }
    return good;
}

static sdlf_calculator *open_with(int threads)
{
    sdlf_calculator *cpu = NULL;
    sdlf_status status = sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = threads});
    return status == SDLF_OK ? cpu : NULL;
}

/* ---- no threads ---- */

static void *return_at_once(void *unused)
{
    return unused;
}

/* The limit counts all processes of a user; root has no limit, and some sandboxes do not enforce it. */
static bool limit_processes(void)
{
    pthread_t thread;
    if (geteuid() == 0 && setuid(NOBODY) != 0) return false;
    if (setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 1}) != 0) return false;
    if (pthread_create(&thread, NULL, return_at_once, NULL) != 0) return true;
    pthread_join(thread, NULL);
    return false;
}

static int open_without_threads(sdlf_calculator *unused)
{
    char text[256] = "";
    (void)unused;
    if (!limit_processes()) return 2;
    sdlf_calculator *cpu = open_with(4);
    if (cpu == NULL) return 3;
    if (cpu_from(cpu)->threads != 1) return 4;
    if (!shares(cpu)) return 5;
    cpu->type->describe(cpu, text, sizeof text);
    if (strncmp(text, "1 thread (of 4, the system makes no more), ", 43) != 0) return 6;
    sdlf_calculator_close(cpu);
    return 0;
}

static void threads_that_cannot_be_made_are_done_without(void)
{
    int code = in_child(open_without_threads, NULL);
    if (code == 2)
        test_skip("the number of processes cannot be limited here");
    else
        CHECK_EQUAL(code, 0);
}

/* ---- fork ---- */

static int use_after_fork(sdlf_calculator *inherited)
{
    if (!shares(inherited)) return 2; /* by the only thread */
    sdlf_calculator *own = open_with(3);
    if (own == NULL || cpu_from(own)->threads != 3) return 3;
    if (!shares(own)) return 4;
    sdlf_calculator_close(own);
    sdlf_calculator_close(inherited);
    return 0;
}

static void a_child_of_fork_computes(void)
{
    sdlf_calculator *cpu = open_with(3);
    if (!CHECK(cpu != NULL)) return;
    CHECK(shares(cpu));
    for (int i = 0; i < 5; i++) CHECK_EQUAL(in_child(use_after_fork, cpu), 0);
    CHECK(shares(cpu)); /* and the parent continues */
    sdlf_calculator_close(cpu);
}

/* A child of a process that forks while its threads are running. */
static int fork_inside(sdlf_calculator *cpu)
{
    return shares(cpu) ? 0 : 2;
}

typedef struct forking {
    sdlf_calculator *cpu;
    atomic_int failed;
} forking;

static void fork_in_task(void *context, int64_t index, int thread)
{
    forking *all = context;
    (void)thread;
    if (index % 10 == 0 && in_child(fork_inside, all->cpu) != 0) all->failed++;
}

static void a_child_of_a_task_computes(void)
{
    sdlf_calculator *cpu = open_with(2);
    if (!CHECK(cpu != NULL)) return;
    forking all = {.cpu = cpu};
    cpu_parallel(cpu_from(cpu), TASKS, LONG, fork_in_task, &all);
    CHECK_EQUAL(all.failed, 0);
    sdlf_calculator_close(cpu);
}

/* ---- the environment ---- */

static void variables_are_obeyed(void)
{
    setenv("OMP_NUM_THREADS", "3,2", 1);
    CHECK_EQUAL(cpu_threads_choose(0), 3);
    CHECK_EQUAL(cpu_threads_choose(5), 5);
    setenv("OMP_NUM_THREADS", "100000", 1);
    CHECK_EQUAL(cpu_threads_choose(0), CPU_MAX_THREADS);
    setenv("OMP_NUM_THREADS", "none", 1);
    CHECK(cpu_threads_choose(0) >= 1);
    unsetenv("OMP_NUM_THREADS");
    CHECK(cpu_threads_choose(0) >= 1);
    static const char *const waits[] = {"passive", "active", "PASSIVE"};
    for (int i = 0; i < 3; i++) {
        setenv("OMP_WAIT_POLICY", waits[i], 1);
        setenv("OMP_PROC_BIND", i == 0 ? "true" : "false", 1);
        sdlf_calculator *cpu = open_with(2);
        CHECK(cpu != NULL && shares(cpu));
        sdlf_calculator_close(cpu);
    }
}

int main(void)
{
    RUN(threads_that_cannot_be_made_are_done_without);
    RUN(a_child_of_fork_computes);
    RUN(a_child_of_a_task_computes);
    RUN(variables_are_obeyed);
    return test_summary();
}
