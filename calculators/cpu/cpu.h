/* SPDX-License-Identifier: MIT */
/* The cpu calculator's own types: the fast one, in host memory.
 *
 * How it is put together. The loops over elements live in kernels/, written once, in C with vector types, for an element
 * type and a vector width that the compiler command names. CMake compiles that folder several times: for float and for
 * double, each for every instruction set of the machine family (plain, avx2, avx512; neon). Each compilation is an instance: one
 * table of kernel slots. Opening the calculator picks the widest set that this machine has (SDLF_SIMD=plain|avx2|avx512 in
 * the environment asks for one), and every operation goes to the instance of its element type.
 *
 * Determinism. Each output element is computed by one task, and no sum is cut by the number of threads: its parts follow
 * from the operands' shapes and are combined in a fixed order. So the same bits come out at any thread count. */
#ifndef SDLF_CALCULATORS_CPU_H
#define SDLF_CALCULATORS_CPU_H

#include <assert.h>
#include <stddef.h>

#include "calculators/registry.h"

/* One compilation of kernels/ for one element type; a kind that has no run there is NULL. */
typedef struct cpu_instance {
    sdlf_kernel_slot kernel[SDLF_OPERATION_COUNT];
    const sdlf_fused_slot *fusions;
} cpu_instance;

/* An instruction set: its name, and whether this machine has it. */
typedef struct cpu_level {
    const char *name;
    const cpu_instance *float32, *float64;
    bool (*available)(void);
    bool (*vnni)(void); /* and products of bytes, added in fours? */
} cpu_level;

/* Matrix products of an outside library, if this build has one: c (m,n) = alpha op(a) op(b) + beta c, row-major, with the
 * leading dimensions lda, ldb, ldc, computed only on the calling thread. */
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
    bool (*load)(void);                        /* before a product is asked of it: is it there? Optional; NULL: yes */
    bool (*float32)(const cpu_gemm_arguments *arguments); /* false: it had no memory, and c is undefined */
    bool (*float64)(const cpu_gemm_arguments *arguments); /* NULL: none */
} cpu_gemm_library;

enum { CPU_MAX_THREADS = 1024 };

typedef struct cpu_calculator {
    sdlf_calculator base;
    int threads, wanted; /* those that there are, and how many were to be */
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

/* One piece of work: `index` of [0, count); `thread` of [0, threads), for scratch space of one's own. */
typedef void cpu_task(void *context, int64_t index, int thread);

/* Call task(context, i, thread) once for each i, on the calculator's threads, in any order; returns when all are done.
 * `nanoseconds` is about what all of it takes one thread: little work is not shared. Denormal numbers count as zero in the
 * tasks (see denormals.h). */
void cpu_parallel(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);

/* The same for tasks in the order of the rows of an image, or of weights: each thread begins with one run of neighbouring tasks, so
 * that it finds what it wrote for one layer in its own cache when it reads that for the next, and helps the others when it is done. */
void cpu_parallel_near(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);

/* The same two for tasks that move, convert or draw numbers, and must leave every bit as it is. */
void cpu_parallel_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task, void *context);
void cpu_parallel_near_exact(const cpu_calculator *cpu, int64_t count, int64_t nanoseconds, cpu_task *task,
                             void *context);

/* One piece of a step: `index` of [0, tasks). */
typedef void cpu_step_task(void *context, int64_t step, int64_t index);

/* The same for steps each of which needs all of the one before, and is too short for a call of its own: task(context, s, i) for each s of
 * [0, steps) and each i of [0, tasks), tasks > 0, those of a step when all of the step before it are done. Each thread begins a step with the same
 * run of tasks. */
void cpu_parallel_steps(const cpu_calculator *cpu, int64_t steps, int64_t tasks, int64_t nanoseconds,
                        cpu_step_task *task, void *context);

/* Work that takes one thread less is not shared: a hand-over costs a few microseconds, and far more where other programs want the
 * processors too. */
enum { CPU_WORTH_SHARING = 20000 };

/* The time that one thread takes for that many multiplications and additions, or elements that pass through memory. */
static inline int64_t cpu_time_of_flops(int64_t flops)
{
    return flops / 100;
}

static inline int64_t cpu_time_of_elements(int64_t elements)
{
    return elements / 4;
}

/* ---- instruction sets ---- */

/* The level called `name`, or the widest that this machine has where name is NULL. */
sdlf_status cpu_level_choose(const cpu_level **level, const char *name);

/* ---- this build's matrix product library: NULL where there is none ---- */
const cpu_gemm_library *cpu_gemm_library_of_build(void);

/* ---- operations that move or draw elements of any dtype: outside the instances, whose kernels are called NAME_cpu ---- */
sdlf_status cpu_fill(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_copy(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_random_uniform(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_random_normal(sdlf_calculator *calculator, const sdlf_operation *operation);
/* gather_batch of integers (labels, raw images). */
sdlf_status cpu_gather_integers(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_shuffle(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_next_batch(sdlf_calculator *calculator, const sdlf_operation *operation);

/* binary of integers and truth values. */
sdlf_status cpu_binary_integers(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_select(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cpu_gather(sdlf_calculator *calculator, const sdlf_operation *operation);
/* resample of single elements: does it only move? */
bool cpu_resample_moves(const sdlf_operation *operation);
sdlf_status cpu_resample(sdlf_calculator *calculator, const sdlf_operation *operation);

/* Where index m points along an axis of that length; -1: nowhere. */
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
