/* SPDX-License-Identifier: MIT */
/* activation_forward, activation_backward, add: elementwise. Contracts: <sdlf/operation.h>.
 *
 * Each operand is moved once, and memory time hides the arithmetic, except for sigmoid and tanh within the caches.
 * Floor: the operands' bytes over the bandwidth of the memory level that holds them. Outputs may alias inputs
 * elementwise, so the loops declare that there is no other dependence (omp simd). */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/kernels.h"

typedef struct elements {
    const element *a, *b;
    element *y;
    int64_t count;
    sdlf_activation activation;
} elements;

static sdlf_status run_elements(sdlf_calculator *calculator, const sdlf_operation *operation, cpu_task *task,
                                sdlf_activation activation)
{
    elements all = {.a = input(operation, 0),
                    .b = input(operation, 1),
                    .y = output(operation, 0),
                    .count = sdlf_tensor_count(&operation->out[0]),
                    .activation = activation};
    cpu_parallel_static(cpu_from(calculator), cpu_divide_up(all.count, TASK_ELEMENTS), cpu_time_of_elements(all.count),
                        task, &all);
    return SDLF_OK;
}

static elements part_of(const elements *all, int64_t index)
{
    int64_t first = index * TASK_ELEMENTS;
    return (elements){.a = all->a + first,
                      .b = all->b ? all->b + first : NULL,
                      .y = all->y + first,
                      .count = cpu_min(TASK_ELEMENTS, all->count - first),
                      .activation = all->activation};
}

static void forward(void *context, int64_t index, int thread)
{
    elements part = part_of(context, index);
    (void)thread;
    activate_cpu(part.y, part.a, part.count, &part.activation);
}

sdlf_status activation_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_elements(calculator, operation, forward, operation->activation);
}

static void add_part(void *context, int64_t index, int thread)
{
    elements part = part_of(context, index);
    (void)thread;
#pragma omp simd
    for (int64_t i = 0; i < part.count; i++) part.y[i] = part.a[i] + part.b[i];
    activate_cpu(part.y, part.y, part.count, &part.activation);
}

sdlf_status add_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_elements(calculator, operation, add_part, operation->add.activation);
}

/* a is v, b is dy. */
static void backward(void *context, int64_t index, int thread)
{
    elements part = part_of(context, index);
    (void)thread;
    activation_gradient_cpu(part.y, part.a, part.b, part.count, &part.activation);
}

sdlf_status activation_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_elements(calculator, operation, backward, operation->activation);
}
