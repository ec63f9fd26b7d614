/* SPDX-License-Identifier: MIT */
/* Convolution forward in plain loops. See conv2d_naive.h.
 *
 * Every output reads its window separately: c R S multiplications, each with two loads and a test whether the position
 * lies inside the image. No register reuse between outputs, no vectors; only the caches help. A task computes one plane
 * (n, k). 2 N K P Q (C/G) R S FLOPs. */
#include "calculators/cpu/kernels/conv2d_naive.h"
#include "calculators/cpu/kernels/activate.h"

/* The dot product for one output: x (c,h,w) under the window at (p, q), w (c,r,s). */
static element window_sum(const convolution *v, const element *x, const element *w, int64_t p, int64_t q)
{
    element sum = 0;
    for (int64_t c = 0; c < v->c; c++) {
        for (int64_t r = 0; r < v->r; r++) {
            for (int64_t s = 0; s < v->s; s++) {
                int64_t i = p * v->stride[0] + r * v->dilation[0] - v->before[0];
                int64_t j = q * v->stride[1] + s * v->dilation[1] - v->before[1];
                if (i < 0 || i >= v->h || j < 0 || j >= v->w) continue;
                sum += x[(c * v->h + i) * v->w + j] * w[(c * v->r + r) * v->s + s];
            }
        }
    }
    return sum;
}

/* Plane `index` of y: filter index % K of image index / K. */
static void plane(void *argument, int64_t index, int thread)
{
    const convolution_forward *forward = argument;
    const convolution *v = &forward->v;
    int64_t filter = index % (v->groups * v->k), image = index / (v->groups * v->k);
    const element *x = forward->x + (image * v->groups + filter / v->k) * v->c * v->h * v->w;
    const element *w = forward->w + filter * v->taps;
    element *y = forward->y + index * v->p_q;
    element bias = forward->bias ? forward->bias[filter] : 0;
    (void)thread;
    for (int64_t p = 0; p < v->p; p++) {
        for (int64_t q = 0; q < v->q; q++) {
            element sum = window_sum(v, x, w, p, q) + bias;
            if (forward->residual) sum += forward->residual[index * v->p_q + p * v->q + q];
            y[p * v->q + q] = sum;
        }
    }
    activate_cpu(y, y, v->p_q, &forward->activation);
}

void conv2d_naive_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward)
{
    const convolution *v = &forward->v;
    cpu_parallel(cpu, v->n * v->groups * v->k, 50 * convolution_time(v), plane, (void *)forward);
}
