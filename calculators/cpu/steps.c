/* SPDX-License-Identifier: MIT */
/* Dependent steps, each shared among the threads. See cpu.h.
 *
 * A step ends when its tasks are done, not when all threads have arrived: a thread that is descheduled for a while holds up nobody, unless
 * it is in the middle of a task, and later finds out what remains to be done. */
#include <sched.h>
#include <stdatomic.h>

#include "calculators/cpu/cpu.h"
#include "calculators/cpu/denormals.h"
#include "calculators/cpu/pause.h"
#include "calculators/cpu/threads.h"

/* Pauses, a microsecond or two, after which a thread even takes the last task of another thread's range. */
enum { GENEROSITY = 32 };

/* One thread's contiguous range of tasks, on a cache line of its own. `next` keeps counting across steps. */
typedef struct step_run {
    _Alignas(64) atomic_llong next;
    int64_t first, length;
} step_run;

typedef struct all_steps {
    _Alignas(64) atomic_llong done; /* tasks of all steps */
    _Alignas(64) int64_t steps;
    int64_t tasks;
    int count, patience;
    cpu_step_task *task;
    void *context;
    step_run run[CPU_MAX_THREADS];
} all_steps;

/* Runs the tasks of that step in `run` that are not yet taken, except for the last `left`; returns how many. */
static int64_t take(all_steps *all, step_run *run, int64_t step, int64_t left)
{
    int64_t begin = step * run->length, end = begin + run->length - left, done = 0;
    long long next = atomic_load_explicit(&run->next, memory_order_relaxed);
    while (next < end) {
        if (!atomic_compare_exchange_weak_explicit(&run->next, &next, next + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        all->task(all->context, step, run->first + (next - begin));
        done++;
        next = atomic_load_explicit(&run->next, memory_order_relaxed);
    }
    return done;
}

/* Runs tasks of all threads' ranges, the thread's own first. */
static void take_all(all_steps *all, int thread, int64_t step, int64_t left)
{
    int64_t done = take(all, &all->run[thread], step, 0);
    for (int i = 1; i < all->count; i++) done += take(all, &all->run[(thread + i) % all->count], step, left);
    if (done > 0) atomic_fetch_add_explicit(&all->done, done, memory_order_acq_rel);
}

static void go_through(void *context, int thread)
{
    all_steps *all = context;
    uint64_t before = cpu_denormals_to_zero();
    for (int64_t step = 0; step < all->steps; step++) {
        take_all(all, thread, step, 1);
        int64_t wanted = (step + 1) * all->tasks;
        for (int i = 1; atomic_load_explicit(&all->done, memory_order_acquire) < wanted;) {
            if (i < all->patience)
                cpu_pause(), i++;
            else
                sched_yield();
            if (i % GENEROSITY == 0 || i >= all->patience) take_all(all, thread, step, 0);
        }
    }
    cpu_denormals_restore(before);
}

void cpu_parallel_steps(const cpu_calculator *cpu, int64_t steps, int64_t tasks, int64_t nanoseconds,
                        cpu_step_task *task, void *context)
{
    all_steps all; /* only as many runs are initialised as are used */
    all.steps = steps, all.tasks = tasks, all.task = task, all.context = context;
    all.patience = cpu_threads_patience(cpu->pool);
    all.count = nanoseconds >= CPU_WORTH_SHARING ? (int)cpu_min(cpu->threads, tasks) : 1;
    atomic_init(&all.done, 0);
    for (int i = 0; i < all.count; i++) {
        atomic_init(&all.run[i].next, 0);
        all.run[i].first = i * tasks / all.count;
        all.run[i].length = (i + 1) * tasks / all.count - all.run[i].first;
    }
    if (all.count > 1 && cpu_threads_run(cpu->pool, all.count, go_through, &all)) return;
    all.count = 1;
    atomic_init(&all.run[0].next, 0);
    all.run[0].first = 0, all.run[0].length = tasks;
    go_through(&all, 0);
}
