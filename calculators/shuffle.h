/* SPDX-License-Identifier: MIT */
/* shuffle for calculators in host memory: once an epoch, and fast enough (see framework/shuffle.c). */
#ifndef SDLF_CALCULATORS_SHUFFLE_H
#define SDLF_CALCULATORS_SHUFFLE_H

#include <sdlf/calculator.h>
#include <sdlf/dataset.h>

/* One key for each sample. */
static inline int64_t sdlf_shuffle_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_tensor_count(&operation->out[0]) * (int64_t)sizeof(uint64_t);
}

static inline sdlf_status sdlf_shuffle_on_host(const sdlf_operation *operation)
{
    const sdlf_tensor *order = &operation->out[0];
    int64_t epoch = *(const int64_t *)operation->in[0].data;
    sdlf_shuffle_order(order->data, operation->workspace.data, sdlf_tensor_count(order), operation->shuffle.seed,
                       (uint32_t)epoch);
    return SDLF_OK;
}

#endif
