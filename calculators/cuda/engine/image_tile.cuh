/* SPDX-License-Identifier: MIT */
/* Parts of the epilogue of a tile of pixels (engine/image_epilogue.cuh): exchanges between lanes, its modes, the residual's layout in the ring, and
 * the mapping from rows of a tile to pixels of the output. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_TILE_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_TILE_CUH

#include "calculators/cuda/engine/image_params.cuh"
#include "calculators/cuda/engine/mainloop.cuh"

/* A 2 x 2 transposition between lanes 2 i and 2 i + 1: swaps the even lane's v[1] with the odd lane's v[0]. */
template <typename Number> static __device__ __forceinline__ void exchange_pair(Number (&v)[2], int lane)
{
    const bool odd = lane & 1;
    const Number other = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[1], 1);
    v[0] = odd ? other : v[0];
    v[1] = odd ? v[1] : other;
}

/* Reduces four pairs over the lanes k, k + 4, ..., k + 28: lane k + 8 i receives the sum of pair i. */
static __device__ __forceinline__ float2 add_over_rows(float2 (&v)[4], int lane)
{
#pragma unroll
    for (int half = 2; half > 0; half /= 2) {
        const bool upper = lane & 8 * half;
#pragma unroll
        for (int i = 0; i < half; i++) {
            const float2 give = upper ? v[i] : v[i + half], keep = upper ? v[i + half] : v[i];
            v[i].x = keep.x + __shfl_xor_sync(0xffffffffu, give.x, 8 * half);
            v[i].y = keep.y + __shfl_xor_sync(0xffffffffu, give.y, 8 * half);
        }
    }
    v[0].x += __shfl_xor_sync(0xffffffffu, v[0].x, 4);
    v[0].y += __shfl_xor_sync(0xffffffffu, v[0].y, 4);
    return v[0];
}

/* What the epilogue applies: bias, and clipping; the same and 2 x 2 max-pooling; bias, an optional residual, and a piecewise linear activation; the
 * same with a residual loaded through the ring; bias, residual and any activation; or bias, and statistics for batch normalisation. */
enum image_mode { CLIP_VALUES, POOL_VALUES, LINE_ACTIVATION, STAGED_RESIDUAL, ANY_ACTIVATION, SUM_VALUES };

/* The mode if a residual does not come through the ring. */
static inline image_mode image_mode_of(const image_params &p)
{
    if (p.pools) return POOL_VALUES;
    if (p.parts != nullptr) return SUM_VALUES;
    if (p.residual == nullptr && is_clip_activation(p.activation)) return CLIP_VALUES;
    return is_line_activation(p.activation) ? LINE_ACTIVATION : ANY_ACTIVATION;
}

/* The residual of a 128 x BN tile in stages of STAGE_BYTES: PARTS of COLUMNS columns, each in boxes of 128 bytes per row, swizzled. */
template <typename T, int BN, int STAGE_BYTES> struct staged_residual {
    static constexpr int SIZE = sizeof(T), PARTS = (128 * BN * SIZE + STAGE_BYTES - 1) / STAGE_BYTES;
    static constexpr int COLUMNS = BN / PARTS, ACROSS = 128 / SIZE, BOXES = COLUMNS / ACROSS;
    static constexpr int BOX_BYTES = 128 * 128, BYTES = BOXES * BOX_BYTES;
    static_assert(BN < ACROSS || (BOXES * ACROSS * PARTS == BN && BYTES <= STAGE_BYTES), "whole boxes, in a stage");

    /* The offset in a stage of the first four elements of row `row` from `column` on, which is below 16. */
    static __device__ __forceinline__ uint32_t first_of(int row, int column)
    {
        const uint32_t chunk = static_cast<uint32_t>(column * SIZE / 16 ^ (row & 7));
        return static_cast<uint32_t>(row) * 128 + chunk * 16 + column * SIZE % 16;
    }

    /* Load four elements, 16 `group` columns and `below` rows (a multiple of 8) after those at `first` in shared memory. */
    static __device__ __forceinline__ bits4<T> load(uint32_t first, int group, int below)
    {
        const int bytes = group * 16 * SIZE;
        const uint32_t at = (first ^ static_cast<uint32_t>(bytes % 128)) + bytes / 128 * BOX_BYTES + below * 128;
        bits4<T> bits;
        if constexpr (SIZE == 2)
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(bits.word[0]), "=r"(bits.word[1]) : "r"(at));
        else
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(bits.word[0]), "=r"(bits.word[1]), "=r"(bits.word[2]), "=r"(bits.word[3])
                         : "r"(at));
        return bits;
    }
};

/* Rows that are consecutive pixels of a class, from `first` on. */
struct class_pixels {
    const image_params &p;
    const dgrad_phase &of;
    int first;

    __device__ __forceinline__ bool locate(int row, int64_t &pixel) const
    {
        int i, j;
        const int n = divide(divide(first + row, of.count[1], j), of.count[0], i);
        const int y = of.start[0] + of.spread[0] * i, x = of.start[1] + of.spread[1] * j;
        pixel = (static_cast<int64_t>(n) * p.height + y) * p.width + x;
        return first + row < of.pixels;
    }
};

/* For epilogues without a ring, and therefore without a staged residual. */
struct no_ring {
    static constexpr int STAGE_BYTES = 0;
    __device__ __forceinline__ uint32_t tile_a() const
    {
        return 0;
    }
};

#endif
