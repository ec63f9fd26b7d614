/* SPDX-License-Identifier: MIT */
/* What the warps of pointwise_warps.cu have in common: the part of the sum that a warp makes, where its pixels lie and where its results go.
 *
 * How it makes them is a type's, warps_fma (pointwise_warps_fma.cuh) or warps_mma (pointwise_warps_mma.cuh). Both have: GROUP filters and
 * TILE pixels of a warp; run(), its sums over some steps of 8 channels; UNITS quads of results a lane, quad(), which are of SPOTS places in a
 * plane, KEPT results side by side each. HALVES: sums begin when half of their weights are there. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_COMMON_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_COMMON_CUH

#include "calculators/cuda/bundle.cuh"
#include "calculators/cuda/conv2d/pointwise_warps.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/mbarrier.cuh"

struct warps_problem {
    cuda_pointwise_warps p;
    divider<int32_t> area;
};

/* A warp's part: steps [first, last) of the sum, whose weights lie from `w` on; the weights of the first `early` steps are there at phase 0
 * of barrier[0], those of the others of barrier[1]. */
struct warps_part {
    const float *w;
    int first, last, early;
    uint64_t *barrier;
};

/* The place in x of channel 0 of a pixel of all images; of pixel 0 where there is none. */
static __device__ __forceinline__ const float *warps_pixel(const warps_problem &g, int pixel)
{
    int at, image = divide<int32_t>(pixel < g.p.pixels ? pixel : 0, g.area, at);
    return g.p.x + static_cast<int64_t>(image) * g.p.channels * g.p.area + at;
}

/* Where results of a pixel go, of the filters from one on. */
struct warps_spot {
    int64_t to;
    bool inside;
};

static __device__ __forceinline__ warps_spot warps_spot_of(const warps_problem &g, int pixel, int filter)
{
    int at, image = divide<int32_t>(pixel, g.area, at);
    return {(static_cast<int64_t>(image) * g.p.filters + filter) * g.p.area + at, pixel < g.p.pixels};
}

/* WIDE neighbouring results of a filter. */
template <int WIDE>
static __device__ __forceinline__ void warps_keep(const cuda_pointwise_warps &p, int64_t to, int filter,
                                                  const bundle<float, WIDE> &sums)
{
    const float shift = p.bias != nullptr ? __ldg(p.bias + filter) : 0;
    bundle<float, WIDE> all = sums, more = {};
    if (p.residual != nullptr) more = read_bundle<WIDE>(p.residual + to, 0);
#pragma unroll
    for (int i = 0; i < WIDE; i++) all.at[i] = clamp(all.at[i] + shift + more.at[i], p.low, p.high);
    write_bundle<WIDE>(p.y + to, 0, all);
}

#endif
