/* SPDX-License-Identifier: MIT */
/* What the stem kernels share: their problem, and storing channels-last results. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_STEM_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_STEM_CUH

#include "calculators/cuda/conv2d/stem.h"
#include "calculators/cuda/kernels.cuh"

enum { WARP = 32 };

template <typename T> struct stem_problem {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
    int channels, height, width, filters, out_height, out_width, padding[2];
    int blocks_across, blocks_down, filter_blocks;
    int turns; /* rectangles that a block computes, one below the other */
    bool wide; /* rows of y begin at multiples of four elements */
};

/* Set operands, sizes and activation of any kernel's problem. */
template <typename T, typename Problem>
static void stem_operands(Problem &p, const sdlf_operation *op, const cuda_conv2d &g)
{
    p.x = data_of<T>(op->in[0]);
    p.w = data_of<T>(op->in[1]);
    p.bias = optional<T>(op->in[2]);
    p.residual = optional<T>(op->in[3]);
    p.y = data_of<T>(op->out[0]);
    p.activation = op->conv2d.activation;
    p.channels = static_cast<int>(g.channels);
    p.height = static_cast<int>(g.height);
    p.width = static_cast<int>(g.width);
    p.filters = static_cast<int>(g.filters);
    p.out_height = static_cast<int>(g.out_height);
    p.out_width = static_cast<int>(g.out_width);
    for (int i = 0; i < 2; i++) p.padding[i] = g.window.padding_before[i];
}

/* Row-major: all but the number of blocks, which the kernel's launcher sets. */
template <typename T> static stem_problem<T> stem_problem_of(const sdlf_operation *op, const cuda_conv2d &g)
{
    stem_problem<T> p = {};
    stem_operands<T>(p, op, g);
    p.wide = p.out_width % 4 == 0 && (reinterpret_cast<uintptr_t>(p.y) & (4 * sizeof(T) - 1)) == 0;
    return p;
}

/* Channels last: the same, with prepacked weights if there are any. */
template <typename Problem> static Problem stem_last_problem_of(const sdlf_operation *op, const cuda_conv2d &g)
{
    Problem p = {};
    stem_operands<float>(p, op, g);
    p.ready = sdlf_tensor_present(&op->prepared);
    if (p.ready) p.w = data_of<float>(op->prepared);
    p.wide = reinterpret_cast<uintptr_t>(p.y) % 16 == 0;
    return p;
}

/* Store four neighbouring filters of a pixel to y from element `at` on: sums that include the bias, plus residual, through `activate`. */
template <typename Problem, typename Function>
static __device__ __forceinline__ void stem_store(const Problem &p, int64_t at, float (&value)[4], Function activate)
{
    if (p.residual != nullptr) {
#pragma unroll
        for (int v = 0; v < 4; v++) value[v] += p.residual[at + v];
    }
#pragma unroll
    for (int v = 0; v < 4; v++) value[v] = activate(value[v]);
    if (p.wide) {
        *reinterpret_cast<float4 *>(p.y + at) = make_float4(value[0], value[1], value[2], value[3]);
    } else {
#pragma unroll
        for (int v = 0; v < 4; v++) p.y[at + v] = value[v];
    }
}

#endif
