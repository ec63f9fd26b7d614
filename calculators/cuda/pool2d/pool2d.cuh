/* SPDX-License-Identifier: MIT */
/* What the pooling kernels share: windows over planes of (H,W) inputs and (P,Q) outputs, with fast integer division. */
#ifndef SDLF_CALCULATORS_CUDA_POOL2D_CUH
#define SDLF_CALCULATORS_CUDA_POOL2D_CUH

#include <type_traits>

#include "calculators/cuda/divider.cuh"

template <typename Index> struct pooling {
    Index in[2], out[2]; /* height, width */
    divider<Index> by_in[2], by_out[2], by_stride[2];
    Index size[2], stride[2], dilation[2], before[2];
    bool first;         /* of tied maxima only the first counts */
    bool count_padding; /* the divisor of an average includes padding */
};

/* Geometry from inputs x (N,C,H,W) and outputs y (N,C,P,Q), or their gradients. */
template <typename Index>
static pooling<Index> pooling_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    pooling<Index> g = {};
    const sdlf_window2d &window = op->pool2d.window;
    for (int axis = 0; axis < 2; axis++) {
        g.in[axis] = static_cast<Index>(x.shape.dim[2 + axis]);
        g.out[axis] = static_cast<Index>(y.shape.dim[2 + axis]);
        g.by_in[axis] = divider<Index>(g.in[axis]);
        g.by_out[axis] = divider<Index>(g.out[axis]);
        g.by_stride[axis] = divider<Index>(window.stride[axis]);
        g.size[axis] = window.size[axis];
        g.stride[axis] = window.stride[axis];
        g.dilation[axis] = window.dilation[axis];
        g.before[axis] = window.padding_before[axis];
    }
    g.first = op->pool2d.ties == SDLF_TIES_FIRST;
    g.count_padding = op->pool2d.count_padding;
    return g;
}

/* Call function(index zero) with an integer type that can count x, y and the padding: windows reach past x's planes. */
template <typename Function>
static void with_pool_index(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y, Function function)
{
    const sdlf_window2d &window = op->pool2d.window;
    int64_t most = sdlf_tensor_count(&x) > sdlf_tensor_count(&y) ? sdlf_tensor_count(&x) : sdlf_tensor_count(&y);
    for (int axis = 0; axis < 2; axis++) {
        int64_t reach = static_cast<int64_t>(window.size[axis]) * window.dilation[axis] + window.stride[axis];
        most += 2 * reach + window.padding_before[axis];
    }
    with_narrow_index(most, function);
}

/* Plane, row and column of element e, of planes of that size. */
template <typename Index> struct pool_place {
    Index plane, row, column;
    __device__ __forceinline__ pool_place(Index e, const divider<Index> (&by)[2])
    {
        plane = divide(divide(e, by[1], column), by[0], row);
    }
};

/* The windows along an axis that may contain input i, from first to last; last < first if there is none. With dilation,
 * not all of them do: pool_holds. */
template <typename Index> struct pool_windows {
    Index first, last;
    __device__ __forceinline__ pool_windows(const pooling<Index> &g, int axis, Index i)
    {
        Index at = i + g.before[axis], reach = (g.size[axis] - 1) * g.dilation[axis];
        last = min(g.by_stride[axis].quotient(at), g.out[axis] - 1);
        first = at <= reach ? Index(0) : g.by_stride[axis].quotient(at - reach + g.stride[axis] - 1);
    }
};

template <typename Index>
static __device__ __forceinline__ bool pool_holds(const pooling<Index> &g, int axis, Index window, Index i)
{
    return g.dilation[axis] == 1 || (i + g.before[axis] - window * g.stride[axis]) % g.dilation[axis] == 0;
}

/* Square windows of SIDE with that stride on both axes and no dilation, as constants, so that loops over them are
 * unrolled; SIDE 0: any window. */
template <int SIDE, int STRIDE> struct pool_form {
    template <typename Index> static __device__ __forceinline__ void fix(pooling<Index> &g)
    {
        if constexpr (SIDE > 0) {
#pragma unroll
            for (int axis = 0; axis < 2; axis++) {
                g.size[axis] = SIDE;
                g.stride[axis] = STRIDE;
                g.dilation[axis] = 1;
            }
        }
    }
};

/* Call function(form) for the most common windows, and for any other. */
template <typename Function> static void with_pool_form(const sdlf_window2d &window, Function function)
{
    bool plain = window.size[0] == window.size[1] && window.stride[0] == 2 && window.stride[1] == 2 &&
                 window.dilation[0] == 1 && window.dilation[1] == 1;
    if (plain && window.size[0] == 2)
        function(pool_form<2, 2>());
    else if (plain && window.size[0] == 3)
        function(pool_form<3, 2>());
    else
        function(pool_form<0, 0>());
}

/* Call function(SIDE) with the side of a square window, 2 or 3, as a constant, to unroll its loops; 0: any other. */
template <typename Function> static void with_pool_side(const sdlf_window2d &window, Function function)
{
    int side = window.size[0] == window.size[1] ? window.size[0] : 0;
    if (side == 2)
        function(std::integral_constant<int, 2>());
    else if (side == 3)
        function(std::integral_constant<int, 3>());
    else
        function(std::integral_constant<int, 0>());
}

#endif
