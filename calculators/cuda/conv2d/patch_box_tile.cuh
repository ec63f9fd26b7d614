/* SPDX-License-Identifier: MIT */
/* Tiles of a convolution over boxes in tf32 (conv2d/patch_box.cuh): their sizes, and which of them a block makes. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_TILE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_TILE_CUH

#include "calculators/cuda/conv2d/patch.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int LINES, int SHARES = 1> struct patch_box_tile {
    static constexpr int GROUPS = FILTER_GROUPS * PIXEL_GROUPS; /* of each share of the steps */
    static constexpr int WORKERS = 128 * GROUPS * SHARES, WARPS = WORKERS / 32;
    static constexpr int THREADS = WORKERS + 32 + 32 * RINGS; /* one warp for patches, one for each ring of weights */
    static constexpr int FILTERS = 64 * FILTER_GROUPS, TILE = PIXELS * PIXEL_GROUPS;
    static constexpr int ROW = PATCH_CHANNELS * 4, STEP = FILTERS / RINGS * ROW /* of a ring */, PART = FILTERS + 4;
    static constexpr int SOME = 8 * LINES,
                         LEFT = 68; /* pixels of a group that leave together; a row of 64 filters, in floats */
    static constexpr int LEAVING = 2 * SOME * LEFT; /* floats of a group that leave, in two turns */

    typedef float sums[PIXELS / 8][4];

    struct block {
        int image, down, across, filters; /* the tile's number along each axis */
        int split, first, last, tap;      /* steps, and the first one's tap */

        __device__ block(const cuda_patch &p, unsigned at)
        {
            split = 0;
            if (p.splits > 1) {
                split = static_cast<int>(at % p.splits);
                at /= p.splits;
            }
            filters = static_cast<int>(at % p.tiles_filters);
            at /= p.tiles_filters;
            across = static_cast<int>(at % p.tiles_across);
            at /= p.tiles_across;
            down = static_cast<int>(at % p.tiles_down);
            image = static_cast<int>(at / p.tiles_down);
            first = tap = 0;
            last = p.steps;
            if (p.splits > 1) {
                const unsigned share = static_cast<unsigned>(p.steps) / p.splits, rest = p.steps - share * p.splits;
                first = static_cast<int>(share) * split + min(split, static_cast<int>(rest));
                last = first + static_cast<int>(share) + (split < static_cast<int>(rest));
                tap = static_cast<int>(static_cast<unsigned>(first) % p.taps);
            }
        }

        __device__ __forceinline__ int filter() const
        {
            return filters * FILTERS;
        }
        __device__ __forceinline__ int row(const cuda_patch &p) const
        {
            return down * p.tile_down;
        }
        __device__ __forceinline__ int column(const cuda_patch &p) const
        {
            return across * p.tile_across;
        }
    };
};

#endif
