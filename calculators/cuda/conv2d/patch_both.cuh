/* SPDX-License-Identifier: MIT */
/* Convolution over a patch in fp16 and bf16, with products of warpgroups whose two factors lie in shared memory: the largest tiles, for compute
 * capability 9.0a. (conv2d/patch_box.cuh has those of tf32, whose numbers need no rounding on their way.)
 *
 * Operands are swapped: the rows of the product are filters, 64 of each of GROUPS warpgroups, its columns are the tile's pixels. So one instruction has
 * up to 256 pixels, reads them once from shared memory, and reads 64 filters beside them: as little as there is for so many products.
 *
 * A tile is 8 pixels across, or one row. 8 neighbouring pixels of a line are 8 rows of 128 bytes that follow each other in the patch, the
 * 8 of the next line come a line of the patch later: what a descriptor can say. A tap is the same with another first row. Of
 * strided windows, the patch holds the places of each remainder together.
 *
 * BRINGING more warps bring patches: copies are queued, and once they are there, the warp that asked for them rounds them in place: a
 * row has 32 numbers, which end up in its first 64 bytes. With the first patch all warps help. The others have the products of up to
 * DEPTH steps under way before they wait for one; one of their threads has weights copied into the places that became free. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOTH_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOTH_CUH

#include "calculators/cuda/conv2d/patch_halves.cuh"

template <typename FACTOR, int GROUPS, int PIXELS, int STAGES, int BRINGING, int DEPTH>
struct patch_both_product : patch_halves<FACTOR, GROUPS, PIXELS> {
    using halves = patch_halves<FACTOR, GROUPS, PIXELS>;
    using tile = typename halves::tile;
    using block = typename halves::block;
    using sums = typename halves::sums;
    using halves::FILTERS, halves::WORKERS, halves::WARPS;
    using tile::INNER, tile::ROW, tile::STEP, tile::PLACE, tile::PART;
    static constexpr int BRINGERS = 32 * BRINGING, THREADS = WORKERS + BRINGERS; /* warps that bring patches */
    static constexpr int PATCHES = 3; /* most that are in shared memory at a time */

    struct barriers {
        uint64_t weights_full[STAGES], weights_empty[STAGES], patch_full[PATCHES], patch_empty[PATCHES];
    };

    /* ---- tables ---- */

    /* The source of each place of the patch, -1 outside the image; the place of each tap's first pixel. */
    static __device__ void make_tables(const cuda_patch &p, const block &b, int *source, int *tap_at)
    {
        const int step[2] = {p.pixel_step[0], p.pixel_step[1]}, places = p.patch_pixels / (step[0] * step[1]);
        for (int i = static_cast<int>(threadIdx.x); i < p.patch_pixels; i += THREADS) {
            int rest = i / places, at = i - rest * places;
            int down = at / p.patch_across, right = at - down * p.patch_across;
            down = down * step[0] + rest / step[1];
            right = right * step[1] + rest % step[1];
            int h = b.row * p.stride[0] - p.padding[0] + down * p.source_step[0];
            int w = b.column * p.stride[1] - p.padding[1] + right * p.source_step[1];
            bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) &&
                          static_cast<unsigned>(w) < static_cast<unsigned>(p.width);
            source[i] = inside ? ((b.image * p.height + h) * p.width + w) * p.channels : -1;
        }
        for (int i = static_cast<int>(threadIdx.x); i < p.taps; i += THREADS) {
            int down = i / p.taps_across * p.tap_step[0], right = i % p.taps_across * p.tap_step[1];
            int rest = down % step[0] * step[1] + right % step[1];
            tap_at[i] = rest * places + down / step[0] * p.patch_across + right / step[1];
        }
    }

    /* ---- bringing ---- */

    static __device__ __forceinline__ void load_weights(const cuda_patch &p, const block &b, char *weights,
                                                        barriers *bar, int step)
    {
        int stage = (step - b.first) % STAGES;
        copy_bulk(weights + stage * STEP, p.w + (static_cast<int64_t>(step) * p.filters_padded + b.filter) * ROW, STEP,
                  &bar->weights_full[stage]);
    }

    /* A warp, of OF that do the same, has 16 pixels at a time, 4 with each copy. */
    template <int OF>
    static __device__ __forceinline__ void queue_patch(const cuda_patch &p, uint32_t patch, const int *source,
                                                       int chunk, int thread)
    {
        const int part = thread % 8, channel = chunk * PATCH_CHANNELS + part * 4;
        const bool exists = channel < p.channels;
        const float *x = p.x + channel;
        int pixel = thread / 32 * 16 + thread % 32 / 8;
        uint32_t row = patch + pixel * PLACE;
        for (; pixel < p.patch_pixels; pixel += 32 * OF, row += 32 * OF * PLACE) {
            int from[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int on = i / 4 * 16 * OF + i % 4 * 4;
                from[i] = pixel + on < p.patch_pixels ? source[pixel + on] : -2;
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int on = i / 4 * 16 * OF + i % 4 * 4;
                bool inside = from[i] >= 0 && exists;
                if (from[i] > -2)
                    copy_row(halves::chunk_of(row + on * PLACE, part), inside ? x + from[i] : p.x, inside);
            }
        }
        close_copies();
    }

    static __device__ __forceinline__ void copy_row(uint32_t to, const float *from, bool valid)
    {
        int bytes = valid ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }

    static __device__ __forceinline__ void await_patch(int open)
    {
        if (open == 0)
            await_copies<0>();
        else if (open == 1)
            await_copies<1>();
        else
            await_copies<2>();
    }

    /* Patches are queued as far ahead as there is room. The first is there already, with all warps' help, and the others of the first turn
     * are queued.
     *
     * A patch is read until DEPTH steps behind its last one have begun. Of windows of one tap these steps want patches of their own, so that
     * place for another may be waited for only when so many behind are rounded. */
    static __device__ __forceinline__ void bring_patches(const cuda_patch &p, const block &b, uint32_t patches,
                                                         const int *source, barriers *bar, int thread)
    {
        const int first = b.first / p.taps, count = (b.last - 1) / p.taps - first + 1;
        const int behind = (p.taps - 1 + DEPTH) / p.taps;
        int queued = min(count, p.patches);
        for (int i = 1; i < count; i++) {
            await_patch(queued - i - 1);
            halves::template round_patch<BRINGING>(p, patches + i % p.patches * p.patch_bytes, thread);
            barrier_arrive(&bar->patch_full[i % p.patches]);
            if (queued < count && i >= behind) {
                barrier_await(&bar->patch_empty[(i - behind) % p.patches], (i - behind) / p.patches & 1);
                queue_patch<BRINGING>(p, patches + queued % p.patches * p.patch_bytes, source, first + queued, thread);
                queued++;
            }
        }
    }

    /* ---- multiplying ---- */

    static __device__ __forceinline__ void multiply(const cuda_patch &p, const block &b, sums &sum, char *weights,
                                                    uint32_t patches, const int *tap_at, barriers *bar)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 128;
        const int group_bytes = p.tile_log == 3 ? p.patch_across * PLACE : 8 * PLACE;
        const uint32_t filters = patch_address(weights) + group * 64 * ROW;
        int tap = b.first % p.taps, slot = 0, turn = 0, stage = 0, phase = 0;
        int tap_done = tap, slot_done = 0, stage_done = 0; /* of the step that is over next */
        bool fresh = false;                                /* the first patch is there */
        auto release = [&](int done) {
            if (lane == 0) {
                barrier_arrive(&bar->weights_empty[stage_done]);
                if (tap_done == p.taps - 1) barrier_arrive(&bar->patch_empty[slot_done]);
            }
            if (threadIdx.x == 0 && done + STAGES < b.last) { /* all are about as far */
                barrier_await(&bar->weights_empty[stage_done], (done - b.first) / STAGES & 1);
                load_weights(p, b, weights, bar, done + STAGES);
            }
            if (++stage_done == STAGES) stage_done = 0;
            if (++tap_done == p.taps) {
                tap_done = 0;
                if (++slot_done == p.patches) slot_done = 0;
            }
        };
#pragma unroll 1
        for (int number = b.first; number < b.last; number++) {
            if (fresh) barrier_await(&bar->patch_full[slot], (turn - (slot == 0)) & 1);
            uint64_t pixels = wgmma_rows(patches + slot * p.patch_bytes + tap_at[tap] * PLACE, group_bytes);
            uint64_t rows = wgmma_factor(filters + stage * STEP, ROW);
            barrier_await(&bar->weights_full[stage], phase);
            wgmma_begin();
#pragma unroll
            for (int inner = 0; inner < INNER; inner++)
                patch_multiply_both<FACTOR, PIXELS>(sum, rows + inner * 2, pixels + inner * 2);
            wgmma_commit();
            wgmma_await<DEPTH>();
            if (number >= b.first + DEPTH) release(number - DEPTH);
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
            fresh = ++tap == p.taps;
            if (fresh) {
                tap = 0;
                if (++slot == p.patches) {
                    slot = 0;
                    turn++;
                }
            }
        }
        wgmma_await<0>();
    }

    /* ---- results ---- */

    /* Each block of the cluster adds every splits-th quad of the tile, once all parts are there, and stores it. */
    template <bool QUICK>
    static __device__ __forceinline__ void add_parts(const cuda_patch &p, const block &b, float *part)
    {
        constexpr int QUADS = FILTERS / 4;
        for (int quad = static_cast<int>(threadIdx.x) + b.split * THREADS; quad < PIXELS * QUADS;
             quad += THREADS * p.splits) {
            int m = quad / QUADS, column = quad % QUADS * 4, filter = b.filter + column;
            int64_t pixel = tile::result_of(p, b, m);
            if (pixel < 0 || filter >= p.filters) continue;
            const float4 total = patch_sum_parts(patch_address(part + m * PART + column), p.splits);
            float value[4] = {total.x, total.y, total.z, total.w};
            int64_t at = pixel * p.filters + filter;
            if (p.fours) {
                if (p.bias != nullptr) add_four(value, p.bias + filter);
                if (p.residual != nullptr) add_four(value, p.residual + at);
#pragma unroll
                for (int v = 0; v < 4; v++) value[v] = tile::template activated<QUICK>(p, value[v]);
                *reinterpret_cast<float4 *>(p.y + at) = make_float4(value[0], value[1], value[2], value[3]);
            } else {
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    if (filter + v < p.filters)
                        p.y[at + v] = tile::template finish<QUICK>(p, filter + v, at + v, value[v]);
                }
            }
        }
    }

    static __device__ __forceinline__ void add_four(float (&value)[4], const float *from)
    {
        float4 four = *reinterpret_cast<const float4 *>(from);
        value[0] += four.x;
        value[1] += four.y;
        value[2] += four.z;
        value[3] += four.w;
    }

    static __device__ void run(const cuda_patch &p)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - patch_address(memory) % 1024) % 1024;
        char *weights = shared, *patches = shared + STAGES * STEP;
        barriers *bar = reinterpret_cast<barriers *>(shared + tile::work(p, STAGES));
        int *source = reinterpret_cast<int *>(bar + 1), *tap_at = source + p.patch_pixels;
        const block b(p);
        const int bringer = static_cast<int>(threadIdx.x) - WORKERS;
        if (p.fresh) await_inputs();
        if (bringer == 0) {
            for (int i = 0; i < STAGES; i++) {
                barrier_init(&bar->weights_full[i], 1);
                barrier_init(&bar->weights_empty[i], WARPS);
            }
            for (int i = 0; i < p.patches; i++) {
                barrier_init(&bar->patch_full[i], BRINGERS);
                barrier_init(&bar->patch_empty[i], WARPS);
            }
            barriers_made();
            for (int step = b.first; step < b.last && step < b.first + STAGES; step++)
                load_weights(p, b, weights, bar, step);
        }
        make_tables(p, b, source, tap_at);
        __syncthreads();
        await_inputs();
        let_next_start();
        const int chunk = b.first / p.taps, chunks = (b.last - 1) / p.taps - chunk + 1;
        queue_patch<THREADS / 32>(p, patch_address(patches), source, chunk, threadIdx.x);
        if (bringer >= 0) {
            for (int i = 1; i < p.patches && i < chunks; i++)
                queue_patch<BRINGING>(p, patch_address(patches) + i * p.patch_bytes, source, chunk + i, bringer);
        }
        await_patch(bringer >= 0 ? min(p.patches, chunks) - 1 : 0);
        halves::template round_patch<THREADS / 32>(p, patch_address(patches), threadIdx.x);
        __syncthreads();
        if (bringer < 0) {
            sums sum = {};
            multiply(p, b, sum, weights, patch_address(patches), tap_at, bar);
            patch_await_reads<THREADS>();
            halves::put_part(sum, reinterpret_cast<float *>(shared));
        } else {
            bring_patches(p, b, patch_address(patches), source, bar, bringer);
            patch_await_reads<THREADS>();
        }
        __syncwarp();
        if (p.splits > 1)
            await_cluster();
        else
            __syncthreads();
        float *part = reinterpret_cast<float *>(shared);
        p.quick ? add_parts<true>(p, b, part) : add_parts<false>(p, b, part);
        __syncwarp();
        if (p.splits > 1) await_cluster(); /* others may still read from this block */
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS)
    patch_both_kernel(const __grid_constant__ cuda_patch p)
{
    PRODUCT::run(p);
}

#endif
