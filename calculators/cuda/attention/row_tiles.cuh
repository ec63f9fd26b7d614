/* SPDX-License-Identifier: MIT */
/* What attention by wgmma shares, forward and backward: swizzled tiles of 64 rows in shared memory, and their loads. T is the type of the operands,
 * S that of storage: the same, or float, which is rounded as it is loaded. Compute capability 9.0a. */
#ifndef SDLF_CALCULATORS_CUDA_ATTENTION_ROW_TILES_CUH
#define SDLF_CALCULATORS_CUDA_ATTENTION_ROW_TILES_CUH

#include "calculators/cuda/attention/blocks.cuh"
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/engine/mainloop.cuh"

enum { GROUP = 128 /* threads of a warpgroup */ };

/* A tile of 64 rows of D elements: chunks of up to 64 columns, in rows of ROW bytes, swizzled. */
template <int D> struct row_tile {
    static constexpr int ROW = D < 64 ? 2 * D : 128, CHUNK = ATTENTION_BLOCK * ROW, BYTES = ATTENTION_BLOCK * 2 * D;

    /* The byte offset of 16-byte piece `piece` of a row. */
    static __device__ __forceinline__ int offset(int row, int piece)
    {
        constexpr int PIECES = ROW / 16;
        const int swizzled = piece % PIECES ^ (ROW == 128 ? row % 8 : row / 2 % 4);
        return piece / PIECES * CHUNK + row * ROW + swizzled * 16;
    }
    /* The descriptor of K-major elements 16 `step` to 16 `step` + 15 of all rows; and of MN-major rows with those numbers. */
    static __device__ __forceinline__ uint64_t columns(uint32_t tile, int step)
    {
        constexpr int STEPS = ROW / 32; /* per chunk */
        return smem_descriptor<ROW>(tile + step / STEPS * CHUNK + step % STEPS * 32, 16);
    }
    static __device__ __forceinline__ uint64_t rows(uint32_t tile, int step)
    {
        return smem_descriptor<ROW>(tile + step * 16 * ROW, CHUNK);
    }
};

/* Eight elements from `from` on as 16 bytes of operands, `count` of them, 4 or more; zeros for the others. */
template <typename T> static __device__ __forceinline__ uint4 round_eight(const float *from, int count)
{
    constexpr sdlf_math MATH = operand_math_of<T>;
    const float4 low = *reinterpret_cast<const float4 *>(from);
    const float4 high = count >= 8 ? *reinterpret_cast<const float4 *>(from + 4) : make_float4(0, 0, 0, 0);
    return make_uint4(pack_two<MATH>(low.x, low.y), pack_two<MATH>(low.z, low.w), pack_two<MATH>(high.x, high.y),
                      pack_two<MATH>(high.z, high.w));
}

/* Load rows `first` to first + 63, D columns; zeros outside. All addresses are multiples of 16 bytes. Completed by cp_async_wait. */
template <typename S, typename T, int D, int THREADS>
static __device__ __forceinline__ void copy_rows(uint8_t *tile, const attention_rows &x, int first)
{
    constexpr int PIECES = D / 8, DOWN = THREADS / PIECES; /* a multiple of 8 */
    const int row = static_cast<int>(threadIdx.x) / PIECES, piece = static_cast<int>(threadIdx.x) % PIECES;
    const S *data = static_cast<const S *>(x.data), *from = data + (first + row) * x.stride + piece * 8;
    const int columns = x.columns - piece * 8, rows = columns > 0 ? x.rows - first - row : 0;
    uint8_t *to = tile + row_tile<D>::offset(row, piece);
#pragma unroll
    for (int i = 0; i < ATTENTION_BLOCK; i += DOWN) {
        const bool valid = i < rows;
        if constexpr (std::is_same<S, T>::value)
            copy_async(to + i * row_tile<D>::ROW, valid ? from + i * x.stride : data, valid);
        else
            *reinterpret_cast<uint4 *>(to + i * row_tile<D>::ROW) =
                valid ? round_eight<T>(from + i * x.stride, columns) : make_uint4(0, 0, 0, 0);
    }
}

/* Makes loaded tiles visible to wgmma, which reads through the async proxy; before the barrier. */
static __device__ __forceinline__ void finish_loads()
{
    cp_async_wait<0>();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* A fragment c (16,COLUMNS) of a warp, rounded, as operand a of the next wgmma. */
template <typename T, int COLUMNS>
static __device__ __forceinline__ void pack_scores(uint32_t (&a)[COLUMNS / 16][4], const float (&c)[COLUMNS / TILE][4])
{
#pragma unroll
    for (int step = 0; step < COLUMNS / 16; step++) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[step][i] =
                pack_two<operand_math_of<T>>(c[2 * step + i / 2][i % 2 * 2], c[2 * step + i / 2][i % 2 * 2 + 1]);
    }
}

/* Call function(zero of the storage type, zero of the operands' type, D): D is a constant of at least `depth`. */
template <typename Function> static void with_row_tiles(sdlf_dtype dtype, sdlf_math math, int depth, Function function)
{
    auto typed = [&](auto storage, auto operand) {
        with_attention_depth(depth, [&](auto columns) { function(storage, operand, columns); });
    };
    if (dtype == SDLF_FLOAT16)
        typed(__half(), __half());
    else if (dtype == SDLF_BFLOAT16)
        typed(__nv_bfloat16(), __nv_bfloat16());
    else if (math == SDLF_MATH_FP16)
        typed(0.0f, __half());
    else
        typed(0.0f, __nv_bfloat16());
}

#endif
