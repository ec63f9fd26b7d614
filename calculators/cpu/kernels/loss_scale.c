/* SPDX-License-Identifier: MIT */
/* check_finite, loss_scale_update. Contracts: <sdlf/operation.h>. The first reads x once. */
#include <math.h>
#include <stdatomic.h>

#include "calculators/cpu/kernels/kernels.h"

typedef struct checking {
    const element *x;
    int64_t count;
    atomic_bool found;
} checking;

/* 0 x is NaN if x is not finite. */
static void check(void *context, int64_t index, int thread)
{
    checking *all = context;
    const element *x = all->x + index * TASK_ELEMENTS;
    int64_t count = cpu_min(TASK_ELEMENTS, all->count - index * TASK_ELEMENTS);
    element sum = 0;
    (void)thread;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += 0 * x[i];
    if (isnan(sum)) atomic_store_explicit(&all->found, true, memory_order_relaxed);
}

sdlf_status check_finite_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    checking all = {.x = input(operation, 0), .count = sdlf_tensor_count(&operation->in[0])};
    cpu_parallel(cpu_from(calculator), cpu_divide_up(all.count, TASK_ELEMENTS), cpu_time_of_elements(all.count), check,
                 &all);
    if (all.found) output(operation, 0)[0] = 1;
    return SDLF_OK;
}

sdlf_status loss_scale_update_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    enum { SCALE, GOOD, SKIPPED };
    const sdlf_loss_scale_rule *rule = &operation->loss_scale;
    const element growth = (element)rule->growth, backoff = (element)rule->backoff;
    const element largest = (element)0x1p64, smallest = (element)0x1p-64;
    element *state = output(operation, 0), scale = state[SCALE];
    bool found = input(operation, 0)[0] != 0;
    (void)calculator;
    output(operation, 1)[0] = found ? 0 : 1 / scale;
    state[GOOD] = found ? 0 : state[GOOD] + 1;
    if (found) state[SKIPPED]++;
    if (found && rule->interval > 0) state[SCALE] = backoff * scale > smallest ? backoff * scale : smallest;
    if (rule->interval > 0 && state[GOOD] >= (element)rule->interval) {
        state[GOOD] = 0;
        if (growth * scale <= largest) state[SCALE] = growth * scale;
    }
    *(int64_t *)operation->out[2].data = *(const int64_t *)operation->in[1].data - (int64_t)state[SKIPPED];
    return SDLF_OK;
}
