/* Element-by-element kinds in 16 bits: a thread 8 elements, striding. Moves every operand once. */
#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void add_nhwc(const T *a, const T *b, T *y, int64_t count, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        float8 sum = load8(a, i);
        const float8 other = load8(b, i);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] = activate_often(activation, sum.at[v] + other.at[v]);
        store8(y, i, sum);
    }
}

template <typename T> static __global__ void activate_nhwc(const T *x, T *y, int64_t count, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        float8 value = load8(x, i);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) value.at[v] = activate_often(activation, value.at[v]);
        store8(y, i, value);
    }
}

template <typename T>
static __global__ void activate_backward_nhwc(const T *by, const T *dy, T *dx, int64_t count, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const float8 from = load8(by, i);
        float8 gradient = load8(dy, i);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) gradient.at[v] *= activation_slope(activation, from.at[v]);
        store8(dx, i, gradient);
    }
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
