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

static void load(int64_t *wide, const integers *all, int operand, int64_t offset, int64_t count)
{
    const char *from = all->in[operand];
    int64_t step = all->step[operand];
    for (int64_t i = 0; i < count; i++) {
        int64_t at = offset + i * step;
        switch (from ? all->from : SDLF_NONE) {
        case SDLF_NONE: wide[i] = all->number; break;
        case SDLF_INT64: wide[i] = ((const int64_t *)from)[at]; break;
        case SDLF_INT32: wide[i] = ((const int32_t *)from)[at]; break;
        case SDLF_INT8: wide[i] = ((const int8_t *)from)[at]; break;
        default: wide[i] = ((const uint8_t *)from)[at]; break;
        }
    }
}

static void compute(int64_t *y, const int64_t *a, const int64_t *b, int64_t count, sdlf_binary_function function)
{
    for (int64_t i = 0; i < count; i++) {
        switch (function) {
        case SDLF_BINARY_ADD: y[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]); break;
        case SDLF_BINARY_SUBTRACT: y[i] = (int64_t)((uint64_t)a[i] - (uint64_t)b[i]); break;
        case SDLF_BINARY_MULTIPLY: y[i] = (int64_t)((uint64_t)a[i] * (uint64_t)b[i]); break;
        case SDLF_BINARY_DIVIDE: y[i] = b[i] == 0 ? 0 : b[i] == -1 ? (int64_t) - (uint64_t)a[i] : a[i] / b[i]; break;
        case SDLF_BINARY_POWER: y[i] = sdlf_integer_power(a[i], b[i]); break;
        case SDLF_BINARY_MINIMUM: y[i] = a[i] < b[i] ? a[i] : b[i]; break;
        case SDLF_BINARY_MAXIMUM: y[i] = a[i] > b[i] ? a[i] : b[i]; break;
        case SDLF_BINARY_REMAINDER: y[i] = sdlf_integer_remainder(a[i], b[i]); break;
        case SDLF_BINARY_MODULO: y[i] = sdlf_integer_modulo(a[i], b[i]); break;
        case SDLF_BINARY_BIT_AND: y[i] = a[i] & b[i]; break;
        case SDLF_BINARY_BIT_OR: y[i] = a[i] | b[i]; break;
        case SDLF_BINARY_BIT_XOR: y[i] = a[i] ^ b[i]; break;
        case SDLF_BINARY_SHIFT_LEFT: y[i] = sdlf_integer_shift_left(a[i], b[i]); break;
        case SDLF_BINARY_SHIFT_RIGHT: y[i] = sdlf_integer_shift_right(a[i], b[i]); break;
        case SDLF_BINARY_EQUAL: y[i] = a[i] == b[i]; break;
        case SDLF_BINARY_LESS: y[i] = a[i] < b[i]; break;
        case SDLF_BINARY_LESS_EQUAL: y[i] = a[i] <= b[i]; break;
        case SDLF_BINARY_AND: y[i] = a[i] && b[i]; break;
        case SDLF_BINARY_OR: y[i] = a[i] || b[i]; break;
        default: y[i] = a[i] != b[i]; break;
        }
    }
}

static void integers_row(const void *context, const int64_t *offset, int64_t count)
{
    const integers *all = context;
    int64_t a[BLOCK], b[BLOCK], y[BLOCK];
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t some = cpu_min(BLOCK, count - first), at = offset[0] + first;
        load(a, all, 0, offset[1] + first * all->step[0], some);
        load(b, all, 1, offset[2] + first * all->step[1], some);
        compute(y, a, b, some, all->function);
        for (int64_t i = 0; i < some; i++) {
            switch (all->to) {
            case SDLF_INT64: ((int64_t *)all->out)[at + i] = y[i]; break;
            case SDLF_INT32: ((uint32_t *)all->out)[at + i] = (uint32_t)y[i]; break;
            default: ((uint8_t *)all->out)[at + i] = (uint8_t)y[i]; break;
            }
        }
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

static void select_row(const void *context, const int64_t *offset, int64_t count)
{
    const selection *all = context;
    static const char zero[8];
    const uint8_t *condition = all->condition + offset[1];
    const char *a = all->in[0] ? all->in[0] + offset[2] * all->size : zero;
    const char *b = all->in[1] ? all->in[1] + offset[3] * all->size : zero;
    int64_t a_step = all->in[0] ? all->step[1] * all->size : 0, b_step = all->in[1] ? all->step[2] * all->size : 0;
    char *y = all->out + offset[0] * all->size;
    for (int64_t i = 0; i < count; i++) {
        const char *from = condition[i * all->step[0]] ? a + i * a_step : b + i * b_step;
        switch (all->size) {
        case 1: y[i] = *from; break;
        case 4: memcpy(y + i * 4, from, 4); break;
        case 8: memcpy(y + i * 8, from, 8); break;
        default: memcpy(y + i * all->size, from, (size_t)all->size); break;
        }
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
