/* What the two kernels for convolutions of few channels are given. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_FEW_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_FEW_CUH

#include "calculators/cuda/conv2d/few.h"
#include "calculators/cuda/kernels.cuh"

enum { WARP = 32 };

template <typename T> struct few_problem {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
    int channels, height, width, filters, out_height, out_width, padding[2];
    int blocks_across, blocks_down, filter_blocks;
    int turns; /* rectangles that a block makes, one below the other */
    bool wide; /* rows of y begin at multiples of four numbers */
};

/* All but the blocks, which are the kernel's. */
template <typename T> static few_problem<T> few_problem_of(const sdlf_operation *op, const cuda_conv2d &g)
{
    few_problem<T> p = {};
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
    p.wide = p.out_width % 4 == 0 && (reinterpret_cast<uintptr_t>(p.y) & (4 * sizeof(T) - 1)) == 0;
    return p;
}

#endif
