/* SPDX-License-Identifier: MIT */
/* Convolutions whose output is an image: fprop and dgrad, as implicit GEMM. Rows of the tile are pixels of the output, columns
 * its channels; the reduction runs over taps of the filter and, within a tap, over the channels of the input image, CHUNK at a
 * time.
 *
 * The dgrad of a convolution of stride s is split into s x s classes of pixels, by their row and column modulo s: a class is a
 * convolution of stride 1 with every s-th tap, from the last to the first. Both kinds are therefore lists of classes; fprop has one. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_IMAGE_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_IMAGE_CUH

#include "calculators/cuda/engine/cluster_sums.cuh"
#include "calculators/cuda/engine/image_epilogue.cuh"
#include "calculators/cuda/engine/mainloop.cuh"

template <typename T, int COLUMNS, int CHUNK_BYTES, int DGRAD> struct image_product {
    using Element = T;
    using Params = image_params;
    /* fprop reads filters as stored, channels of x within a tap; the reduction of dgrad runs over filters: 16-bit weights are also read as stored */
    static constexpr int SIZE = sizeof(T), CHUNK = CHUNK_BYTES / SIZE, K = K_BYTES / SIZE;
    static constexpr int BM = 128, BN = COLUMNS, MN_A = 0, MN_B = DGRAD && SIZE == 2;
    static constexpr int CHUNK_A = CHUNK, CHUNK_B = MN_B ? 64 : CHUNK;
    static constexpr int STAGES = BN == 128 ? 3 : 4, PARTS = K / CHUNK;
    using residual = staged_residual<T, BN, BM * K_BYTES + BN * K_BYTES>;

    struct Place {
        int part, row, column; /* class, first pixel, first column of the weights */
        int read;              /* first channel of the input image */
        int steps;             /* k-steps of the block */
        int parts;             /* its chunks of a tap; the last step may have fewer than PARTS */
        int w, h, n;           /* base pixel */
        int chunk, i, j;       /* the next load: channels of a tap */
    };

    /* Tile `tile` in the sequence of all classes' row tiles. */
    static __device__ __forceinline__ Place place(const Params &p, int tile, int column, int rank)
    {
        Place at = {};
        at.column = column * BN;
        at.read = p.block_tiles > 0 ? column / p.block_tiles * p.block_reads : 0;
        while (at.part + 1 < p.classes && tile >= p.of[at.part].tiles) tile -= p.of[at.part++].tiles;
        const dgrad_phase &of = p.of[at.part];
        at.row = tile * BM;
        int i, j;
        at.n = divide(divide(at.row, of.count[1], j), of.count[0], i);
        at.h = of.lower[0] + of.stride[0] * i;
        at.w = of.lower[1] + of.stride[1] * j;
        const int parts = of.taps[0] * of.taps[1] * p.chunks, steps = (parts + PARTS - 1) / PARTS;
        const int each = (steps + p.cluster - 1) / p.cluster, first = rank * each;
        at.steps = min(each, steps - first);
        at.parts = min(each * PARTS, parts - first * PARTS);
        if (first > 0) {
            const int tap = first * PARTS / p.chunks;
            at.chunk = first * PARTS - tap * p.chunks;
            at.i = tap / of.taps[1];
            at.j = tap - at.i * of.taps[1];
        }
        return at;
    }

    /* Issue the loads of the next k-step: `count` chunks. */
    static __device__ __forceinline__ void load(const Params &p, Place &at, int count, uint32_t a, uint32_t b,
                                                uint32_t barrier)
    {
        const dgrad_phase &of = p.of[at.part];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            if (PARTS > 1 && part >= count) break;
            const int chunk = at.chunk;
            const int filter = (of.first[0] + of.step[0] * at.i) * p.filter_width + of.first[1] + of.step[1] * at.j;
            tma_load_im2col(a + part * BM * CHUNK_BYTES, &of.read, barrier, at.read + chunk * CHUNK, at.w, at.h, at.n,
                            of.tap_offset[1] * at.j, of.tap_offset[0] * at.i);
            if constexpr (MN_B) {
#pragma unroll
                for (int c = 0; c < BN; c += 64)
                    tma_load_3d(b + c * K_BYTES + part * CHUNK * 64 * 2, &p.weights, barrier, at.column + c, filter,
                                chunk * CHUNK);
            } else {
                tma_load_3d(b + part * BN * CHUNK_BYTES, &p.weights, barrier, chunk * CHUNK, filter, at.column);
            }
            if (++at.chunk < p.chunks) continue;
            at.chunk = 0;
            if (++at.j < of.taps[1]) continue;
            at.j = 0;
            at.i++;
        }
    }

    /* Issue the loads of a part of the tile's residual. */
    static __device__ __forceinline__ void load_residual(const Params &p, int row, int channel, uint32_t to,
                                                         uint32_t barrier)
    {
#pragma unroll
        for (int box = 0; box < residual::BOXES; box++)
            tma_load_2d(to + box * residual::BOX_BYTES, &p.residual_tiles, barrier, channel + box * residual::ACROSS,
                        row);
    }
};

/* Persistent: a block computes every slots-th tile of a column, so that the next tile is loaded during the epilogue; or, with few tiles, the
 * blocks of a cluster split a tile's reduction. */
template <typename Work, image_mode MODE>
static __global__ void __launch_bounds__(engine_sizes<Work>::THREADS, 2)
    image_kernel(const __grid_constant__ image_params p)
{
#ifdef SDLF_HAS_WGMMA
    using residual = typename Work::residual;
    extern __shared__ uint8_t unaligned[];
    __shared__ engine_barriers<Work> barriers;
    __shared__ channel_numbers<Work::BN> numbers;
    if (threadIdx.x == 0) {
        tma_prefetch(&p.of[0].read);
        tma_prefetch(&p.weights);
    }
    barriers.init();
    wait_and_launch_dependent_grids();
    const int warp = static_cast<int>(threadIdx.x) / 32, number = static_cast<int>(blockIdx.x) / p.cluster;
    const int rank = static_cast<int>(blockIdx.x) - number * p.cluster;
    const int slot = number / p.column_tiles, column = number - slot * p.column_tiles;
    const bool produces = warp == ENGINE_CONSUMERS / 32;
    engine_ring<Work> ring = {&barriers, ring_start(unaligned), 0, produces};
    if (produces) {
        if (threadIdx.x % 32 != 0) return;
        const int channel = channels_of(p, column, Work::BN).first;
        for (int tile = slot; tile < p.row_tiles; tile += p.slots) {
            typename Work::Place at = Work::place(p, tile, column, rank);
            for (int step = 0; step < at.steps; step++, ring.advance()) {
                const uint32_t a = ring.tile_a(), b = a + engine_sizes<Work>::A_BYTES;
                const int parts = min(Work::PARTS, at.parts - step * Work::PARTS);
                Work::load(p, at, parts, a, b,
                           ring.producer_acquire(parts * engine_sizes<Work>::STAGE_BYTES / Work::PARTS));
            }
            if constexpr (MODE == STAGED_RESIDUAL) {
                for (int part = 0; part < residual::PARTS; part++, ring.advance())
                    Work::load_residual(p, at.row, channel + part * residual::COLUMNS, ring.tile_a(),
                                        ring.producer_acquire(residual::BYTES));
            }
        }
        return;
    }
    float *sums = reinterpret_cast<float *>(unaligned +
                                            (ring.start - static_cast<uint32_t>(__cvta_generic_to_shared(unaligned))));
    image_epilogue<typename Work::Element, Work::BN, MODE, engine_ring<Work>> epilogue(p, numbers, column, rank);
    float c[Work::BN / 8][4];
    for (int tile = slot; tile < p.row_tiles; tile += p.slots) {
        const typename Work::Place at = Work::place(p, tile, column, rank);
        ring.template multiply<Work::BN, Work::PARTS>(at.steps, 64 * (warp / 4), 0, c, at.parts);
        if (p.cluster > 1) sum_over_cluster<Work::BN>(p.cluster, epilogue.first_group, epilogue.last_group, sums, c);
        const dgrad_phase &of = p.of[at.part];
        epilogue.finish(p, class_pixels{p, of, at.row}, max(min(Work::BM, of.pixels - at.row), 0), c, &ring);
    }
    epilogue.leave(p, slot);
    if (p.cluster > 1) { /* other blocks read this block's sums */
        __syncwarp();
        arrive_having_read();
        wait_for_cluster();
    }
#endif
}

#endif
