/* SPDX-License-Identifier: MIT */
/* What stands behind a product or a convolution where its own kernel cannot do it: c = act(c + bias + residual), in place.
 * c is (N, channels, area); bias has one number a channel. A thread an element, striding; reads and writes c once. */
#include "calculators/cuda/divider.cuh"

enum { THREADS = 256 };

template <typename T, typename Index>
static __global__ void apply(T *c, const T *bias, const T *residual, int64_t count, divider<Index> channels,
                             divider<Index> area, sdlf_activation activation)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        T value = c[i];
        Index channel;
        divide(area.quotient(static_cast<Index>(i)), channels, channel);
        if (bias != nullptr) value += bias[channel];
        if (residual != nullptr) value += residual[i];
        c[i] = activate(activation, value);
    }
}

extern "C" sdlf_status cuda_apply_epilogue(sdlf_calculator *base, const cuda_epilogue *epilogue)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (epilogue->count == 0) return SDLF_OK;
    with_float(epilogue->dtype, [&](auto zero) {
        with_narrow_index(epilogue->count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            launch_overlapped(calculator, apply<T, Index>, cuda_blocks(calculator, epilogue->count, THREADS), THREADS,
                              0, static_cast<T *>(epilogue->data), static_cast<const T *>(epilogue->bias),
                              static_cast<const T *>(epilogue->residual), epilogue->count,
                              divider<Index>(epilogue->channels), divider<Index>(epilogue->area), epilogue->activation);
        });
    });
    return cuda_check_launch("epilogue");
}
