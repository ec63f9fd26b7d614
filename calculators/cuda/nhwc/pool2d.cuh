/* SPDX-License-Identifier: MIT */
/* Pooling of images (N,H,W,C), C a multiple of 8: one thread per 8 channels of a pixel, or of a window. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_POOL2D_CUH
#define SDLF_CALCULATORS_CUDA_NHWC_POOL2D_CUH

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/pool2d/pool2d.cuh"

template <typename Index> struct pool_nhwc {
    pooling<Index> windows;
    divider<Index> vectors; /* of 8 channels */
    int64_t count;          /* vectors to compute */
};

template <typename Index>
static pool_nhwc<Index> pool_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y,
                                const sdlf_tensor &written)
{
    return {pooling_of<Index>(op, x, y), divider<Index>(x.shape.dim[1] / VECTOR), sdlf_tensor_count(&written) / VECTOR};
}

/* Call function(zero of the element type, index zero). */
template <typename Function>
static void with_pool(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y, Function function)
{
    with_storage(x.dtype, [&](auto zero) { with_pool_index(op, x, y, [&](auto index) { function(zero, index); }); });
}

/* Max pooling, backward; as pool2d_backward_nhwc. */
sdlf_status max_pool2d_backward_nhwc(const cuda_calculator *calculator, const sdlf_operation *op);

#endif
