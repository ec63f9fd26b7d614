/* SPDX-License-Identifier: MIT */
/* binary of integers and booleans, and select of any type, which use no floating-point vectors. Contracts: <sdlf/operation.h>.
 *
 * Integers are widened to 64 bits in blocks, where they wrap around as specified; the low bits are stored. Moves each operand
 * once. */
#include "calculators/cpu/strided.h"
#include "calculators/integer_functions.h"

#include <string.h>

enum { BLOCK = 256 };

typedef struct integers {
    sdlf_dtype from, to;
    sdlf_binary_function function;
    const char *in[2]; /* NULL: the scalar `number` */
    char *out;
    int64_t step[2], number;
} integers;

/* `dtype` and `step` are constants after inlining. */
static inline __attribute__((always_inline)) void widen(int64_t *wide, const char *from, const sdlf_dtype dtype,
                                                        int64_t step, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case SDLF_INT64: wide[i] = ((const int64_t *)from)[i * step]; break;
        case SDLF_INT32: wide[i] = ((const int32_t *)from)[i * step]; break;
        case SDLF_INT8: wide[i] = ((const int8_t *)from)[i * step]; break;
        default: wide[i] = ((const uint8_t *)from)[i * step]; break;
        }
    }
}

static inline __attribute__((always_inline)) void widen_type(int64_t *wide, const char *from, sdlf_dtype dtype,
                                                             int64_t step, int64_t count)
{
    switch (dtype) {
    case SDLF_INT64: widen(wide, from, SDLF_INT64, step, count); break;
    case SDLF_INT32: widen(wide, from, SDLF_INT32, step, count); break;
    case SDLF_INT8: widen(wide, from, SDLF_INT8, step, count); break;
    default: widen(wide, from, SDLF_UINT8, step, count); break;
    }
}

static void load(int64_t *wide, const integers *all, int operand, int64_t offset, int64_t count)
{
    const char *from = all->in[operand];
    if (from == NULL) {
        for (int64_t i = 0; i < count; i++) wide[i] = all->number;
        return;
    }
    from += offset * (int64_t)sdlf_dtype_size(all->from);
    if (all->step[operand] == 1) {
        widen_type(wide, from, all->from, 1, count);
    } else {
        widen_type(wide, from, all->from, all->step[operand], count);
    }
}

static inline __attribute__((always_inline)) int64_t apply(int64_t a, int64_t b, const sdlf_binary_function function)
{
    switch (function) {
    case SDLF_BINARY_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SDLF_BINARY_SUBTRACT: return (int64_t)((uint64_t)a - (uint64_t)b);
    case SDLF_BINARY_MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
    case SDLF_BINARY_DIVIDE: return b == 0 ? 0 : b == -1 ? (int64_t) - (uint64_t)a : a / b;
    case SDLF_BINARY_POWER: return sdlf_integer_power(a, b);
    case SDLF_BINARY_MINIMUM: return a < b ? a : b;
    case SDLF_BINARY_MAXIMUM: return a > b ? a : b;
    case SDLF_BINARY_REMAINDER: return sdlf_integer_remainder(a, b);
    case SDLF_BINARY_MODULO: return sdlf_integer_modulo(a, b);
    case SDLF_BINARY_BIT_AND: return a & b;
    case SDLF_BINARY_BIT_OR: return a | b;
    case SDLF_BINARY_BIT_XOR: return a ^ b;
    case SDLF_BINARY_SHIFT_LEFT: return sdlf_integer_shift_left(a, b);
    case SDLF_BINARY_SHIFT_RIGHT: return sdlf_integer_shift_right(a, b);
    case SDLF_BINARY_EQUAL: return a == b;
    case SDLF_BINARY_LESS: return a < b;
    case SDLF_BINARY_LESS_EQUAL: return a <= b;
    case SDLF_BINARY_AND: return a && b;
    case SDLF_BINARY_OR: return a || b;
    default: return a != b;
    }
}

/* a = function(a, b). The functions of index arithmetic have loops of their own, which are vectorised. */
static void compute(int64_t *restrict a, const int64_t *restrict b, int64_t count, sdlf_binary_function function)
{
    switch (function) {
    case SDLF_BINARY_ADD:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_ADD);
        break;
    case SDLF_BINARY_SUBTRACT:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_SUBTRACT);
        break;
    case SDLF_BINARY_MULTIPLY:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_MULTIPLY);
        break;
    case SDLF_BINARY_EQUAL:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_EQUAL);
        break;
    case SDLF_BINARY_LESS:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_LESS);
        break;
    case SDLF_BINARY_LESS_EQUAL:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_LESS_EQUAL);
        break;
    case SDLF_BINARY_AND:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_AND);
        break;
    case SDLF_BINARY_OR:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], SDLF_BINARY_OR);
        break;
    default:
        for (int64_t i = 0; i < count; i++) a[i] = apply(a[i], b[i], function);
        break;
    }
}

static void store(const integers *all, int64_t at, const int64_t *y, int64_t count)
{
    switch (all->to) {
    case SDLF_INT64: memcpy((int64_t *)all->out + at, y, (size_t)count * sizeof *y); break;
    case SDLF_INT32:
        for (int64_t i = 0; i < count; i++) ((uint32_t *)all->out)[at + i] = (uint32_t)y[i];
        break;
    default:
        for (int64_t i = 0; i < count; i++) ((uint8_t *)all->out)[at + i] = (uint8_t)y[i];
        break;
    }
}

static void integers_row(const void *context, const int64_t *offset, int64_t count)
{
    const integers *all = context;
    int64_t a[BLOCK], b[BLOCK];
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t some = cpu_min(BLOCK, count - first), at = offset[0] + first;
        load(a, all, 0, offset[1] + first * all->step[0], some);
        load(b, all, 1, offset[2] + first * all->step[1], some);
        compute(a, b, some, all->function);
        store(all, at, a, some);
    }
}

sdlf_status cpu_binary_integers(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *y = &operation->out[0], *const operand[] = {y, &operation->in[0], &operation->in[1]};
    cpu_strided strided = cpu_strided_of(operand, 3);
    integers all = {.from = operation->in[sdlf_tensor_present(&operation->in[0]) ? 0 : 1].dtype,
                    .to = y->dtype,
                    .function = operation->binary.function,
                    .in = {operation->in[0].data, operation->in[1].data},
                    .out = y->data,
                    .step = {cpu_strided_step(&strided, 1), cpu_strided_step(&strided, 2)}};
    int64_t element;
    sdlf_convert(all.from, &element, SDLF_FLOAT64, &operation->binary.scalar, 1);
    sdlf_convert(SDLF_INT64, &all.number, all.from, &element, 1);
    cpu_strided_run(cpu_from(calculator), &strided, integers_row, &all, true);
    return SDLF_OK;
}

/* ---- select ---- */

typedef struct selection {
    const uint8_t *condition;
    const char *in[2]; /* NULL: zeros */
    char *out;
    int64_t step[3], size;
} selection;

typedef uint32_t __attribute__((may_alias)) word; /* any 4-byte element */

/* Dense conditions and 4-byte elements: both values are loaded and one is stored, without a branch, so that the loop is
 * vectorised. Steps are constants after inlining; y may be a or b. */
static inline __attribute__((always_inline)) void select_words(word *y, const uint8_t *condition, const word *a,
                                                               const int64_t a_step, const word *b,
                                                               const int64_t b_step, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        word one = a[i * a_step], other = b[i * b_step];
        y[i] = condition[i] ? one : other;
    }
}

/* Steps in bytes. */
static inline __attribute__((always_inline)) void select_elements(char *y, const uint8_t *condition, int64_t c_step,
                                                                  const char *a, int64_t a_step, const char *b,
                                                                  int64_t b_step, const size_t size, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memmove(y + i * (int64_t)size, condition[i * c_step] ? a + i * a_step : b + i * b_step, size);
}

static void select_row(const void *context, const int64_t *offset, int64_t count)
{
    const selection *all = context;
    static const _Alignas(8) char zero[8];
    const uint8_t *condition = all->condition + offset[1];
    const char *a = all->in[0] ? all->in[0] + offset[2] * all->size : zero;
    const char *b = all->in[1] ? all->in[1] + offset[3] * all->size : zero;
    int64_t a_step = all->in[0] ? all->step[1] * all->size : 0, b_step = all->in[1] ? all->step[2] * all->size : 0;
    char *y = all->out + offset[0] * all->size;
    if (all->step[0] == 0) { /* one condition for the whole row */
        const char *from = *condition ? a : b;
        int64_t step = *condition ? a_step : b_step, size = all->size;
        if (step == size) memmove(y, from, (size_t)(count * size));
        for (int64_t i = 0; step != size && i < count; i++) memcpy(y + i * size, from + i * step, (size_t)size);
        return;
    }
    bool dense = all->step[0] == 1 && all->size == 4;
    word *to = (word *)(void *)y;
    const word *one = (const word *)(const void *)a, *other = (const word *)(const void *)b;
    if (dense && a_step == 4 && b_step == 4) {
        select_words(to, condition, one, 1, other, 1, count);
    } else if (dense && a_step == 4 && b_step == 0) {
        select_words(to, condition, one, 1, other, 0, count);
    } else if (dense && a_step == 0 && b_step == 4) {
        select_words(to, condition, one, 0, other, 1, count);
    } else if (all->size == 4) {
        select_elements(y, condition, all->step[0], a, a_step, b, b_step, 4, count);
    } else if (all->size == 8) {
        select_elements(y, condition, all->step[0], a, a_step, b, b_step, 8, count);
    } else if (all->size == 1) {
        select_elements(y, condition, all->step[0], a, a_step, b, b_step, 1, count);
    } else {
        select_elements(y, condition, all->step[0], a, a_step, b, b_step, (size_t)all->size, count);
    }
}

sdlf_status cpu_select(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *y = &operation->out[0];
    const sdlf_tensor *const operand[] = {y, &operation->in[0], &operation->in[1], &operation->in[2]};
    cpu_strided strided = cpu_strided_of(operand, 4);
    selection all = {.condition = operation->in[0].data,
                     .in = {operation->in[1].data, operation->in[2].data},
                     .out = y->data,
                     .size = (int64_t)sdlf_dtype_size(y->dtype)};
    for (int i = 0; i < 3; i++) all.step[i] = cpu_strided_step(&strided, i + 1);
    for (int i = 0; i < 2; i++) {
        if (!sdlf_tensor_present(&operation->in[1 + i])) all.in[i] = NULL;
    }
    cpu_strided_run(cpu_from(calculator), &strided, select_row, &all, true);
    return SDLF_OK;
}
