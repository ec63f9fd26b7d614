/* SPDX-License-Identifier: MIT */
/* What the depthwise kernels for row-major images share: strips of pixels, and windows with sizes known at compile time. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_NCHW_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_NCHW_CUH

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, STRIP = 4 };

/* Sizes are compile-time constants unless they are 0. */
template <int SIZE, int STRIDE> struct fixed_window {
    static constexpr int SIDE = SIZE, STEP = STRIDE;
    static __device__ __forceinline__ int size(const sdlf_window2d &window, int axis)
    {
        return SIZE > 0 ? SIZE : window.size[axis];
    }
    static __device__ __forceinline__ int stride(const sdlf_window2d &window, int axis)
    {
        return STRIDE > 0 ? STRIDE : window.stride[axis];
    }
    static __device__ __forceinline__ int dilation(const sdlf_window2d &window, int axis)
    {
        return SIZE > 0 ? 1 : window.dilation[axis];
    }
};

/* A pixel; 0 outside the image. */
template <typename T>
static __device__ __forceinline__ T at_or_zero(const T *image, int row, int column, int64_t height, int64_t width)
{
    bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(height) &&
                  static_cast<unsigned>(column) < static_cast<unsigned>(width);
    return inside ? __ldg(image + static_cast<int64_t>(row) * width + column) : T(0);
}

/* A thread's strip: image n, channel or filter `plane`, column, first row. */
template <int LENGTH = STRIP> struct strip {
    int64_t n, plane;
    int column, row;
    __device__ strip(unsigned e, unsigned planes, unsigned height, unsigned width)
    {
        unsigned strips = (height + LENGTH - 1) / LENGTH, rest = e / width;
        column = static_cast<int>(e % width);
        row = static_cast<int>(rest % strips * LENGTH);
        rest /= strips;
        plane = rest % planes;
        n = rest / planes;
    }
};

/* Call `function` with the matching compile-time window, or with the general one. */
template <typename Function> static void with_window(const sdlf_window2d &window, Function function)
{
    bool square = window.size[0] == window.size[1] && window.stride[0] == window.stride[1] && window.dilation[0] == 1 &&
                  window.dilation[1] == 1;
    int size = square ? window.size[0] : 0, stride = window.stride[0];
    if (size == 3 && stride == 1)
        function(fixed_window<3, 1>());
    else if (size == 3 && stride == 2)
        function(fixed_window<3, 2>());
    else if (size == 5 && stride == 1)
        function(fixed_window<5, 1>());
    else if (size == 5 && stride == 2)
        function(fixed_window<5, 2>());
    else
        function(fixed_window<0, 0>());
}

#endif
