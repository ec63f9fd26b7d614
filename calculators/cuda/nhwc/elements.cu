/* SPDX-License-Identifier: MIT */
/* Elementwise kinds in 16 bits: a grid-stride loop, one thread per 8 elements. Moves every operand once. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/arithmetic.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/strided.cuh"

enum { THREADS = 256 };

/* Apply f to eight elements that will be stored as T. */
template <typename T> static __device__ __forceinline__ void activate8(const sdlf_activation &activation, float8 &x)
{
    with_activation<T>(activation, [&](auto f) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) x.at[v] = f(x.at[v]);
    });
}

/* Multiply by its slopes. Those of common networks are inlined, so that the latencies of the eight overlap; each other one is a function call. */
template <typename T>
static __device__ __forceinline__ void multiply_slopes8(const sdlf_activation &activation, const float8 &by,
                                                        float8 &gradient)
{
    auto multiply = [&](auto slope) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) gradient.at[v] *= slope(by.at[v]);
    };
    if (has_inline_slope(activation))
        with_inline_slope<T>(activation.function, multiply);
    else
        multiply([&](float v) { return activation_slope(activation, v); });
}

template <typename T>
static __global__ void add_nhwc(const T *a, const T *b, T *y, int64_t count, sdlf_activation activation)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        float8 sum = load8(a, i);
        const float8 other = load8(b, i);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += other.at[v];
        activate8<T>(activation, sum);
        store8(y, i, sum);
    }
}

template <typename T> static __global__ void activate_nhwc(const T *x, T *y, int64_t count, sdlf_activation activation)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        float8 value = load8(x, i);
        activate8<T>(activation, value);
        store8(y, i, value);
    }
}

template <typename T>
static __global__ void activate_backward_nhwc(const T *by, const T *dy, T *dx, int64_t count,
                                              sdlf_activation activation)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const float8 from = load8(by, i);
        float8 gradient = load8(dy, i);
        multiply_slopes8<T>(activation, from, gradient);
        store8(dx, i, gradient);
    }
}

/* An operand of binary: 16 bits in the output's layout; float32 with any strides; or a scalar. Reads eight neighbours along the innermost axis. */
template <typename T> struct binary_operand {
    const T *stored;
    const float *any;
    int64_t step; /* stride of `any` along that axis */
    float number;
    __device__ __forceinline__ float8 at(int64_t i, int64_t place) const
    {
        if (stored != nullptr) return load8(stored, i);
        float8 values;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) values.at[v] = any != nullptr ? any[place + v * step] : number;
        return values;
    }
};

template <typename T, typename Index>
static __global__ void binary_nhwc(const binary_operand<T> a, const binary_operand<T> b, T *y, const strided<2> at,
                                   int64_t count, sdlf_binary_function function)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<Index>(i * VECTOR), place);
        float8 value = a.at(i, place[0]);
        const float8 other = b.at(i, place[1]);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) value.at[v] = arithmetic(function, value.at[v], other.at[v]);
        store8(y, i, value);
    }
}

bool binary_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    const sdlf_tensor &y = op->out[0];
    if (sdlf_operation_storage(op) == SDLF_NONE) return true;
    bool taken = op->binary.function < SDLF_BINARY_EQUAL && y.shape.rank > 0 && sdlf_tensor_count(&y) > 0 &&
                 y.shape.dim[y.shape.rank - 1] % VECTOR == 0 && y.dtype != SDLF_FLOAT32;
    for (int i = 0; i < 2; i++)
        taken = taken && (op->in[i].dtype == SDLF_FLOAT32 || !sdlf_tensor_present(&op->in[i]) ||
                          sdlf_tensor_is_contiguous(&op->in[i]));
    return taken;
}

sdlf_status binary_nhwc_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *const operand[2] = {&op->in[0], &op->in[1]};
    const strided<2> at = strided_of<2>(op->out[0].shape, operand);
    const int64_t count = sdlf_tensor_count(&op->out[0]);
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        auto made = [&](int k) {
            const sdlf_tensor &x = *operand[k];
            const bool any = x.dtype == SDLF_FLOAT32;
            return binary_operand<T>{any ? nullptr : optional<T>(x), any ? data_of<float>(x) : nullptr,
                                     at.rank > 0 ? at.stride[k][at.rank - 1] : 0,
                                     static_cast<float>(op->binary.scalar)};
        };
        with_index(count, [&](auto index) {
            launch_overlapped(calculator, binary_nhwc<T, decltype(index)>,
                              cuda_blocks(calculator, count / VECTOR, THREADS), THREADS, 0, made(0), made(1),
                              data_of<T>(op->out[0]), at, count / VECTOR, op->binary.function);
        });
    });
    return cuda_check_launch("binary");
}

sdlf_status add_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR;
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, add_nhwc<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count,
                          op->add.activation);
    });
    return cuda_check_launch("add");
}

sdlf_status activation_forward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR;
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, activate_nhwc<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_forward");
}

sdlf_status activation_backward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR;
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, activate_backward_nhwc<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_backward");
}
