/* SPDX-License-Identifier: MIT */
/* A k-step by mma.sync in tf32, for operands that are MN-major in shared memory: rows of 32 of the reduction (pixels) as tma.cuh loads them,
 * [BM / 32][32][32] and [128 / CHUNK][32][CHUNK]. Eight warps, two rows of four, have warp tiles of BM/2 x 32.
 *
 * A fragment's rows g and g + 8 are elements 2 g and 2 g + 1 of 16, which a lane loads at once. Its columns t and t + 4 are pixels 0, 3, 4, 7
 * and 1, 2, 5, 6 of eight, in both operands, so that the lanes of a load access different banks in rows of 64 and of 128 bytes, whatever their
 * swizzle. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_MMA_TF32_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_MMA_TF32_CUH

#include "calculators/cuda/mma.cuh"

/* The addresses of element `first` in a lane's two pixels of the first eight, in rows of WIDTH elements, 16-byte units swizzled over 128 bytes.
 * Elements further along M (or N), or along K, by multiples of 8 are at constant distances. */
template <int WIDTH> struct mma_operand {
    uint32_t at[2];

    __device__ __forceinline__ mma_operand(uint32_t tile, int first, int t)
    {
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const uint32_t row = static_cast<uint32_t>(2 * t + (t % 2 ^ odd)) * WIDTH * 4;
            const uint32_t unit = static_cast<uint32_t>(first % WIDTH) / 4 ^ (row >> 7 & (WIDTH / 4 - 1));
            at[odd] = tile + static_cast<uint32_t>(first / WIDTH) * WIDTH * 128 + row + unit * 16 + first % 4 * 4;
        }
    }

    __device__ __forceinline__ uint32_t address(int eights, int odd, int k_eights) const
    {
        const uint32_t within = static_cast<uint32_t>(eights * 8 % WIDTH / 4) << 4;
        return (at[odd] ^ within) + eights * 8 / WIDTH * WIDTH * 128 + k_eights * 8 * WIDTH * 4;
    }
    __device__ __forceinline__ void load(int eights, int odd, int k_eights, uint32_t &value) const
    {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address(eights, odd, k_eights)));
    }
    __device__ __forceinline__ void load2(int eights, int odd, int k_eights, uint32_t &value, uint32_t &next) const
    {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                     : "=r"(value), "=r"(next)
                     : "r"(address(eights, odd, k_eights)));
    }
};

template <int BM, int CHUNK> struct mma_tile {
    static constexpr int ROWS = BM / 32, COLUMNS = 4; /* mma fragments of a warp: 16 rows, 8 columns */
    int row, column, group, t;
    float c[ROWS][COLUMNS][4];

    __device__ __forceinline__ explicit mma_tile(int warp)
        : row(warp / 4 * (BM / 2)), column(warp % 4 * 32), group(static_cast<int>(threadIdx.x) % 32 / 4),
          t(static_cast<int>(threadIdx.x) % 4)
    {
#pragma unroll
        for (int i = 0; i < ROWS * COLUMNS * 4; i++) c[i / (COLUMNS * 4)][i / 4 % COLUMNS][i % 4] = 0;
    }

    __device__ __forceinline__ void multiply(uint32_t tile_a, uint32_t tile_b)
    {
        const mma_operand<32> a(tile_a, row + 2 * group, t);
        const mma_operand<CHUNK> b(tile_b, column + group, t);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint32_t of_b[COLUMNS][2];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                b.load(j, 0, k, of_b[j][0]);
                b.load(j, 1, k, of_b[j][1]);
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                uint32_t of_a[4];
                a.load2(2 * i, 0, k, of_a[0], of_a[1]);
                a.load2(2 * i, 1, k, of_a[2], of_a[3]);
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) mma_tf32(c[i][j], of_a, of_b[j]);
            }
        }
    }

    /* Store the accumulators as rows of `line` elements. */
    __device__ __forceinline__ void store(float *sums, int line) const
    {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                float *to = sums + (row + i * 16 + 2 * group) * line + column + j * 8 + 2 * t;
                *reinterpret_cast<float2 *>(to) = make_float2(c[i][j][0], c[i][j][1]);
                *reinterpret_cast<float2 *>(to + line) = make_float2(c[i][j][2], c[i][j][3]);
            }
        }
    }
};

#endif
