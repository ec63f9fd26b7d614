/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd in one pass over w, for few rows of x (gemm_backward_sgd_skinny.c), and what both paths share. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_BACKWARD_SGD_SKINNY_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_BACKWARD_SGD_SKINNY_H

#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"
#include "calculators/fusions/gemm_backward_sgd.h"

typedef struct sgd_rule {
    element rate, momentum, decay;
    bool nesterov;
} sgd_rule;

static inline sgd_rule rule_of(const sdlf_operation *operation)
{
    const sdlf_sgd_rule *sgd = &gemm_backward_sgd_options_of(operation)->sgd;
    return (sgd_rule){.momentum = (element)sgd->momentum, .decay = (element)sgd->decay, .nesterov = sgd->nesterov};
}

/* Prefetches TILE_ROWS rows, which are too far apart for the hardware prefetcher. */
static inline void fetch_rows(const element *w, const element *v, int64_t row, int64_t columns)
{
    for (int64_t i = 0; i < TILE_ROWS; i++, w += row) {
        for (int64_t j = 0; j < columns; j += 64 / (int64_t)sizeof(element)) {
            __builtin_prefetch(w + j, 1);
            if (v) __builtin_prefetch(v + i * row + j, 1);
        }
    }
}

/* The formulas of sgd_update, for `count` elements of a row; v may be NULL. */
static inline __attribute__((always_inline)) void update_row(const sgd_rule *rule, element *w, element *v,
                                                             const element *g, int64_t count)
{
    const element rate = rule->rate, momentum = rule->momentum, decay = rule->decay;
    if (!v) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) w[i] -= rate * (g[i] + decay * w[i]);
        return;
    }
    const element ahead = rule->nesterov ? momentum : 1, now = rule->nesterov;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        element step = g[i] + decay * w[i], velocity = momentum * v[i] + step;
        v[i] = velocity;
        w[i] -= rate * (now * step + ahead * velocity);
    }
}

int64_t gemm_backward_sgd_skinny_workspace_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void gemm_backward_sgd_skinny_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

#endif
