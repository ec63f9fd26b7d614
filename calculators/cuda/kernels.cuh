/* SPDX-License-Identifier: MIT */
/* What the .cu files share: dispatch on the element type, launch attributes, grid-stride loops, activations. */
#ifndef SDLF_CALCULATORS_CUDA_KERNELS_CUH
#define SDLF_CALCULATORS_CUDA_KERNELS_CUH

#include "calculators/cuda/cuda.h"
#include "calculators/cuda/launch.cuh"

/* The element type of a float tensor, as a type: with_float(dtype, [&](auto zero) { using T = decltype(zero); ... }). */
template <typename Function> static void with_float(sdlf_dtype dtype, Function function)
{
    if (dtype == SDLF_FLOAT32)
        function(0.0f);
    else
        function(0.0);
}

/* A grid-stride loop over `count` elements: i = grid_first(), then i += grid_step(). */
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

/* The same for an optional operand: NULL if it is absent. */
template <typename T> static T *optional(const sdlf_tensor &tensor)
{
    return sdlf_tensor_present(&tensor) ? static_cast<T *>(tensor.data) : nullptr;
}

/* Allow a kernel the dynamic shared memory that it is about to be launched with: every kernel may use 48 KB; more requires
 * an attribute. The calculator's shared_most is the limit. */
template <typename Kernel> static sdlf_status allow_shared(Kernel *kernel, int64_t bytes)
{
    if (bytes <= 48 << 10) return SDLF_OK;
    return cuda_check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory");
}

/* Allow a kernel to be launched in clusters of `size` blocks: sizes above the portable limit require an attribute. */
template <typename Kernel> static sdlf_status allow_cluster(Kernel *kernel, int size)
{
    if (size <= CUDA_CLUSTER_PORTABLE) return SDLF_OK;
    return cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "clusters");
}

/* True in the last of `count` blocks to arrive. All threads of a block call it, after they have written what other blocks are
 * to read; the last block may read what all blocks wrote, and reduce it in a fixed order, so that the result is
 * deterministic. The ticket is one of the calculator's; it is 0 again afterwards. */
static __device__ __forceinline__ bool is_last_block(unsigned *ticket, int count)
{
    __shared__ unsigned taken;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicInc(ticket, static_cast<unsigned>(count - 1));
    __syncthreads();
    bool last = taken == static_cast<unsigned>(count - 1);
    if (last) __threadfence();
    return last;
}

template <typename T> static __device__ __forceinline__ T sigmoid(T x)
{
    return T(1) / (T(1) + exp(-x));
}

template <typename T> static __device__ __forceinline__ T gelu(T x)
{
    return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440)));
}

/* clamp: NaN passes through. */
template <typename T> static __device__ __forceinline__ T clamp(T x, T low, T high)
{
    return x < low ? low : x > high ? high : x;
}

static __device__ __forceinline__ float clamp(float x, float low, float high)
{
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
    return x;
#else
    return x < low ? low : x > high ? high : x;
#endif
}

/* Functions that are rare in the epilogues of convolutional networks: not inlined, so that they cost a kernel with an
 * epilogue neither registers nor code. */
template <typename T> static __device__ __noinline__ T activate_rarely(const sdlf_activation &activation, T x)
{
    const T alpha = T(activation.alpha), beta = T(activation.beta);
    switch (activation.function) {
    case SDLF_ELU: return x > T(0) ? x : alpha * expm1(x);
    case SDLF_SELU: return beta * (x > T(0) ? x : alpha * expm1(x));
    case SDLF_CELU: return x > T(0) ? x : alpha * expm1(x / alpha);
    case SDLF_GELU: return gelu(x);
    case SDLF_GELU_TANH: return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
    case SDLF_MISH: return x * tanh(x > T(0) ? x + log1p(exp(-x)) : log1p(exp(x)));
    case SDLF_SOFTPLUS: return x > T(0) ? x + log1p(exp(-x)) : log1p(exp(x));
    case SDLF_SOFTSIGN: return x / (T(1) + fabs(x));
    case SDLF_ERF: return erf(x);
    case SDLF_SQRT: return sqrt(x);
    case SDLF_EXP: return exp(x);
    case SDLF_LOG: return log(x);
    case SDLF_ABS: return fabs(x);
    case SDLF_NEGATE: return -x;
    case SDLF_RECIPROCAL: return T(1) / x;
    case SDLF_FLOOR: return floor(x);
    case SDLF_CEIL: return ceil(x);
    case SDLF_ROUND: return rint(x);
    case SDLF_SIN: return sin(x);
    case SDLF_COS: return cos(x);
    case SDLF_TAN: return tan(x);
    case SDLF_ASIN: return asin(x);
    case SDLF_ACOS: return acos(x);
    case SDLF_ATAN: return atan(x);
    case SDLF_SINH: return sinh(x);
    case SDLF_COSH: return cosh(x);
    case SDLF_ASINH: return asinh(x);
    case SDLF_ACOSH: return acosh(x);
    case SDLF_ATANH: return atanh(x);
    case SDLF_SIGN: return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
    default: return x;
    }
}

/* f(x) in an epilogue or an activation layer. */
template <typename T> static __device__ __forceinline__ T activate(const sdlf_activation &activation, T x)
{
    switch (activation.function) {
    case SDLF_IDENTITY: return x;
    case SDLF_RELU: return x > T(0) ? x : (x != x ? x : T(0));
    case SDLF_CLIP: return clamp(x, T(activation.low), T(activation.high));
    case SDLF_LEAKY_RELU: return x > T(0) ? x : T(activation.slope) * x;
    case SDLF_SIGMOID: return sigmoid(x);
    case SDLF_TANH: return tanh(x);
    case SDLF_SILU: return x * sigmoid(x);
    case SDLF_HARD_SWISH: return x * clamp(x * T(1.0 / 6) + T(0.5), T(0), T(1));
    case SDLF_HARD_SIGMOID: return clamp(T(activation.alpha) * x + T(activation.beta), T(0), T(1));
    default: return activate_rarely(activation, x);
    }
}

/* The same for kernels that instantiate it once for every output of a thread: only the common functions are inlined. */
template <typename T> static __device__ __noinline__ T activate_by_call(const sdlf_activation &activation, T x)
{
    return activate(activation, x);
}

template <typename T> static __device__ __forceinline__ T activate_often(const sdlf_activation &activation, T x)
{
    switch (activation.function) {
    case SDLF_IDENTITY: return x;
    case SDLF_RELU: return x > T(0) ? x : (x != x ? x : T(0));
    case SDLF_CLIP: return clamp(x, T(activation.low), T(activation.high));
    default: return activate_by_call(activation, x);
    }
}

#endif
