/* SPDX-License-Identifier: MIT */
/* Distributing tasks over threads: each runs once, with exclusive use of a thread number, on any number of threads. */
#include <stdatomic.h>

#include "calculators/cpu/cpu.h"
#include "testing.h"

enum { MOST = 41, LONG = 1000000 /* nanoseconds: worth sharing */, OUTER = 4 };

typedef void parallel(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);

typedef struct tally {
    const cpu_calculator *cpu;
    parallel *share;
    int64_t count;
    atomic_int done[MOST], busy[CPU_MAX_THREADS], wrong;
} tally;

static void note(void *context, int64_t index, int thread)
{
    tally *all = context;
    if (index < 0 || index >= all->count || thread < 0 || thread >= all->cpu->threads) {
        all->wrong++;
        return;
    }
    if (all->busy[thread]++ != 0) all->wrong++; /* scratch space of this number is in use */
    all->done[index]++;
    all->busy[thread]--;
}

static void check_once(parallel *share, const cpu_calculator *cpu, int64_t count, atomic_int *wrong)
{
    tally all = {.cpu = cpu, .share = share, .count = count};
    share(cpu, count, LONG, note, &all);
    *wrong += all.wrong;
    for (int64_t i = 0; i < MOST; i++) *wrong += all.done[i] != (i < count);
}

/* A task that distributes tasks itself: all threads are busy, so the inner tasks run on one thread. */
static void share_again(void *context, int64_t index, int thread)
{
    tally *outer = context;
    (void)thread;
    check_once(outer->share, outer->cpu, MOST - index, &outer->wrong);
}

static void all_tasks_once(parallel *share)
{
    const int threads[] = {1, 2, 3, 5, 64};
    for (int i = 0; i < (int)(sizeof threads / sizeof threads[0]); i++) {
        sdlf_calculator *cpu = NULL;
        atomic_int wrong = 0;
        if (!CHECK_OK(sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = threads[i]}))) continue;
        for (int64_t count = 0; count <= MOST; count++) check_once(share, cpu_from(cpu), count, &wrong);
        tally outer = {.cpu = cpu_from(cpu), .share = share};
        share(cpu_from(cpu), OUTER, LONG, share_again, &outer);
        CHECK_EQUAL(wrong, 0);
        CHECK_EQUAL(outer.wrong, 0);
        sdlf_calculator_close(cpu);
    }
}

static void one_by_one(void)
{
    all_tasks_once(cpu_parallel);
    all_tasks_once(cpu_parallel_exact);
}

static void in_runs(void)
{
    all_tasks_once(cpu_parallel_static);
    all_tasks_once(cpu_parallel_static_exact);
}

enum { STEPS = 50 };

typedef struct tally_of_steps {
    int64_t count;
    atomic_int done[STEPS][MOST], taken, wrong;
} tally_of_steps;

static void note_step(void *context, int64_t step, int64_t index)
{
    tally_of_steps *all = context;
    int done = all->taken++; /* including tasks of this step, but none of later steps */
    if (done < step * all->count || done >= (step + 1) * all->count) all->wrong++;
    if (index < 0 || index >= all->count)
        all->wrong++;
    else
        all->done[step][index]++;
}

static void steps_in_order(void)
{
    const int threads[] = {1, 2, 3, 5, 64};
    for (int i = 0; i < (int)(sizeof threads / sizeof threads[0]); i++) {
        sdlf_calculator *cpu = NULL;
        int wrong = 0;
        if (!CHECK_OK(sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = threads[i]}))) continue;
        for (int64_t count = 1; count <= MOST; count += 4) {
            tally_of_steps all = {.count = count};
            cpu_parallel_steps(cpu_from(cpu), STEPS, count, LONG, note_step, &all);
            for (int64_t e = 0; e < STEPS * MOST; e++) wrong += all.done[e / MOST][e % MOST] != (e % MOST < count);
            wrong += all.wrong;
        }
        CHECK_EQUAL(wrong, 0);
        sdlf_calculator_close(cpu);
    }
}

int main(void)
{
    RUN(steps_in_order);
    RUN(one_by_one);
    RUN(in_runs);
    return test_summary();
}
