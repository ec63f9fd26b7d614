/* SPDX-License-Identifier: MIT */
/* binary and binary_backward of floats. Contracts: <sdlf/operation.h>.
 *
 * The operands are iterated by rows (strided.h): in each row, a and b have stride 1, stride 0, or another stride. The first
 * two are separate loops, which the compiler vectorises; operands with another stride are first gathered into a block. Moves
 * each operand once: floor, bytes over bandwidth; power is a library call for each element, except for squares and cubes. */
#include <math.h>

#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/strided.h"

enum { BLOCK = 512 };

typedef struct binary {
    const element *a, *b, *dy;
    element *y, *da, *db;
    uint8_t *truth;
    int64_t a_step, b_step;
    element number;
    sdlf_binary_function function;
} binary;

static inline element power(element a, element b)
{
    return IS_FLOAT ? (element)powf((float)a, (float)b) : (element)pow((double)a, (double)b);
}

static inline element logarithm(element a)
{
    return IS_FLOAT ? (element)logf((float)a) : (element)log((double)a);
}

static inline element remainder_of(element a, element b)
{
    return IS_FLOAT ? (element)fmodf((float)a, (float)b) : (element)fmod((double)a, (double)b);
}

/* The floored remainder of a / b. */
static inline element modulo(element a, element b)
{
    element rest = remainder_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline element rounded_down(element a)
{
    return IS_FLOAT ? (element)floorf((float)a) : (element)floor((double)a);
}

/* Squares (in normalizations) and cubes (in GELU) as multiplications; they equal the library's pow but for the last bit. */
static inline __attribute__((always_inline)) void powers(element *y, const element *a, int64_t a_step, const element *b,
                                                         int64_t b_step, int64_t count)
{
    if (b_step == 0 && *b == 2) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] * a[i * a_step];
    } else if (b_step == 0 && *b == 3) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] * a[i * a_step] * a[i * a_step];
    } else {
        for (int64_t i = 0; i < count; i++) y[i] = power(a[i * a_step], b[i * b_step]);
    }
}

/* ---- y = a op b; a_step and b_step are 0 or 1, and compile-time constants where this is inlined ---- */

static inline __attribute__((always_inline)) void arithmetic(element *y, const element *a, int64_t a_step,
                                                             const element *b, int64_t b_step, int64_t count,
                                                             sdlf_binary_function function)
{
    switch (function) {
    case SDLF_BINARY_ADD:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] + b[i * b_step];
        break;
    case SDLF_BINARY_SUBTRACT:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] - b[i * b_step];
        break;
    case SDLF_BINARY_MULTIPLY:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] * b[i * b_step];
        break;
    case SDLF_BINARY_DIVIDE:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] / b[i * b_step];
        break;
    case SDLF_BINARY_MINIMUM: /* NaN wins: b is chosen only where a is a number that is not below it */
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            element s = a[i * a_step], t = b[i * b_step];
            y[i] = ((s < t) | (s != s)) ? s : t;
        }
        break;
    case SDLF_BINARY_MAXIMUM:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            element s = a[i * a_step], t = b[i * b_step];
            y[i] = ((s > t) | (s != s)) ? s : t;
        }
        break;
    case SDLF_BINARY_PRELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] < 0 ? b[i * b_step] * a[i * a_step] : a[i * a_step];
        break;
    case SDLF_BINARY_REMAINDER:
        for (int64_t i = 0; i < count; i++) y[i] = remainder_of(a[i * a_step], b[i * b_step]);
        break;
    case SDLF_BINARY_MODULO:
        for (int64_t i = 0; i < count; i++) y[i] = modulo(a[i * a_step], b[i * b_step]);
        break;
    default: powers(y, a, a_step, b, b_step, count); break;
    }
}

static inline __attribute__((always_inline)) void compare(uint8_t *y, const element *a, int64_t a_step,
                                                          const element *b, int64_t b_step, int64_t count,
                                                          sdlf_binary_function function)
{
    switch (function) {
    case SDLF_BINARY_EQUAL:
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] == b[i * b_step];
        break;
    case SDLF_BINARY_LESS:
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] < b[i * b_step];
        break;
    default:
        for (int64_t i = 0; i < count; i++) y[i] = a[i * a_step] <= b[i * b_step];
        break;
    }
}

/* Gathers a strided operand into a contiguous block. */
static const element *as_run(element *block, const element *from, int64_t step, int64_t count)
{
    if (step == 0 || step == 1) return from;
    for (int64_t i = 0; i < count; i++) block[i] = from[i * step];
    return block;
}

static void forward_block(const binary *all, int64_t at, const element *a, int64_t a_step, const element *b,
                          int64_t b_step, int64_t count)
{
    if (all->truth) {
        if (a_step && b_step) compare(all->truth + at, a, 1, b, 1, count, all->function);
        if (a_step && !b_step) compare(all->truth + at, a, 1, b, 0, count, all->function);
        if (!a_step && b_step) compare(all->truth + at, a, 0, b, 1, count, all->function);
        if (!a_step && !b_step) compare(all->truth + at, a, 0, b, 0, count, all->function);
        return;
    }
    element *y = all->y + at;
    if (a_step && b_step) arithmetic(y, a, 1, b, 1, count, all->function);
    if (a_step && !b_step) arithmetic(y, a, 1, b, 0, count, all->function);
    if (!a_step && b_step) arithmetic(y, a, 0, b, 1, count, all->function);
    if (!a_step && !b_step) arithmetic(y, a, 0, b, 0, count, all->function);
}

static void backward_block(const binary *all, int64_t at, const element *a, int64_t a_step, const element *b,
                           int64_t b_step, int64_t count)
{
    const element half = (element)0.5;
    for (int64_t i = 0; i < count; i++) {
        element s = a[i * a_step], t = b[i * b_step], by_a = 1, by_b = 1;
        switch (all->function) {
        case SDLF_BINARY_SUBTRACT: by_b = -1; break;
        case SDLF_BINARY_MULTIPLY: by_a = t, by_b = s; break;
        case SDLF_BINARY_DIVIDE: by_a = 1 / t, by_b = -s / (t * t); break;
        case SDLF_BINARY_POWER:
            by_a = all->da ? t * power(s, t - 1) : 0;
            by_b = all->db && s != 0 ? power(s, t) * logarithm(s) : 0;
            break;
        case SDLF_BINARY_MINIMUM: by_a = s < t ? 1 : s == t ? half : 0, by_b = 1 - by_a; break;
        case SDLF_BINARY_MAXIMUM: by_a = s > t ? 1 : s == t ? half : 0, by_b = 1 - by_a; break;
        case SDLF_BINARY_PRELU: by_a = s < 0 ? t : 1, by_b = s < 0 ? s : 0; break;
        case SDLF_BINARY_REMAINDER: by_b = s / t < 0 ? rounded_down(-s / t) : -rounded_down(s / t); break;
        case SDLF_BINARY_MODULO: by_b = -rounded_down(s / t); break;
        default: break;
        }
        if (all->da) all->da[at + i] = all->dy[at + i] * by_a;
        if (all->db) all->db[at + i] = all->dy[at + i] * by_b;
    }
}

static void row(const void *context, const int64_t *offset, int64_t count)
{
    const binary *all = context;
    element a_block[BLOCK], b_block[BLOCK];
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t some = cpu_min(BLOCK, count - first), at = offset[0] + first;
        const element *a = &all->number, *b = &all->number;
        if (all->a) a = as_run(a_block, all->a + offset[1] + first * all->a_step, all->a_step, some);
        if (all->b) b = as_run(b_block, all->b + offset[2] + first * all->b_step, all->b_step, some);
        int64_t a_step = all->a && all->a_step != 0, b_step = all->b && all->b_step != 0;
        (all->dy ? backward_block : forward_block)(all, at, a, a_step, b, b_step, some);
    }
}

static sdlf_status run(sdlf_calculator *calculator, const sdlf_operation *operation, binary all,
                       const sdlf_tensor *whole)
{
    const sdlf_tensor *const operand[] = {whole, &operation->in[0], &operation->in[1]};
    cpu_strided strided = cpu_strided_of(operand, 3);
    all.a = sdlf_tensor_present(operand[1]) ? operand[1]->data : NULL;
    all.b = sdlf_tensor_present(operand[2]) ? operand[2]->data : NULL;
    all.a_step = cpu_strided_step(&strided, 1);
    all.b_step = cpu_strided_step(&strided, 2);
    all.number = (element)operation->binary.scalar;
    all.function = operation->binary.function;
    cpu_strided_run(cpu_from(calculator), &strided, row, &all, false);
    return SDLF_OK;
}

sdlf_status binary_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *y = &operation->out[0];
    bool truth = y->dtype == SDLF_BOOL;
    binary all = {.y = truth ? NULL : y->data, .truth = truth ? y->data : NULL};
    return run(calculator, operation, all, y);
}

sdlf_status binary_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    binary all = {.dy = operation->in[2].data,
                  .da = sdlf_tensor_present(&operation->out[0]) ? output(operation, 0) : NULL,
                  .db = sdlf_tensor_present(&operation->out[1]) ? output(operation, 1) : NULL};
    return run(calculator, operation, all, &operation->in[2]);
}
