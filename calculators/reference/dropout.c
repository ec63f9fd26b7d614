/* SPDX-License-Identifier: MIT */
/* dropout: y = x m / (1 - p), where m is 0 with probability p; the gradient is masked by the same m, drawn again.
 *
 * Element e, counted from operation->dropout.first on, uses word e % 4 of group e / 4 of Philox(seed, ., stream, step). */
#include "calculators/reference/reference.h"
#include "framework/operations/draws.h"

static sdlf_status drop(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t step = *(const int64_t *)operation->in[1].data;
    uint32_t threshold = sdlf_dropout_threshold(operation->dropout.probability);
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        uint64_t number = (uint64_t)(operation->dropout.first + e);
        sdlf_philox group =
            sdlf_philox4x32(operation->dropout.seed, number / 4, operation->dropout.stream, (uint32_t)step);
        bool kept = sdlf_dropout_keeps(group.word[number % 4], threshold);
        put(y, e, kept ? get(x, e) / (1 - (double)operation->dropout.probability) : 0);
    }
    return SDLF_OK;
}

sdlf_status dropout_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return drop(operation);
}

sdlf_status dropout_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return drop(operation);
}
