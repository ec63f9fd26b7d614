/* SPDX-License-Identifier: MIT */
/* y = act(a + b). A grid-stride loop, one thread per element; moves three tensors once. */
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/nhwc/nhwc.h"

enum { THREADS = 256 };

template <typename T>
static __global__ void add(const T *a, const T *b, T *y, int64_t count, sdlf_activation activation)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) y[i] = activate(activation, a[i] + b[i]);
}

extern "C" sdlf_status add_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (elements_are_vectors(op)) return add_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        add<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count, op->add.activation);
    });
    return cuda_check_launch("add");
}
