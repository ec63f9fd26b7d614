/* What the .cu files share: dispatch on the element type, strides over a grid, activations. */
#ifndef SDLF_CALCULATORS_CUDA_KERNELS_CUH
#define SDLF_CALCULATORS_CUDA_KERNELS_CUH

#include "calculators/cuda/cuda.h"

/* The element type of a float tensor, as a type: with_float(dtype, [&](auto zero) { using T = decltype(zero); ... }). */
template <typename Function> static void with_float(sdlf_dtype dtype, Function function)
{
    if (dtype == SDLF_FLOAT32)
        function(0.0f);
    else
        function(0.0);
}

/* Elements i = first, first + step, ... of a grid that strides over `count`. */
static __device__ __forceinline__ int64_t grid_first()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t grid_step()
{
    return (int64_t)gridDim.x * blockDim.x;
}

template <typename T> static T *data_of(const sdlf_tensor &tensor)
{
    return static_cast<T *>(tensor.data);
}

/* f(x) of an epilogue or an activation layer. */
template <typename T> static __device__ __forceinline__ T activate(const sdlf_activation &activation, T x)
{
    switch (activation.function) {
    case SDLF_RELU: return x > T(0) ? x : (x != x ? x : T(0));
    case SDLF_CLIP: return x < T(activation.low) ? T(activation.low) : x > T(activation.high) ? T(activation.high) : x;
    case SDLF_LEAKY_RELU: return x > T(0) ? x : T(activation.slope) * x;
    case SDLF_SIGMOID: return T(1) / (T(1) + exp(-x));
    case SDLF_TANH: return tanh(x);
    default: return x;
    }
}

/* f'(x) from y = f(x). */
template <typename T> static __device__ __forceinline__ T activation_slope(const sdlf_activation &activation, T y)
{
    switch (activation.function) {
    case SDLF_RELU: return y > T(0) ? T(1) : T(0);
    case SDLF_CLIP: return y > T(activation.low) && y < T(activation.high) ? T(1) : T(0);
    case SDLF_LEAKY_RELU: return y > T(0) ? T(1) : T(activation.slope);
    case SDLF_SIGMOID: return y * (T(1) - y);
    case SDLF_TANH: return T(1) - y * y;
    default: return T(1);
    }
}

#endif
