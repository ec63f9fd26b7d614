/* SPDX-License-Identifier: MIT */
/* Partition of tasks among the calculator's threads. */
#include <stdatomic.h>

#include "calculators/cpu/cpu.h"
#include "calculators/cpu/denormals.h"
#include "calculators/cpu/threads.h"

static bool is_shared(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds)
{
    return cpu->threads > 1 && count > 1 && nanoseconds >= CPU_WORTH_SHARING;
}

typedef struct task_list {
    _Alignas(64) atomic_llong next; /* the next task not yet taken */
    _Alignas(64) int64_t count;
    cpu_task *task;
    void *context;
} task_list;

/* Tasks are handed out one by one: their times differ, and on a shared machine so do the threads' speeds. */
static void take_next(void *context, int thread)
{
    task_list *list = context;
    for (int64_t i; (i = atomic_fetch_add_explicit(&list->next, 1, memory_order_relaxed)) < list->count;)
        list->task(list->context, i, thread);
}

void cpu_parallel_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context)
{
    task_list list = {.count = count, .task = task, .context = context};
    if (is_shared(cpu, count, nanoseconds) &&
        cpu_threads_run(cpu->pool, (int)cpu_min(cpu->threads, count), take_next, &list))
        return;
    for (int64_t i = 0; i < count; i++) task(context, i, 0);
}

/* One thread's contiguous range of tasks, on a cache line of its own. */
typedef struct task_run {
    _Alignas(64) atomic_llong next; /* the next task not yet taken */
    int64_t end;
} task_run;

typedef struct task_runs {
    int count;
    cpu_task *task;
    void *context;
    task_run run[CPU_MAX_THREADS];
} task_runs;

/* Runs the thread's own range, then all but the last task of the others': that one is better done where its data are. */
static void work_through(void *context, int thread)
{
    task_runs *all = context;
    task_run *own = &all->run[thread];
    for (int64_t index; (index = atomic_fetch_add_explicit(&own->next, 1, memory_order_relaxed)) < own->end;)
        all->task(all->context, index, thread);
    for (int i = 1; i < all->count; i++) {
        task_run *other = &all->run[(thread + i) % all->count];
        while (atomic_load_explicit(&other->next, memory_order_relaxed) + 1 < other->end) {
            int64_t index = atomic_fetch_add_explicit(&other->next, 1, memory_order_relaxed);
            if (index < other->end) all->task(all->context, index, thread);
        }
    }
}

/* Each thread starts with one contiguous range of tasks, the same in every call. */
void cpu_parallel_static_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task,
                               void *context)
{
    if (is_shared(cpu, count, nanoseconds)) {
        task_runs all; /* only as many runs are initialised as are used */
        all.count = (int)cpu_min(cpu->threads, count);
        all.task = task;
        all.context = context;
        for (int i = 0; i < all.count; i++) {
            atomic_init(&all.run[i].next, i * count / all.count);
            all.run[i].end = (i + 1) * count / all.count;
        }
        if (cpu_threads_run(cpu->pool, all.count, work_through, &all)) return;
    }
    for (int64_t i = 0; i < count; i++) task(context, i, 0);
}

typedef struct flushed_task {
    cpu_task *task;
    void *context;
} flushed_task;

static void run_flushed(void *context, int64_t index, int thread)
{
    const flushed_task *flushed = context;
    uint64_t before = cpu_denormals_to_zero();
    flushed->task(flushed->context, index, thread);
    cpu_denormals_restore(before);
}

void cpu_parallel(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context)
{
    cpu_parallel_exact(cpu, count, nanoseconds, run_flushed, &(flushed_task){task, context});
}

void cpu_parallel_static(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context)
{
    cpu_parallel_static_exact(cpu, count, nanoseconds, run_flushed, &(flushed_task){task, context});
}
