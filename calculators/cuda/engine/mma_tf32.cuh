/* SPDX-License-Identifier: MIT */
/* The product of a k-step by mma.sync in tf32, of operands that are MN-major in shared memory: rows of 32 of the reduction (pixels) as
 * tma.cuh loads them, [BM / 32][32][32] and [128 / CHUNK][32][CHUNK]. Four warps, two rows of two, have BM/2 x 64 of the tile each: what they load from shared memory binds.
 *
 * A fragment's column t is pixel 2 t of eight, its column t + 4 pixel 2 t + 1, in both operands: so the 32 lanes of a load of a row of 128 bytes find
 * 32 banks. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_MMA_TF32_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_MMA_TF32_CUH

#include "calculators/cuda/mma.cuh"

/* Where a lane finds its elements of an operand of rows of WIDTH elements, swizzled in units of 16 bytes over 128: begin with the addresses of those of
 * pixels 2 t and 2 t + 1 of the first eight; every other element is at a constant from them. */
template <int WIDTH> struct mma_operand {
    uint32_t at[2];

    __device__ __forceinline__ mma_operand(uint32_t tile, int first, int group, int pair)
    {
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const uint32_t row = static_cast<uint32_t>(pair + odd) * WIDTH * 4, unit = static_cast<uint32_t>(group) / 4;
            at[odd] = tile + static_cast<uint32_t>(first / WIDTH) * WIDTH * 128 + row +
                      ((unit ^ (row >> 7 & (WIDTH / 4 - 1))) << 4) + static_cast<uint32_t>(group) % 4 * 4;
        }
    }

    /* Element `eights` * 8 further along M (or N), pixel k_eights * 8 further along K. */
    __device__ __forceinline__ uint32_t load(int eights, int odd, int k_eights) const
    {
        const uint32_t within = static_cast<uint32_t>(eights * 8 % WIDTH / 4) << 4,
                       rows = eights * 8 / WIDTH * WIDTH * 128;
        uint32_t value;
        asm volatile("ld.shared.u32 %0, [%1];"
                     : "=r"(value)
                     : "r"((at[odd] ^ within) + rows + k_eights * 8 * WIDTH * 4));
        return value;
    }
};

template <int BM, int CHUNK> struct mma_tile {
    static constexpr int ROWS = BM / 32, COLUMNS = 8; /* fragments of a warp: 16 rows, 8 columns */
    int row, column, group, pair;
    float c[ROWS][COLUMNS][4];

    __device__ __forceinline__ explicit mma_tile(int warp)
        : row(warp / 2 * (BM / 2)), column(warp % 2 * 64), group(static_cast<int>(threadIdx.x) % 32 / 4),
          pair(static_cast<int>(threadIdx.x) % 4 * 2)
    {
#pragma unroll
        for (int i = 0; i < ROWS * COLUMNS * 4; i++) c[i / (COLUMNS * 4)][i / 4 % COLUMNS][i % 4] = 0;
    }

    __device__ __forceinline__ void multiply(uint32_t tile_a, uint32_t tile_b)
    {
        const mma_operand<32> a(tile_a, row, group, pair);
        const mma_operand<CHUNK> b(tile_b, column, group, pair);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint32_t of_b[COLUMNS][2];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                of_b[j][0] = b.load(j, 0, k);
                of_b[j][1] = b.load(j, 1, k);
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const uint32_t of_a[4] = {a.load(2 * i, 0, k), a.load(2 * i + 1, 0, k), a.load(2 * i, 1, k),
                                          a.load(2 * i + 1, 1, k)};
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) mma_tf32(c[i][j], of_a, of_b[j]);
            }
        }
    }

    /* Rows of `line` elements. */
    __device__ __forceinline__ void store(float *sums, int line) const
    {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                float *to = sums + (row + i * 16 + group) * line + column + j * 8 + pair;
                *reinterpret_cast<float2 *>(to) = make_float2(c[i][j][0], c[i][j][1]);
                *reinterpret_cast<float2 *>(to + 8 * line) = make_float2(c[i][j][2], c[i][j][3]);
            }
        }
    }
};

#endif
