/* What stands behind a product or a convolution where its own kernel cannot do it: c = act(c + bias + residual), in place.
 * c is (N, channels, area); bias has one number a channel. A thread an element, striding; reads and writes c once. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void apply(T *c, const T *bias, const T *residual, int64_t count, int64_t channels, int64_t area,
                             sdlf_activation activation)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        T value = c[i];
        if (bias != nullptr) value += bias[i / area % channels];
        if (residual != nullptr) value += residual[i];
        c[i] = activate(activation, value);
    }
}

extern "C" sdlf_status cuda_apply_epilogue(sdlf_calculator *base, const cuda_epilogue *epilogue)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (epilogue->count == 0) return SDLF_OK;
    with_float(epilogue->dtype, [&](auto zero) {
        using T = decltype(zero);
        apply<T><<<cuda_blocks(calculator, epilogue->count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<T *>(epilogue->data), static_cast<const T *>(epilogue->bias),
            static_cast<const T *>(epilogue->residual), epilogue->count, epilogue->channels, epilogue->area,
            epilogue->activation);
    });
    return cuda_check_launch("epilogue");
}
