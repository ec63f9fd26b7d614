/* Threads: the one place that knows OpenMP. */
#include "calculators/cpu/cpu.h"
#include "calculators/cpu/denormals.h"

#ifdef _OPENMP
#include <omp.h>
#include <sdlf/machine.h>
#include <stdatomic.h>
#include <stdlib.h>
#endif

/* A hand-over costs a few microseconds, and far more where other programs want the processors too. */
enum { WORTH_SHARING = 20000 };

/* Tasks are handed out one by one: their times differ, and on a shared machine the threads' speeds do too. */
void cpu_parallel_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context)
{
#ifdef _OPENMP
    if (cpu->threads > 1 && count > 1 && nanoseconds >= WORTH_SHARING) {
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic, 1)
        for (int64_t i = 0; i < count; i++) task(context, i, omp_get_thread_num());
        return;
    }
#else
    (void)cpu, (void)nanoseconds;
#endif
    for (int64_t i = 0; i < count; i++) task(context, i, 0);
}

#ifdef _OPENMP
/* One thread's run of neighbouring tasks, on a cache line of its own. */
typedef struct task_run {
    _Alignas(64) atomic_llong next; /* that nobody has taken yet */
    int64_t end;
} task_run;

/* The thread's own run, then what is left of the others': not the last task of a thread's run, which is better done where its
 * data lie, but all of a run that has no thread. */
static void work_through(task_run *run, int runs, cpu_task *task, void *context)
{
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    task_run *own = &run[thread];
    for (int64_t index; (index = atomic_fetch_add_explicit(&own->next, 1, memory_order_relaxed)) < own->end;)
        task(context, index, thread);
    for (int i = 1; i < runs; i++) {
        int of = (thread + i) % runs;
        task_run *other = &run[of];
        while (atomic_load_explicit(&other->next, memory_order_relaxed) + (of < threads) < other->end) {
            int64_t index = atomic_fetch_add_explicit(&other->next, 1, memory_order_relaxed);
            if (index < other->end) task(context, index, thread);
        }
    }
}
#endif

/* Each thread begins with one run of neighbouring tasks, the same in every call. */
void cpu_parallel_near_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task,
                             void *context)
{
#ifdef _OPENMP
    if (cpu->threads > 1 && count > 1 && nanoseconds >= WORTH_SHARING) {
        task_run run[CPU_MAX_THREADS];
        int runs = (int)cpu_min(cpu->threads, count);
        for (int i = 0; i < runs; i++) {
            atomic_init(&run[i].next, i * count / runs);
            run[i].end = (i + 1) * count / runs;
        }
#pragma omp parallel num_threads(runs)
        work_through(run, runs, task, context);
        return;
    }
#else
    (void)cpu, (void)nanoseconds;
#endif
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

void cpu_parallel_near(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context)
{
    cpu_parallel_near_exact(cpu, count, nanoseconds, run_flushed, &(flushed_task){task, context});
}

int cpu_threads_choose(int wanted)
{
#ifdef _OPENMP
    if (wanted > 0) return wanted;
    int available =
        omp_get_max_threads(); /* what the user or the program asked OpenMP for; or the processors of its affinity, */
    if (getenv("OMP_NUM_THREADS") == NULL) { /* which quotas of containers do not change */
        int processors = sdlf_machine_processors();
        if (processors < available) available = processors;
    }
    return available < CPU_MAX_THREADS ? available : CPU_MAX_THREADS;
#else
    (void)wanted;
    return 1;
#endif
}
