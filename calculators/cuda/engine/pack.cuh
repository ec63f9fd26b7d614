/* SPDX-License-Identifier: MIT */
/* Maps an element of a packed line to its pixel and channel (engine/pack.h). */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_PACK_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_PACK_CUH

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/pack.h"

struct packed_lines : engine_lines {
    divider<int32_t> by_width, by_spread;

    packed_lines() = default;
    explicit packed_lines(const engine_lines &of) : engine_lines(of), by_width(of.width), by_spread(of.spread)
    {
    }

    /* The pixel that the element belongs to, and its channel; -1 if the element is padding. */
    __device__ __forceinline__ int pixel_of(int element, int &channel) const
    {
        int rest, pixel = divide(element, by_width, channel) - padding;
        if (pixel < 0 || channel >= channels) return -1;
        pixel = divide(pixel, by_spread, rest);
        return rest == 0 && pixel < pixels ? pixel : -1;
    }
};

#endif
