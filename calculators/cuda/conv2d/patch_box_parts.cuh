/* Results of a convolution over boxes in tf32 (conv2d/patch_box.cuh) whose sums are left in shared memory, in the place of factors, first: where
 * blocks of a cluster have a part each, and where activations are slow to make. What goes to y may be the largest of each 2x2. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_PARTS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_PARTS_CUH

#include "calculators/cuda/conv2d/patch_box_results.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int LINES, bool THROUGH>
struct patch_box_parts : patch_box_results<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, THROUGH> {
    using results = patch_box_results<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, THROUGH>;
    using block = typename results::block;
    using sums = typename results::sums;
    using results::FILTERS, results::TILE, results::THREADS, results::PART;
    using results::larger, results::pooled_at, results::store_pooled_four;
    using tile = patch_tile<patch_tf32, false, 16, 8, 16, 8>; /* for what does not depend on its size */

    /* Leave this block's part in its shared memory, pixel by pixel; nobody reads patches or weights any more. */
    static __device__ __forceinline__ void put_part(const sums &sum, float *part, int group)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
        float *at = part + (group % PIXEL_GROUPS * PIXELS + lane % 4 * 2) * PART + group / PIXEL_GROUPS * 64 +
                    warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < PIXELS / 8; j++) {
            at[j * 8 * PART] = sum[j][0];
            at[(j * 8 + 1) * PART] = sum[j][1];
            at[j * 8 * PART + 8] = sum[j][2];
            at[(j * 8 + 1) * PART + 8] = sum[j][3];
        }
    }

    /* Number of a pixel of the block in y, pixel by pixel of each group; -1: it lies outside. */
    static __device__ __forceinline__ int64_t result_of(const cuda_patch &p, const block &b, int m)
    {
        int row = b.row(p), column = b.column(p) + m;
        if (THROUGH) {
            int down = m / p.patch_across;
            column = m - down * p.patch_across;
            if (down >= p.tile_down || column >= p.out_width) return -1;
            row += down;
        } else if (p.tile_down > 1) {
            row += m % PIXELS / 8;
            column = b.column(p) + m / PIXELS * 8 + m % 8;
        }
        if (row >= p.out_height || column >= p.out_width) return -1;
        return (static_cast<int64_t>(b.image) * p.out_height + row) * p.out_width + column;
    }

    /* Each block of the cluster adds every splits-th quad of the tile, once all parts are there, and stores it. */
    template <bool QUICK>
    static __device__ __forceinline__ void add_parts(const cuda_patch &p, const block &b, float *part)
    {
        constexpr int QUADS = FILTERS / 4;
        for (int quad = static_cast<int>(threadIdx.x) + b.split * THREADS; quad < TILE * QUADS;
             quad += THREADS * p.splits) {
            int m = quad / QUADS, column = quad % QUADS * 4, filter = b.filter() + column;
            int64_t pixel = result_of(p, b, m);
            if (pixel < 0 || filter >= p.filters) continue;
            const float4 total = patch_sum_parts(patch_address(part + m * PART + column), p.splits);
            const float value[4] = {total.x, total.y, total.z, total.w};
            int64_t at = pixel * p.filters + filter;
            float out[4];
#pragma unroll
            for (int v = 0; v < 4; v++)
                out[v] = filter + v < p.filters ? tile::template finish<QUICK>(p, filter + v, at + v, value[v]) : 0.0f;
            if (p.fours) {
                *reinterpret_cast<float4 *>(p.y + at) = make_float4(out[0], out[1], out[2], out[3]);
            } else {
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    if (filter + v < p.filters) p.y[at + v] = out[v];
                }
            }
        }
    }

    /* The same of the largest of each 2x2, with ReLU. */
    static __device__ __forceinline__ void add_pooled_parts(const cuda_patch &p, const block &b, float *part)
    {
        constexpr int QUADS = FILTERS / 4, POOLED = PIXELS / 4; /* of a group */
        const int height = p.out_height / 2, width = p.out_width / 2;
        for (int quad = static_cast<int>(threadIdx.x) + b.split * THREADS; quad < TILE / 4 * QUADS;
             quad += THREADS * p.splits) {
            int m = quad / QUADS, group = m / POOLED, down = m % POOLED / 4, across = m % 4;
            int row = b.row(p) / 2 + down, place = b.column(p) / 2 + group * 4 + across;
            int column = quad % QUADS * 4, filter = b.filter() + column;
            if (row >= height || place >= width || filter >= p.filters) continue;
            const float *from = part + (group * PIXELS + down * 16 + across * 2) * PART + column;
            float4 most = patch_sum_parts(patch_address(from), p.splits);
#pragma unroll
            for (int i = 1; i < 4; i++)
                most = larger(most, patch_sum_parts(patch_address(from + (i / 2 * 8 + i % 2) * PART), p.splits));
            const float value[4] = {most.x, most.y, most.z, most.w};
            float *y = p.y + pooled_at(p, b.image, row, place, filter);
            float out[4];
#pragma unroll
            for (int v = 0; v < 4; v++)
                out[v] = filter + v < p.filters ? tile::template finish<true>(p, filter + v, 0, value[v]) : 0.0f;
            if (p.fours) {
                store_pooled_four(p, y, make_float4(out[0], out[1], out[2], out[3]));
            } else {
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    if (filter + v < p.filters) y[p.plane > 0 ? v * p.plane : v] = out[v];
                }
            }
        }
    }
};

#endif
