/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in fp16 and bf16 (conv2d/halo16.cuh): helpers of its tiles: rounding a patch to 16 bits in place, writing a block's
 * sums to shared memory, and float4 arithmetic of the epilogue. For compute capability 9.0a.
 *
 * Operands are swapped: the rows of the GEMM are filters, 64 for each of GROUPS warpgroups, its columns are the tile's PIXELS pixels. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO16_TILE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO16_TILE_CUH

#include <cuda_fp16.h>

#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/conv2d/halo.cuh"
#include "calculators/cuda/wgmma.cuh"

/* Load four floats from the cluster's shared memory; zeros, without a load, unless `wanted`. */
static __device__ __forceinline__ float4 read_there(uint32_t address, bool wanted)
{
    float4 four = make_float4(0, 0, 0, 0);
    asm volatile("{ .reg .pred wanted; setp.ne.b32 wanted, %5, 0;\n"
                 "@wanted ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4]; }"
                 : "+f"(four.x), "+f"(four.y), "+f"(four.z), "+f"(four.w)
                 : "r"(address), "r"(static_cast<int>(wanted)));
    return four;
}

/* NaN propagates. */
static __device__ __forceinline__ float larger(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}

static __device__ __forceinline__ float smaller(float a, float b)
{
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
}

static __device__ __forceinline__ float4 larger(float4 a, float4 b)
{
    return make_float4(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
}

/* An activation: ANY, or one that only clamps to a lower and an upper bound. */
template <bool ANY> struct halo16_activation {
    const sdlf_activation &act;
    float low, high;

    __device__ __forceinline__ halo16_activation(const sdlf_activation &activation) : act(activation)
    {
        const bool relu = act.function == SDLF_RELU, clip = act.function == SDLF_CLIP;
        low = relu ? 0.0f : clip ? static_cast<float>(act.low) : -INFINITY;
        high = clip ? static_cast<float>(act.high) : INFINITY;
    }
    __device__ __forceinline__ float of(float v) const
    {
        return smaller(larger(v, low), high);
    }
    __device__ __forceinline__ float4 of(float4 v) const
    {
        if (!ANY) return make_float4(of(v.x), of(v.y), of(v.z), of(v.w));
        with_activation<__half>(act, /* as exact as the operands */
                                [&](auto f) { v = make_float4(f(v.x), f(v.y), f(v.z), f(v.w)); });
        return v;
    }
};

template <typename OPERAND, int GROUPS, int PIXELS>
struct halo16_tile : halo_tile<OPERAND, false, PIXELS, 64 * GROUPS, 16, 64 * GROUPS> {
    using tile = halo_tile<OPERAND, false, PIXELS, 64 * GROUPS, 16, 64 * GROUPS>;
    using tile::PLACE, tile::PART;
    static constexpr int FILTERS = 64 * GROUPS, WORKERS = 128 * GROUPS, WARPS = WORKERS / 32;

    typedef float sums[PIXELS / 8][4];

    /* ---- rounding ---- */

    static __device__ __forceinline__ uint32_t chunk_of(uint32_t row, int chunk)
    {
        return row + ((chunk ^ static_cast<int>(row >> 7 & 7)) << 4);
    }

    static __device__ __forceinline__ void write_words(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
    {
        asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    }

    /* Round the pixels of a patch; a lane takes 16 channels of a pixel, and writes them in the order of the weights. */
    template <int OF> static __device__ __forceinline__ void round_operands16(uint32_t row, int places, int thread)
    {
        const int half = thread % 32 / 16, number = thread % 16;
        row += (thread / 32 * 16 + number) * PLACE;
        for (int left = places - thread / 32 * 16; left > 0; left -= 2 * 16 * OF, row += 2 * 16 * OF * PLACE) {
            float4 four[2][4];
#pragma unroll
            for (int n = 0; n < 2; n++) {
                if (n * 16 * OF + number >= left) continue;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    four[n][i] = halo_read_four(chunk_of(row + n * 16 * OF * PLACE, half * 4 + i));
            }
            __syncwarp(); /* the other half warp has loaded what is overwritten here */
#pragma unroll
            for (int n = 0; n < 2; n++) {
                if (n * 16 * OF + number >= left) continue;
                uint32_t to = row + n * 16 * OF * PLACE;
                const float4(&f)[4] = four[n];
                write_words(chunk_of(to, half * 2), OPERAND::pair(f[0].x, f[0].y), OPERAND::pair(f[1].x, f[1].y),
                            OPERAND::pair(f[2].x, f[2].y), OPERAND::pair(f[3].x, f[3].y));
                write_words(chunk_of(to, half * 2 + 1), OPERAND::pair(f[0].z, f[0].w), OPERAND::pair(f[1].z, f[1].w),
                            OPERAND::pair(f[2].z, f[2].w), OPERAND::pair(f[3].z, f[3].w));
            }
        }
    }

    /* Round a patch that this warp loaded, or that a barrier says is complete. */
    template <int OF> static __device__ __forceinline__ void round_patch(const cuda_halo &p, uint32_t patch, int thread)
    {
        __syncwarp();
        round_operands16<OF>(patch, p.patch_pixels, thread);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); /* wgmma reads through the async proxy */
    }

    /* ---- sums ---- */

    /* Write this block's sums to its shared memory, pixel by pixel, over patches and weights, which nobody reads any more. */
    static __device__ __forceinline__ void store_partial_sums(const sums &sum, float *part)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        float *at = part + lane % 4 * 2 * PART + warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < PIXELS / 8; j++) {
            at[j * 8 * PART] = sum[j][0];
            at[(j * 8 + 1) * PART] = sum[j][1];
            at[j * 8 * PART + 8] = sum[j][2];
            at[(j * 8 + 1) * PART + 8] = sum[j][3];
        }
    }
};

#endif
