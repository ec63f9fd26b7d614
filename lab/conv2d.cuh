/* SPDX-License-Identifier: MIT */
/* What the teaching kernels of convolution share: the operands of a forward convolution, index helpers, and the epilogue of a sum. */
#ifndef SDLF_LAB_CONV2D_CUH
#define SDLF_LAB_CONV2D_CUH

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/kernels.cuh"
#include "lab/conv2d.h"

template <typename T> struct operands {
    const T *x, *w, *bias, *residual;
    T *y;
    cuda_conv2d g;
    sdlf_activation activation;
};

template <typename T> static operands<T> operands_of(const sdlf_operation *op)
{
    return {data_of<T>(op->in[0]),  data_of<T>(op->in[1]),  optional<T>(op->in[2]),
            optional<T>(op->in[3]), data_of<T>(op->out[0]), cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]),
            op->conv2d.activation};
}

/* The indices of output e, linearised over n, k, p and q. */
struct place {
    int64_t n, k, p, q;
};

static __device__ __forceinline__ place place_of(const cuda_conv2d &g, int64_t e)
{
    return {e / (g.out_width * g.out_height * g.filters), e / (g.out_width * g.out_height) % g.filters,
            e / g.out_width % g.out_height, e % g.out_width};
}

/* Row (axis 0) or column (axis 1) of the image that window position r (or s) of output p (or q) reads; it may be outside. */
static __device__ __forceinline__ int64_t reads(const cuda_conv2d &g, int axis, int64_t output, int position)
{
    return output * g.window.stride[axis] + static_cast<int64_t>(position) * g.window.dilation[axis] -
           g.window.padding_before[axis];
}

/* Image n from the first channel that filter k reads. */
template <typename T> static __device__ __forceinline__ const T *image_of(const operands<T> &o, int64_t n, int64_t k)
{
    return o.x + (n * o.g.channels + k / o.g.group_filters * o.g.group_channels) * o.g.height * o.g.width;
}

template <typename T> static __device__ __forceinline__ const T *filter_of(const operands<T> &o, int64_t k)
{
    return o.w + k * o.g.group_channels * o.g.window.size[0] * o.g.window.size[1];
}

/* y[e] = act(sum + bias[k] + residual[e]). */
template <typename T> static __device__ __forceinline__ void put(const operands<T> &o, int64_t e, int64_t k, T sum)
{
    if (o.bias != nullptr) sum += o.bias[k];
    if (o.residual != nullptr) sum += o.residual[e];
    o.y[e] = activate(o.activation, sum);
}

#endif
