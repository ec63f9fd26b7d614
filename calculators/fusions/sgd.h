/* SPDX-License-Identifier: MIT */
/* Shared by fusions with the SGD updates of weights and a bias: whether their two rules are equal but for the decay. */
#ifndef SDLF_CALCULATORS_FUSIONS_SGD_H
#define SDLF_CALCULATORS_FUSIONS_SGD_H

#include <sdlf/operation.h>

/* True if both follow the same rule, and both or neither have a velocity. */
static inline bool sgd_is_one_rule(const sdlf_operation *weights, const sdlf_operation *bias)
{
    return weights->sgd.momentum == bias->sgd.momentum && weights->sgd.nesterov == bias->sgd.nesterov &&
           !sdlf_tensor_present(&bias->in[2]) &&
           sdlf_tensor_present(&weights->out[1]) == sdlf_tensor_present(&bias->out[1]);
}

static inline sdlf_sgd_rule sgd_of_weights(sdlf_sgd_rule both)
{
    both.bias_decay = 0;
    return both;
}

static inline sdlf_sgd_rule sgd_of_bias(sdlf_sgd_rule both)
{
    both.decay = both.bias_decay;
    both.bias_decay = 0;
    return both;
}

#endif
