/* SPDX-License-Identifier: MIT */
/* Elementwise activations: a grid-stride loop, one thread per element; moves 2 (forward) or 3 (backward) tensors once. */
#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/nhwc/nhwc.h"

enum { THREADS = 256 };

template <typename T>
static __global__ void activation_forward(const T *x, T *y, int64_t count, sdlf_activation activation)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) y[i] = activate(activation, x[i]);
}

template <typename T>
static __global__ void activation_backward(const T *v, const T *dy, T *dx, int64_t count, sdlf_activation activation)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) dx[i] = dy[i] * activation_slope(activation, v[i]);
}

extern "C" sdlf_status activation_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (elements_are_vectors(op)) return activation_forward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, activation_forward<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_forward");
}

extern "C" sdlf_status activation_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (elements_are_vectors(op)) return activation_backward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        activation_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_backward");
}
