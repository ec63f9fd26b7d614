/* Element-by-element kinds in 16-bit storage: a thread 8 elements, striding. Moves every operand once. */
#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/storage16/storage16.h"
#include "calculators/cuda/storage16/vector16.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void add16(const T *a, const T *b, T *y, int64_t count, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        float8 sum = load16(a, i);
        const float8 other = load16(b, i);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) sum.at[v] = activate_often(activation, sum.at[v] + other.at[v]);
        store16(y, i, sum);
    }
}

template <typename T> static __global__ void activate16(const T *x, T *y, int64_t count, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        float8 value = load16(x, i);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) value.at[v] = activate_often(activation, value.at[v]);
        store16(y, i, value);
    }
}

template <typename T>
static __global__ void activate_backward16(const T *by, const T *dy, T *dx, int64_t count, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const float8 from = load16(by, i);
        float8 gradient = load16(dy, i);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) gradient.at[v] *= activation_slope(activation, from.at[v]);
        store16(dx, i, gradient);
    }
}

sdlf_status add_storage16(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR16;
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, add16<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count,
                          op->add.activation);
    });
    return cuda_check_launch("add");
}

sdlf_status activation_forward_storage16(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR16;
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, activate16<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_forward");
}

sdlf_status activation_backward_storage16(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR16;
    with_storage(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, activate_backward16<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_backward");
}
