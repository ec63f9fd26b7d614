/* SPDX-License-Identifier: MIT */
/* Fused MBConv (mbconv.cuh): the problem, tensor-core operands in each math mode (8 bytes of a row), and loading a
 * block's part of x into shared memory. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_LOAD_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_LOAD_CUH

#include "calculators/cuda/conv2d/mbconv.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/mma.cuh"

enum { MBCONV_ACROSS = 2 }; /* tiles of 8 pixels that a warp computes side by side */
enum { MBCONV_WARP = 32, MBCONV_TILE = 512, MBCONV_ROW = 32, MBCONV_ROWS = 8 * MBCONV_ROW };

struct mbconv_problem {
    cuda_mbconv p;
    divider<int32_t> width, strips, tiles_in, groups_in, groups_out, quads, pairs;
};

/* ---- operands: 8 bytes of a row ---- */

struct mbconv_fp16 {
    static constexpr int DEEP = 16, SLOT = 4, BYTES = 2;

    static __device__ __forceinline__ uint2 slot(const float (&v)[SLOT])
    {
        const __half2 low = __floats2half2_rn(v[0], v[1]), high = __floats2half2_rn(v[2], v[3]);
        return make_uint2(reinterpret_cast<const uint32_t &>(low), reinterpret_cast<const uint32_t &>(high));
    }

    static __device__ __forceinline__ void keep_two(char *to, float a, float b)
    {
        *reinterpret_cast<__half2 *>(to) = __floats2half2_rn(a, b);
    }

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_fp16(c, a, b);
    }
};

struct mbconv_bf16 {
    static constexpr int DEEP = 16, SLOT = 4, BYTES = 2;

    static __device__ __forceinline__ uint2 slot(const float (&v)[SLOT])
    {
        const __nv_bfloat162 low = __floats2bfloat162_rn(v[0], v[1]), high = __floats2bfloat162_rn(v[2], v[3]);
        return make_uint2(reinterpret_cast<const uint32_t &>(low), reinterpret_cast<const uint32_t &>(high));
    }

    static __device__ __forceinline__ void keep_two(char *to, float a, float b)
    {
        *reinterpret_cast<__nv_bfloat162 *>(to) = __floats2bfloat162_rn(a, b);
    }

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_bf16(c, a, b);
    }
};

struct mbconv_tf32 {
    static constexpr int DEEP = 8, SLOT = 2, BYTES = 4;

    static __device__ __forceinline__ uint2 slot(const float (&v)[SLOT])
    {
        return make_uint2(operand_bits<SDLF_MATH_TF32>(v[0]), operand_bits<SDLF_MATH_TF32>(v[1]));
    }

    static __device__ __forceinline__ void keep_two(char *to, float a, float b)
    {
        const float v[2] = {a, b};
        *reinterpret_cast<uint2 *>(to) = slot(v);
    }

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_tf32(c, a, b);
    }
};

static __device__ __forceinline__ float mbconv_within(float x, float low, float high)
{
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
#endif
    return x;
}

/* The rows of x that are loaded. */
struct mbconv_place {
    int first;  /* image row of the first row of h; negative above the image */
    int top;    /* the first row inside the image */
    int pixels; /* of a channel, in the rows inside the image */
};

static __device__ __forceinline__ mbconv_place mbconv_place_of(const cuda_mbconv &p)
{
    mbconv_place at;
    at.first = static_cast<int>(blockIdx.y) * p.rows * p.stride - p.padding[0];
    at.top = at.first > 0 ? at.first : 0;
    at.pixels = ((at.first + p.held_rows < p.height ? at.first + p.held_rows : p.height) - at.top) * p.width;
    return at;
}

/* Fill the table: each loaded pixel's offset in h; negative: past the last. */
static __device__ __forceinline__ void mbconv_find_places(int *to, const mbconv_problem &g, const mbconv_place &at)
{
    const cuda_mbconv &p = g.p;
    for (int e = threadIdx.x; e < p.tiles_in * 8; e += blockDim.x) {
        int column, line = divide<int32_t>(e, g.width, column);
        const int pixel = (line + at.top - at.first) * p.pitch + column + p.padding[1];
        to[e] = e < at.pixels ? pixel * (p.slice + MBCONV_PAD) : -1;
    }
}

/* Load x and round it: a warp loads 8 pixels of a k-step's channels at a time, and issues several such loads before it waits. */
template <typename F>
static __device__ __forceinline__ void mbconv_load_x(char *to, const mbconv_problem &g, const mbconv_place &at)
{
    constexpr int TASKS = 24 / F::SLOT;
    const cuda_mbconv &p = g.p;
    const int lane = threadIdx.x % MBCONV_WARP, warps = blockDim.x / MBCONV_WARP;
    const int plane = p.height * p.width, tasks = p.tiles_in * p.deep_in, around = F::DEEP * plane - p.tiles_in * 8;
    int tile, ahead, step = divide<int32_t>(static_cast<int>(threadIdx.x / MBCONV_WARP), g.tiles_in, tile);
    const int deeper = divide<int32_t>(warps, g.tiles_in, ahead);
    int pixel = tile * 8 + lane / 4, line = step * F::DEEP + lane % 4 * F::SLOT, index = line * plane + pixel;
    const float *from = p.x + static_cast<int64_t>(blockIdx.z) * p.channels * plane + at.top * p.width;
    to += threadIdx.x / MBCONV_WARP * MBCONV_ROWS + lane * 8;
    for (int left = tasks - static_cast<int>(threadIdx.x / MBCONV_WARP); left > 0;) {
        float value[TASKS][F::SLOT];
#pragma unroll
        for (int i = 0; i < TASKS; i++) {
            if (left <= i * warps) break;
            const bool whole = pixel < at.pixels && line + F::SLOT <= p.channels;
#pragma unroll
            for (int v = 0; v < F::SLOT; v++) value[i][v] = whole ? from[index + v * plane] : 0;
            if (!whole && pixel < at.pixels) {
#pragma unroll
                for (int v = 0; v + 1 < F::SLOT; v++) {
                    if (line + v < p.channels) value[i][v] = from[index + v * plane];
                }
            }
            pixel += ahead * 8;
            line += deeper * F::DEEP;
            index += ahead * 8 + deeper * F::DEEP * plane;
            if (pixel >= p.tiles_in * 8) { /* on to the channels of the next k-step */
                pixel -= p.tiles_in * 8;
                line += F::DEEP;
                index += around;
            }
        }
#pragma unroll
        for (int i = 0; i < TASKS; i++, left -= warps, to += warps * MBCONV_ROWS) {
            if (left > 0) *reinterpret_cast<uint2 *>(to) = F::slot(value[i]);
        }
    }
}

/* Without an expansion: load h, which is x. Neighbouring pixels go to neighbouring lanes. */
static __device__ __forceinline__ void mbconv_bring_middle(float *held, const int *places, const mbconv_problem &g,
                                                           const mbconv_place &at)
{
    constexpr int AT_ONCE = 12;
    const cuda_mbconv &p = g.p;
    const int first = static_cast<int>(blockIdx.x) * p.slice, plane = p.height * p.width;
    const int count = min(p.slice, p.channels - first) * p.tiles_in * 8;
    const float *from = p.x + (static_cast<int64_t>(blockIdx.z) * p.channels + first) * plane + at.top * p.width;
    for (int start = threadIdx.x; start < count; start += blockDim.x * AT_ONCE) {
        float value[AT_ONCE];
        int to[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int e = start + i * static_cast<int>(blockDim.x);
            int tile, channel = divide<int32_t>(e / 8, g.tiles_in, tile);
            const int pixel = tile * 8 + e % 8;
            to[i] = e < count && pixel < at.pixels ? places[pixel] + channel : -1;
            value[i] = to[i] >= 0 ? from[channel * plane + pixel] : 0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (to[i] >= 0) held[to[i]] = value[i];
        }
    }
}

#endif
