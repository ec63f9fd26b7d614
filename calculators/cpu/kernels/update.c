/* SPDX-License-Identifier: MIT */
/* sgd_update, adam_update, rmsprop_update: one pass over gradient, weights and state. Contracts: <sdlf/operation.h>.
 *
 * Every tensor is read once and every updated one written once, which hides the few FLOPs an element. Floor: bytes over
 * the copy bandwidth; sgd with momentum moves 20 bytes a float32 parameter, adam 28, rmsprop 20. */
#include <math.h>

#include "calculators/cpu/kernels/kernels.h"

typedef struct update {
    const element *g;
    element *w, *s, *t; /* weights and state; s and t may be NULL */
    int64_t count;
    element rate, scale;
    element first_correction, second_correction; /* adam: 1 / (1 - beta^t) */
    const sdlf_operation *operation;
} update;

static sdlf_status run_update(sdlf_calculator *calculator, const sdlf_operation *operation, cpu_task *task, update *all)
{
    all->g = input(operation, 0);
    all->w = output(operation, 0);
    all->s = output(operation, 1);
    all->t = output(operation, 2);
    all->count = sdlf_tensor_count(&operation->out[0]);
    all->rate = input(operation, 1)[0];
    all->scale = sdlf_tensor_present(&operation->in[2]) ? input(operation, 2)[0] : 1;
    all->operation = operation;
    if (all->scale == 0) return SDLF_OK; /* the step is skipped */
    cpu_parallel(cpu_from(calculator), cpu_divide_up(all->count, TASK_ELEMENTS), cpu_time_of_elements(all->count), task,
                 all);
    return SDLF_OK;
}

static update part_of(const update *all, int64_t index)
{
    int64_t first = index * TASK_ELEMENTS;
    update part = *all;
    part.g += first;
    part.w += first;
    if (part.s) part.s += first;
    if (part.t) part.t += first;
    part.count = cpu_min(TASK_ELEMENTS, all->count - first);
    return part;
}

static void sgd(void *context, int64_t index, int thread)
{
    update part = part_of(context, index);
    const element *g = part.g;
    element *w = part.w, *v = part.s;
    element rate = part.rate, scale = part.scale, decay = (element)part.operation->sgd.decay;
    element momentum = (element)part.operation->sgd.momentum;
    element on_velocity = part.operation->sgd.nesterov ? momentum : 1, on_gradient = part.operation->sgd.nesterov;
    (void)thread;
    if (!v) {
#pragma omp simd
        for (int64_t i = 0; i < part.count; i++) w[i] -= rate * (g[i] * scale + decay * w[i]);
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < part.count; i++) {
        element gradient = g[i] * scale + decay * w[i];
        v[i] = momentum * v[i] + gradient;
        w[i] -= rate * (on_gradient * gradient + on_velocity * v[i]);
    }
}

sdlf_status sgd_update_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    update all = {0};
    return run_update(calculator, operation, sgd, &all);
}

static void adam(void *context, int64_t index, int thread)
{
    update part = part_of(context, index);
    const element *g = part.g;
    element *w = part.w, *m = part.s, *v = part.t;
    element beta1 = (element)part.operation->adam.beta1, beta2 = (element)part.operation->adam.beta2;
    element rest1 = (element)(1 - part.operation->adam.beta1);
    element rest2 = (element)(1 - part.operation->adam.beta2);
    element epsilon = (element)part.operation->adam.epsilon, decay = (element)part.operation->adam.decay;
    bool decoupled = part.operation->adam.decoupled;
    element added_decay = decoupled ? 0 : decay, kept = decoupled ? 1 - part.rate * decay : 1;
    element rate = part.rate, scale = part.scale, first = part.first_correction, second = part.second_correction;
    (void)thread;
#pragma omp simd
    for (int64_t i = 0; i < part.count; i++) {
        element gradient = g[i] * scale + added_decay * w[i];
        m[i] = beta1 * m[i] + rest1 * gradient;
        v[i] = beta2 * v[i] + rest2 * (gradient * gradient);
        element root = IS_FLOAT ? (element)sqrtf((float)(v[i] * second)) : (element)sqrt((double)(v[i] * second));
        w[i] = kept * w[i] - rate * (m[i] * first) / (root + epsilon);
    }
}

sdlf_status adam_update_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    double t = (double)*(const int64_t *)operation->in[3].data + 1;
    update all = {.first_correction = (element)(1 / (1 - pow(operation->adam.beta1, t))),
                  .second_correction = (element)(1 / (1 - pow(operation->adam.beta2, t)))};
    return run_update(calculator, operation, adam, &all);
}

static void rmsprop(void *context, int64_t index, int thread)
{
    update part = part_of(context, index);
    const element *g = part.g;
    element *w = part.w, *v = part.s, *b = part.t;
    element rho = (element)part.operation->rmsprop.rho, rest = (element)(1 - part.operation->rmsprop.rho);
    element epsilon = (element)part.operation->rmsprop.epsilon, decay = (element)part.operation->rmsprop.decay;
    element momentum = (element)part.operation->rmsprop.momentum, rate = part.rate, scale = part.scale;
    (void)thread;
#pragma omp simd
    for (int64_t i = 0; i < part.count; i++) {
        element gradient = g[i] * scale + decay * w[i];
        v[i] = rho * v[i] + rest * (gradient * gradient);
        element root = IS_FLOAT ? (element)sqrtf((float)v[i]) : (element)sqrt((double)v[i]);
        element step = gradient / (root + epsilon);
        if (b) step = b[i] = momentum * b[i] + step;
        w[i] -= rate * step;
    }
}

sdlf_status rmsprop_update_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    update all = {0};
    return run_update(calculator, operation, rmsprop, &all);
}
