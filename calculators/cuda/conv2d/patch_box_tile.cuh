/* Tiles of a convolution over boxes in tf32 (conv2d/patch_box.cuh): their sizes, and which of them a block makes. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_TILE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_TILE_CUH

#include "calculators/cuda/conv2d/patch.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int LINES> struct patch_box_tile {
    static constexpr int GROUPS = FILTER_GROUPS * PIXEL_GROUPS, WORKERS = 128 * GROUPS, WARPS = WORKERS / 32;
    static constexpr int THREADS = WORKERS + 64; /* one warp for patches, one for weights */
    static constexpr int FILTERS = 64 * FILTER_GROUPS, TILE = PIXELS * PIXEL_GROUPS;
    static constexpr int ROW = PATCH_CHANNELS * 4, STEP = FILTERS * ROW, PART = FILTERS + 4;
    static constexpr int SOME = 8 * LINES,
                         LEFT = 68; /* pixels of a group that leave together; a row of 64 filters, in floats */
    static constexpr int LEAVING = 2 * SOME * LEFT; /* floats of a group that leave, in two turns */

    typedef float sums[PIXELS / 8][4];

    struct block {
        int image, down, across, filters; /* the tile's number along each axis */
        int split, first, last, tap;      /* steps, and the first one's tap */

        __device__ block(const cuda_patch &p, unsigned at)
        {
            split = static_cast<int>(at % p.splits);
            at /= p.splits;
            filters = static_cast<int>(at % p.tiles_filters);
            at /= p.tiles_filters;
            across = static_cast<int>(at % p.tiles_across);
            at /= p.tiles_across;
            down = static_cast<int>(at % p.tiles_down);
            image = static_cast<int>(at / p.tiles_down);
            int share = p.steps / p.splits, rest = p.steps % p.splits;
            first = share * split + min(split, rest);
            last = first + share + (split < rest);
            tap = first % p.taps;
        }

        /* The block that is `by` tiles further on. */
        __device__ __forceinline__ void advance(const cuda_patch &p, const block &by)
        {
            filters += by.filters;
            across += by.across;
            down += by.down;
            image += by.image;
            if (filters >= p.tiles_filters) {
                filters -= p.tiles_filters;
                across++;
            }
            if (across >= p.tiles_across) {
                across -= p.tiles_across;
                down++;
            }
            if (down >= p.tiles_down) {
                down -= p.tiles_down;
                image++;
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
