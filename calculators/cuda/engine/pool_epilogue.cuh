/* SPDX-License-Identifier: MIT */
/* The epilogue of a tile of 8 x 8 pixels followed by 2 x 2 max-pooling: bias, clipping and maxima, in 16 bits, directly from the accumulator
 * registers of a warpgroup; the convolution's own output is never stored. A warp has two lines of the tile: a lane holds the same pixel of both,
 * and lanes 4 apart hold adjacent pixels. Of 32 channels each of these two lanes keeps 16. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_POOL_EPILOGUE_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_POOL_EPILOGUE_CUH

#include "calculators/cuda/engine/image_tile.cuh"

/* The larger of each of two 16-bit values; NaN propagates. */
template <typename T> static __device__ __forceinline__ uint32_t larger_pair(uint32_t a, uint32_t b)
{
    using pair = typename pair16<T>::type;
#if __CUDA_ARCH__ >= 800
    const pair larger = __hmax2_nan(reinterpret_cast<const pair &>(a), reinterpret_cast<const pair &>(b));
    return reinterpret_cast<const uint32_t &>(larger);
#else /* never called: 16-bit storage is used on 9.0 only */
    return a;
#endif
}

/* Rounds two channels of the lane's two pixels, and takes the larger of each. */
template <typename T>
static __device__ __forceinline__ uint32_t larger_of_lines(const float (&c)[4], const float2 &bias)
{
    using pair = typename pair16<T>::type;
    const pair upper = pair16<T>::of(c[0] + bias.x, c[1] + bias.y), lower = pair16<T>::of(c[2] + bias.x, c[3] + bias.y);
    return larger_pair<T>(reinterpret_cast<const uint32_t &>(upper), reinterpret_cast<const uint32_t &>(lower));
}

/* pixels.locate_window(row, window): true if the pooling window of the tile's row is in the output; sets its number there. */
template <typename T, int BN, typename Pixels>
static __device__ __forceinline__ void store_maxima(const image_params &p, const Pixels &pixels, const float *bias,
                                                    const channel_range &columns, const float (&c)[BN / 8][4])
{
    using pair = typename pair16<T>::type;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const bool second = lane & 4; /* keeps the second 16 of each 32 channels */
    const int first = columns.first + second * 16 + lane % 2 * 8 + lane % 4 / 2 * 4;
    int64_t window;
    const bool is_there = pixels.locate_window(warp % 4 * 16 + lane / 4, window);
    T *to = static_cast<T *>(p.result) + window * p.channels + first;
#pragma unroll
    for (int a = 0; a < BN / 16; a += 2) {
        if (columns.first + 16 * a >= columns.end) break;
        uint32_t words[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t both[2]; /* of either 16 channels */
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int j = 2 * (a + half) + i;
                both[half] = larger_of_lines<T>(c[j], *reinterpret_cast<const float2 *>(&bias[8 * j + 2 * (lane % 4)]));
            }
            const uint32_t other = __shfl_xor_sync(0xffffffffu, second ? both[0] : both[1], 4);
            const uint32_t largest = larger_pair<T>(second ? both[1] : both[0], other);
            const pair clipped =
                clamp_pair(reinterpret_cast<const pair &>(largest), reinterpret_cast<const pair &>(p.clip_pair[0]),
                           reinterpret_cast<const pair &>(p.clip_pair[1]));
            words[i] = reinterpret_cast<const uint32_t &>(clipped);
        }
        exchange_pair(words, lane);
        bits4<T> stored;
        stored.word[0] = words[0];
        stored.word[1] = words[1];
        if (is_there && first + 16 * a < columns.end) store_bits4<T>(to + 16 * a, stored);
    }
}

#endif
