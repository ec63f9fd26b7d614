/* SPDX-License-Identifier: MIT */
/* Epilogue of fused MBConv (mbconv.cuh): adds the partial sums of a cluster's blocks, and stores y. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_EPILOGUE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_EPILOGUE_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/conv2d/mbconv_load.cuh"

/* A block's share of y: some filters, each in some rows of one image. */
struct mbconv_share {
    int first, count; /* filters */
    int pixels, plane;
    int64_t start; /* offset in y of the image's rows */
    bool whole;    /* float4 accesses are aligned */
};

static __device__ __forceinline__ mbconv_share mbconv_share_of(const cuda_mbconv &p)
{
    mbconv_share s;
    const int block = static_cast<int>(blockIdx.x), row = static_cast<int>(blockIdx.y) * p.rows;
    s.first = p.filters * block / p.blocks;
    s.count = p.filters * (block + 1) / p.blocks - s.first;
    s.plane = p.out_height * p.out_width;
    s.pixels = min(p.rows, p.out_height - row) * p.out_width;
    s.start = static_cast<int64_t>(blockIdx.z) * p.filters * s.plane + row * p.out_width;
    s.whole = p.aligned && ((s.plane | row * p.out_width) & 3) == 0;
    return s;
}

/* Four elements of the residual, zeros where there is none. */
static __device__ __forceinline__ float4 inverted_residual_at(const cuda_mbconv &p, const mbconv_share &s, int own,
                                                              int pixel)
{
    float4 four = {};
    if (p.residual == nullptr || own >= s.count) return four;
    const float *from = p.residual + s.start + static_cast<int64_t>(s.first + own) * s.plane + pixel;
    if (s.whole && pixel + 4 <= s.pixels) return *reinterpret_cast<const float4 *>(from);
    if (pixel < s.pixels) four.x = from[0];
    if (pixel + 1 < s.pixels) four.y = from[1];
    if (pixel + 2 < s.pixels) four.z = from[2];
    if (pixel + 3 < s.pixels) four.w = from[3];
    return four;
}

/* Add four elements of the partial sums of all blocks, in the blocks' order. */
static __device__ __forceinline__ float4 mbconv_gather(const float *part, int blocks)
{
    constexpr int AT_ONCE = 8;
    float4 sum = {};
    for (int first = 0; first < blocks; first += AT_ONCE) {
        float4 value[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) value[i] = dsmem_load(part, min(first + i, blocks - 1));
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (first + i < blocks) sum = plus(sum, value[i]);
        }
    }
    return sum;
}

static __device__ __forceinline__ void mbconv_store(const cuda_mbconv &p, const mbconv_share &s, int filter, int pixel,
                                                    const float4 &four)
{
    float *to = p.y + s.start + static_cast<int64_t>(filter) * s.plane + pixel;
    if (s.whole && pixel + 4 <= s.pixels) {
        *reinterpret_cast<float4 *>(to) = four;
        return;
    }
    if (pixel < s.pixels) to[0] = four.x;
    if (pixel + 1 < s.pixels) to[1] = four.y;
    if (pixel + 2 < s.pixels) to[2] = four.z;
    if (pixel + 3 < s.pixels) to[3] = four.w;
}

/* Store y for this block's share of the filters: 4 neighbouring pixels a thread. The first elements of the residual are loaded before
 * the other blocks' partial sums are awaited; the last results are stored after this block has signalled that it has read theirs. */
static __device__ __forceinline__ void mbconv_epilogue(const float *part, const float *bias, const mbconv_problem &g)
{
    const cuda_mbconv &p = g.p;
    const mbconv_share s = mbconv_share_of(p);
    const int count = s.count * g.quads.number;
    int e = threadIdx.x, quad, own = divide<int32_t>(e, g.quads, quad);
    float4 left = inverted_residual_at(p, s, own, quad * 4), sum = {};
    __syncwarp();
    wait_for_cluster();
    for (bool more = e < count; more;) {
        const float shift = bias[s.first + own];
        sum = mbconv_gather(part + (s.first + own) * p.line + quad * 4, p.blocks);
        sum = plus(plus(sum, make_float4(shift, shift, shift, shift)), left);
        sum = make_float4(mbconv_within(sum.x, p.low[2], p.high[2]), mbconv_within(sum.y, p.low[2], p.high[2]),
                          mbconv_within(sum.z, p.low[2], p.high[2]), mbconv_within(sum.w, p.low[2], p.high[2]));
        more = e + static_cast<int>(blockDim.x) < count;
        if (!more) break;
        mbconv_store(p, s, s.first + own, quad * 4, sum);
        e += blockDim.x;
        own = divide<int32_t>(e, g.quads, quad);
        left = inverted_residual_at(p, s, own, quad * 4);
    }
    __syncwarp();
    arrive_at_cluster();
    if (e < count) mbconv_store(p, s, s.first + own, quad * 4, sum);
    __syncwarp();
    wait_for_cluster();
}

#endif
