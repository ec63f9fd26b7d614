/* Threads: the one place that knows OpenMP. */
#include "calculators/cpu/cpu.h"
#include "calculators/cpu/denormals.h"

#ifdef _OPENMP
#include <omp.h>
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

/* Each thread gets one run of neighbouring tasks, the same in every call. */
static void run_near(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context)
{
#ifdef _OPENMP
    if (cpu->threads > 1 && count > 1 && nanoseconds >= WORTH_SHARING) {
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
        for (int64_t i = 0; i < count; i++) task(context, i, omp_get_thread_num());
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
    run_near(cpu, count, nanoseconds, run_flushed, &(flushed_task){task, context});
}

int cpu_threads_choose(int wanted)
{
#ifdef _OPENMP
    if (wanted > 0) return wanted;
    int available = omp_get_max_threads(); /* OMP_NUM_THREADS, or the processors that this process may run on */
    return available < CPU_MAX_THREADS ? available : CPU_MAX_THREADS;
#else
    (void)wanted;
    return 1;
#endif
}
