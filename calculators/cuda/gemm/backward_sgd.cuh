/* SPDX-License-Identifier: MIT */
/* What the kernels of gemm_backward_sgd share (see gemm/backward_sgd.h): the operation's parameters, and the bias update. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_CUH

#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/gemm/backward_sgd.h"
#include "calculators/cuda/mma.cuh"
#include "calculators/cuda/sgd.cuh"

enum { WARP = 32 };

/* The operation as a kernel parameter. dx, b and bv may be NULL; v too, but only in the narrow kernel. */
struct backward_sgd {
    const float *x, *dy, *rate;
    float *w, *v, *dx, *b, *bv;
    int rows, inputs, units;
    sdlf_sgd_rule rule;
    sdlf_activation activation;
};

static inline backward_sgd backward_sgd_of(const sdlf_operation *op)
{
    return {
        .x = data_of<float>(op->in[0]),
        .dy = data_of<float>(op->in[1]),
        .rate = data_of<float>(op->in[2]),
        .w = data_of<float>(op->out[0]),
        .v = optional<float>(op->out[1]),
        .dx = optional<float>(op->out[2]),
        .b = optional<float>(op->out[3]),
        .bv = optional<float>(op->out[4]),
        .rows = (int)op->in[0].shape.dim[0],
        .inputs = (int)op->in[0].shape.dim[1],
        .units = (int)op->in[1].shape.dim[1],
        .rule = gemm_backward_sgd_options_of(op)->sgd,
        .activation = gemm_backward_sgd_options_of(op)->activation,
    };
}

/* Update the bias of unit u, whose gradient is `sum`. */
static __device__ __forceinline__ void move_bias(const backward_sgd &s, int u, float sum, float rate)
{
    move_at(s.b + u, s.bv != nullptr ? s.bv + u : nullptr, sum, rate, s.rule, s.rule.bias_decay);
}

#endif
