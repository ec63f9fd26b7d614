/* SPDX-License-Identifier: MIT */
/* next_batch for calculators in host memory. It moves a few hundred bytes: there is nothing to optimise. */
#ifndef SDLF_CALCULATORS_NEXT_BATCH_H
#define SDLF_CALCULATORS_NEXT_BATCH_H

#include <sdlf/calculator.h>

#include <string.h>

static inline sdlf_status sdlf_next_batch_on_host(const sdlf_operation *operation)
{
    const sdlf_tensor *index = &operation->out[1], *rate = &operation->out[2];
    int64_t *cursor = operation->out[0].data;
    size_t size = sdlf_dtype_size(rate->dtype);
    const int32_t *order = (const int32_t *)operation->in[0].data + *cursor * index->shape.dim[0];
    memcpy(index->data, order, (size_t)index->shape.dim[0] * sizeof *order);
    memcpy(rate->data, (const char *)operation->in[1].data + (size_t)*cursor * size, size);
    if (sdlf_tensor_present(&operation->out[4])) {
        const int32_t *labels = operation->in[3].data;
        int32_t *batch_labels = operation->out[4].data;
        for (int64_t n = 0; n < index->shape.dim[0]; n++) batch_labels[n] = labels[order[n]];
    }
    *(int64_t *)operation->out[3].data = *(const int64_t *)operation->in[2].data + *cursor;
    ++*cursor;
    return SDLF_OK;
}

#endif
