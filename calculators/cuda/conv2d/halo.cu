/* SPDX-License-Identifier: MIT */
/* Implicit GEMM with halo reuse: the mma.sync tiles in each math mode, and prepacking the weights. */
#include "calculators/cuda/conv2d/halo_mma.cuh"

template <typename OPERAND>
static sdlf_status launch_warps(sdlf_calculator *calculator, const cuda_halo &problem, const cuda_halo_launch &how)
{
    return how.thin ? halo_launch_thin<OPERAND>(calculator, problem, how)
                    : halo_launch_mma<OPERAND>(calculator, problem, how);
}

extern "C" sdlf_status cuda_halo_warps(sdlf_calculator *base, const cuda_halo *problem, const cuda_halo_launch *how)
{
    switch (cuda_calculator_from(base)->math) {
    case SDLF_MATH_FP16: return launch_warps<halo_fp16>(base, *problem, *how);
    case SDLF_MATH_BF16: return launch_warps<halo_bf16>(base, *problem, *how);
    default: return launch_warps<halo_tf32>(base, *problem, *how);
    }
}

/* ---- prepacked weights ---- */

enum { THREADS = 256 };

/* w (K,C,R,S) -> for each k-step, for each filter up to a multiple of HALO_FILTERS, HALO_CHANNELS elements in the
 * swizzled order that the kernels read; zeros where there is no filter, channel or tap. One thread an element. */
template <typename OPERAND>
static __global__ void halo_prepare(const float *w, char *prepared, const __grid_constant__ cuda_halo p, bool thin)
{
    int64_t count = static_cast<int64_t>(p.steps) * p.filters_padded * HALO_CHANNELS;
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int number = static_cast<int>(e % HALO_CHANNELS);
        int filter = static_cast<int>(e / HALO_CHANNELS % p.filters_padded);
        int step = static_cast<int>(e / HALO_CHANNELS / p.filters_padded);
        int tap = thin ? step * 8 + number / 4 : step % p.taps;
        int channel = thin ? number % 4 : step / p.taps * HALO_CHANNELS + number;
        bool exists = filter < p.filters && tap < p.taps && channel < p.channels;
        float value = exists ? w[(static_cast<int64_t>(filter) * p.channels + channel) * p.taps + tap] : 0.0f;
        char *row =
            prepared + (static_cast<int64_t>(step) * p.filters_padded + filter) * HALO_CHANNELS * OPERAND::BYTES;
        if constexpr (OPERAND::BYTES == 4) {
            int place = (number / 4 ^ filter % 8) * 4 + number % 4;
            reinterpret_cast<uint32_t *>(row)[place] = OPERAND::weight(value);
        } else {
            /* of 16 channels, 4 t .. 4 t + 3 are at 2 t, 2 t + 1, 8 + 2 t, 9 + 2 t */
            int at = number % 16, order = number / 16 * 16 + at % 4 / 2 * 8 + at / 4 * 2 + at % 2;
            int place = (order / 8 ^ filter / 2 % 4) * 8 + order % 8;
            reinterpret_cast<uint16_t *>(row)[place] = OPERAND::weight(value);
        }
    }
}

template <typename OPERAND>
static void launch(const cuda_calculator *calculator, const cuda_halo &p, const float *w, void *prepared, bool thin)
{
    int64_t count = static_cast<int64_t>(p.steps) * p.filters_padded * HALO_CHANNELS;
    halo_prepare<OPERAND><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
        w, static_cast<char *>(prepared), p, thin);
}

extern "C" sdlf_status cuda_halo_prepare(sdlf_calculator *base, const cuda_halo *problem, const float *w,
                                         void *prepared, bool thin)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (calculator->math == SDLF_MATH_FP16)
        launch<halo_fp16>(calculator, *problem, w, prepared, thin);
    else if (calculator->math == SDLF_MATH_BF16)
        launch<halo_bf16>(calculator, *problem, w, prepared, thin);
    else
        launch<halo_tf32>(calculator, *problem, w, prepared, thin);
    return cuda_check_launch("conv2d over a patch, prepacked weights");
}
