/* SPDX-License-Identifier: MIT */
/* Types of the cpu calculator: the fast backend in host memory.
 *
 * Structure. The loops over elements live in kernels/, written once in C with vector types, for an element type and a
 * vector width given on the compiler command line. CMake compiles that folder several times: for float and double, each
 * for every instruction set of the architecture (plain, avx2, avx512; neon). Each compilation is an instance: one table
 * of kernel slots. Opening the calculator selects the widest set that the CPU supports (SDLF_SIMD=plain|avx2|avx512 in
 * the environment requests one); operations go to the instance of their element type.
 *
 * Determinism. Each output element is computed by one task, and no reduction depends on the number of threads: its
 * parts follow from the shapes and are combined in a fixed order. So results are bit-identical for any thread count. */
#ifndef SDLF_CALCULATORS_CPU_H
#define SDLF_CALCULATORS_CPU_H

#include <assert.h>
#include <stddef.h>

#include "calculators/registry.h"

/* One compilation of kernels/ for one element type; NULL for an operation kind that it does not implement. */
typedef struct cpu_instance {
    sdlf_kernel_slot kernel[SDLF_OPERATION_COUNT];
    const sdlf_fused_slot *fusions;
} cpu_instance;

/* An instruction set: its name, and whether this CPU supports it. */
typedef struct cpu_level {
    const char *name;
    const cpu_instance *float32, *float64;
    bool (*available)(void);
    bool (*vnni)(void); /* whether it also has int8 dot products of four elements */
} cpu_level;

/* The GEMM of an external library, if this build has one: c (m,n) = alpha op(a) op(b) + beta c, row-major, with the
 * leading dimensions lda, ldb, ldc, computed on the calling thread only. */
typedef struct cpu_gemm_arguments {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
} cpu_gemm_arguments;

typedef struct cpu_gemm_library {
    void (*describe)(char *text, size_t size); /* "oneDNN 2.6.3" */
    bool (*load)(void);                        /* before the first GEMM: is the library there? Optional; NULL: yes */
    bool (*float32)(const cpu_gemm_arguments *arguments); /* false: out of memory, and c is undefined */
    bool (*float64)(const cpu_gemm_arguments *arguments); /* NULL: none */
} cpu_gemm_library;

enum { CPU_MAX_THREADS = 1024 };

typedef struct cpu_calculator {
    sdlf_calculator base;
    int threads, wanted; /* running; requested */
    struct cpu_threads *pool;
    const cpu_level *level;
    const cpu_gemm_library *library; /* NULL: none */
} cpu_calculator;

static_assert(offsetof(cpu_calculator, base) == 0, "base must be first");

static inline cpu_calculator *cpu_from(sdlf_calculator *calculator)
{
    assert(calculator->type == &sdlf_cpu_calculator_class);
    return (cpu_calculator *)calculator;
}

static inline const cpu_calculator *cpu_from_const(const sdlf_calculator *calculator)
{
    assert(calculator->type == &sdlf_cpu_calculator_class);
    return (const cpu_calculator *)calculator;
}

/* ---- threads ---- */

/* One task: `index` in [0, count); `thread` in [0, threads), for per-thread scratch space. */
typedef void cpu_task(void *context, int64_t index, int thread);

/* Calls task(context, i, thread) once for each i, on the calculator's threads, in any order; returns when all are done.
 * `nanoseconds` estimates the time of all tasks on one thread: short work is not shared. Denormals are flushed to zero
 * in the tasks (see denormals.h). */
void cpu_parallel(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);

/* The same for tasks in the order of the rows of an image, or of weights: each thread starts with one contiguous range,
 * so it finds its own output of one layer in its cache when it reads it for the next, and then helps the others. */
void cpu_parallel_static(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);

/* The same two for tasks that move, convert or draw values, and must preserve every bit. */
void cpu_parallel_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);
void cpu_parallel_static_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task,
                               void *context);

/* One task of a step: `index` in [0, tasks). */
typedef void cpu_step_task(void *context, int64_t step, int64_t index);

/* The same for a sequence of steps, each of which depends on all of the previous one and is too short for a call of its
 * own: task(context, s, i) for each s in [0, steps) and i in [0, tasks), tasks > 0. A step starts when all tasks of the
 * previous one are done. Each thread starts every step with the same range. */
void cpu_parallel_steps(const cpu_calculator *cpu, int64_t steps, int64_t tasks, int64_t nanoseconds,
                        cpu_step_task *task, void *context);

/* Work that takes one thread less than this is not shared: a hand-over costs a few microseconds, and far more when
 * other programs compete for the cores. */
enum { CPU_WORTH_SHARING = 20000 };

/* Estimated single-thread time, in nanoseconds, of that many FLOPs, or of that many elements moved through memory. */
static inline int64_t cpu_time_of_flops(int64_t flops)
{
    return flops / 100;
}

static inline int64_t cpu_time_of_elements(int64_t elements)
{
    return elements / 4;
}

/* ---- instruction sets ---- */

/* Finds the level called `name`; for name NULL, the widest that this CPU supports. */
sdlf_status cpu_level_choose(const cpu_level **level, const char *name);

/* ---- the external GEMM library of this build: NULL if there is none ---- */
const cpu_gemm_library *cpu_gemm_library_of_build(void);

/* ---- operations that move or draw elements of any dtype: not part of the instances, whose kernels end in _cpu ---- */
sdlf_status cpu_fill(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_copy(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_random_uniform(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_random_normal(sdlf_calculator *calculator, const sdlf_operation *operation);
/* gather_batch of integers (labels, raw images). */
sdlf_status cpu_gather_integers(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_shuffle(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_next_batch(sdlf_calculator *calculator, const sdlf_operation *operation);

/* binary of integers and booleans. */
sdlf_status cpu_binary_integers(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_select(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_gather(sdlf_calculator *calculator, const sdlf_operation *operation);
/* True for a resample of single elements that only moves them. */
bool cpu_resample_moves(const sdlf_operation *operation);
sdlf_status cpu_resample(sdlf_calculator *calculator, const sdlf_operation *operation);

/* The position that index m selects along an axis of that length; -1: none. */
int64_t cpu_index_target(const sdlf_tensor *index, int64_t m, int64_t length);

/* ---- small arithmetic ---- */

static inline int64_t cpu_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t cpu_round_up(int64_t a, int64_t b)
{
    return cpu_divide_up(a, b) * b;
}

static inline int64_t cpu_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t cpu_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
