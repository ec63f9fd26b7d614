/* SPDX-License-Identifier: MIT */
/* quantize, dequantize, quantized_add, dynamic_quantize. Contracts: <sdlf/operations/quantization.h>. Each moves its
 * operands once (the last reads x twice): floor, bytes over bandwidth. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/quantized.h"

typedef struct context {
    const sdlf_operation *operation;
    int64_t count;
} context;

static void quantize(void *argument, int64_t index, int thread)
{
    (void)thread;
    const context *all = argument;
    const sdlf_quantize_options *o = &all->operation->quantize;
    const float *x = all->operation->in[0].data;
    uint8_t *y = all->operation->out[0].data;
    const rounding to = rounding_to(o->zero, o->low, o->high);
    int64_t end = cpu_min(all->count, (index + 1) * TASK_ELEMENTS), i = index * TASK_ELEMENTS;
    for (; i + LANES <= end; i += LANES) store_bytes(y + i, round_to(load(x + i) / o->scale, &to), LANES);
    vector last = {0};
    memcpy(&last, x + i, (size_t)(end - i) * sizeof *x);
    store_bytes(y + i, round_to(last / o->scale, &to), end - i);
}

static void dequantize(void *argument, int64_t index, int thread)
{
    (void)thread;
    const context *all = argument;
    const sdlf_quantize_options *o = &all->operation->quantize;
    const quantised from = quantised_of(&all->operation->in[0], o->zero);
    const uint8_t *x = all->operation->in[0].data;
    float *y = all->operation->out[0].data;
    int64_t end = cpu_min(all->count, (index + 1) * TASK_ELEMENTS), i = index * TASK_ELEMENTS;
    for (; i + LANES <= end; i += LANES) store(y + i, differences(load_bytes(x + i, LANES), from) * o->scale);
    vector last = differences(load_bytes(x + i, end - i), from) * o->scale;
    memcpy(y + i, &last, (size_t)(end - i) * sizeof *y);
}

/* The sum of a and b, or only a if b is NULL, for `count` lanes from i on. */
static inline bytes sum_of(const sdlf_quantized_add_options *o, const uint8_t *a, quantised of_a, const uint8_t *b,
                           quantised of_b, int64_t i, int64_t count, const rounding *to)
{
    vector v = differences(load_bytes(a + i, count), of_a) * o->a_scale;
    if (b != NULL) v = v + differences(load_bytes(b + i, count), of_b) * o->b_scale;
    return round_to(v, to);
}

static void add(void *argument, int64_t index, int thread)
{
    (void)thread;
    const context *all = argument;
    const sdlf_operation *operation = all->operation;
    const sdlf_quantized_add_options *o = &operation->quantized_add;
    const quantised of_a = quantised_of(&operation->in[0], o->a_zero);
    const quantised of_b = quantised_of(&operation->in[1], o->b_zero);
    const rounding to = rounding_to(o->y_zero, o->low, o->high);
    const uint8_t *a = operation->in[0].data;
    const uint8_t *b = sdlf_tensor_present(&operation->in[1]) ? operation->in[1].data : NULL;
    uint8_t *y = operation->out[0].data;
    int64_t end = cpu_min(all->count, (index + 1) * TASK_ELEMENTS), i = index * TASK_ELEMENTS;
    for (; i + LANES <= end; i += LANES) store_bytes(y + i, sum_of(o, a, of_a, b, of_b, i, LANES, &to), LANES);
    store_bytes(y + i, sum_of(o, a, of_a, b, of_b, i, end - i, &to), end - i);
}

static sdlf_status run(const sdlf_calculator *calculator, const sdlf_operation *operation, cpu_task *task)
{
    context all = {.operation = operation, .count = sdlf_tensor_count(&operation->in[0])};
    cpu_parallel_static_exact(cpu_from_const(calculator), cpu_divide_up(all.count, TASK_ELEMENTS),
                              cpu_time_of_elements(all.count), task, &all);
    return SDLF_OK;
}

sdlf_status quantize_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run(calculator, operation, quantize);
}

sdlf_status dequantize_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run(calculator, operation, dequantize);
}

sdlf_status quantized_add_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run(calculator, operation, add);
}

/* ---- dynamic range ---- */

typedef struct range {
    float low, high;
} range;

typedef struct ranges {
    const float *x;
    int64_t count;
    range *of; /* for each task */
} ranges;

static void find_range(void *argument, int64_t index, int thread)
{
    (void)thread;
    const ranges *all = argument;
    const float *x = all->x;
    int64_t end = cpu_min(all->count, (index + 1) * TASK_ELEMENTS), i = index * TASK_ELEMENTS;
    vector low = {0}, high = {0};
    for (; i < end; i += LANES) {
        vector v = {0};
        if (i + LANES <= end)
            v = load(x + i);
        else
            memcpy(&v, x + i, (size_t)(end - i) * sizeof *x);
        low = choose(v < low, v, low), high = choose(v > high, v, high); /* a NaN changes neither */
    }
    range found = {0, 0};
    for (int lane = 0; lane < LANES; lane++) {
        found.low = low[lane] < found.low ? low[lane] : found.low;
        found.high = high[lane] > found.high ? high[lane] : found.high;
    }
    all->of[index] = found;
}

int64_t dynamic_quantize_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return cpu_divide_up(sdlf_tensor_count(&operation->in[0]), TASK_ELEMENTS) * (int64_t)sizeof(range);
}

sdlf_status dynamic_quantize_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    ranges all = {
        .x = operation->in[0].data, .count = sdlf_tensor_count(&operation->in[0]), .of = operation->workspace.data};
    int64_t tasks = cpu_divide_up(all.count, TASK_ELEMENTS);
    float low = 0, high = 0;
    cpu_parallel_static_exact(cpu_from(calculator), tasks, cpu_time_of_elements(all.count), find_range, &all);
    for (int64_t i = 0; i < tasks; i++) {
        low = all.of[i].low < low ? all.of[i].low : low;
        high = all.of[i].high > high ? all.of[i].high : high;
    }
    float scale = low == high ? 1 : (high - low) / 255;
    const rounding to = rounding_to(0, 0, 255);
    bytes zero = round_to(broadcast(-low / scale), &to);
    *(float *)operation->out[1].data = scale;
    *(uint8_t *)operation->out[2].data = zero[0];
    sdlf_operation rest = {.in = {operation->in[0]}, .out = {operation->out[0]}};
    rest.quantize = (sdlf_quantize_options){.scale = scale, .zero = zero[0], .low = 0, .high = 255};
    return run(calculator, &rest, quantize);
}
