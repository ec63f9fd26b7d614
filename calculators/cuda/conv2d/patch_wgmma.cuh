/* SPDX-License-Identifier: MIT */
/* Convolution over a patch with products of warpgroups (wgmma): large tiles, for compute capability 9.0a.
 *
 * Each of GROUPS warpgroups makes 64 pixels x FILTERS results: it reads its pixels from the patch into registers and multiplies them
 * by weights that stay in shared memory. Four more warps bring what they need. One of them has weights copied, in bulk, STAGES steps
 * ahead; the others read patches, round them and write them to shared memory. Barriers there say what is full and what is empty; the
 * block as a whole never waits. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_WGMMA_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_WGMMA_CUH

#include "calculators/cuda/conv2d/patch.cuh"
#include "calculators/cuda/wgmma.cuh"

/* c (64,FILTERS) += a b for one product of a step; b as wgmma_factor has it. */
template <typename FACTOR, int FILTERS>
static __device__ __forceinline__ void patch_multiply(float (*c)[4], const uint32_t (&a)[4], uint64_t b)
{
    constexpr bool WIDE = FILTERS == 128;
    if constexpr (FACTOR::MATH == SDLF_MATH_TF32)
        WIDE ? wgmma_tf32_128(c, a, b) : wgmma_tf32_64(c, a, b);
    else if constexpr (FACTOR::MATH == SDLF_MATH_FP16)
        WIDE ? wgmma_fp16_128(c, a, b) : wgmma_fp16_64(c, a, b);
    else
        WIDE ? wgmma_bf16_128(c, a, b) : wgmma_bf16_64(c, a, b);
}

template <typename FACTOR, int GROUPS, int FILTERS, int STAGES>
struct patch_group_product : patch_tile<FACTOR, false, 64 * GROUPS, FILTERS, 16, FILTERS> {
    using tile = patch_tile<FACTOR, false, 64 * GROUPS, FILTERS, 16, FILTERS>;
    using block = typename tile::block;
    using sums = typename tile::sums;
    using tile::HALVES, tile::INNER, tile::ROW, tile::STEP;
    static constexpr int BRINGERS = 96; /* threads that bring patches; 32 more bring weights */
    static constexpr int THREADS = tile::WORKERS + BRINGERS + 32, WARPS = tile::WORKERS / 32;
    static constexpr int AT_ONCE = FILTERS < 128 ? FILTERS : 128; /* filters of a product */
    static constexpr int PATCHES = STAGES + 1;                    /* most that are in shared memory at a time */
    static constexpr int PLACE = PATCH_CHANNELS * FACTOR::BYTES;  /* bytes of a pixel in the patch */
    static constexpr int DOWN = BRINGERS / 8, BATCH = 8;          /* pixels at once; quads of a thread under way */

    typedef uint32_t factors[INNER][4];

    struct barriers {
        uint64_t weights_full[STAGES], weights_empty[STAGES], patch_full[PATCHES], patch_empty[PATCHES];
    };

    static __device__ __forceinline__ int spread(int pixel)
    {
        return HALVES ? pixel >> 1 & 3 : pixel & 7;
    }

    /* ---- bringing ---- */

    static __device__ __forceinline__ void load_weights(const cuda_patch &p, const block &b, char *weights,
                                                        barriers *bar, int step)
    {
        int stage = (step - b.first) % STAGES;
        copy_bulk(weights + stage * STEP, p.w + (static_cast<int64_t>(step) * p.filters_padded + b.filter) * ROW, STEP,
                  &bar->weights_full[stage]);
    }

    /* One thread. The first STAGES steps' weights are on their way already. */
    static __device__ __forceinline__ void bring_weights(const cuda_patch &p, const block &b, char *weights,
                                                         barriers *bar)
    {
        for (int step = b.first + STAGES; step < b.last; step++) {
            int done = step - b.first;
            barrier_await(&bar->weights_empty[done % STAGES], (done / STAGES - 1) & 1);
            load_weights(p, b, weights, bar, step);
        }
    }

    /* Four channels of a pixel of x. */
    static __device__ __forceinline__ float4 read_quad(const cuda_patch &p, int from, int channel)
    {
        float4 four = {0, 0, 0, 0};
        if (from < 0 || channel >= p.channels) return four;
        const float *at = p.x + from + channel;
        if (p.quads) return *reinterpret_cast<const float4 *>(at);
        four.x = at[0];
        if (channel + 1 < p.channels) four.y = at[1];
        if (channel + 2 < p.channels) four.z = at[2];
        if (channel + 3 < p.channels) four.w = at[3];
        return four;
    }

    /* Channels 4 `part` .. 4 `part` + 3 of a pixel, rounded. */
    static __device__ __forceinline__ void write_quad(char *patch, int pixel, int part, const float4 &four)
    {
        char *place = patch + pixel * PLACE;
        if constexpr (HALVES) {
            int chunk = part / 4 * 2, word = part % 4;
            reinterpret_cast<uint32_t *>(place + ((chunk ^ spread(pixel)) << 4))[word] = FACTOR::pair(four.x, four.y);
            reinterpret_cast<uint32_t *>(place + ((chunk + 1 ^ spread(pixel)) << 4))[word] =
                FACTOR::pair(four.z, four.w);
        } else {
            uint4 words = {FACTOR::weight(four.x), FACTOR::weight(four.y), FACTOR::weight(four.z),
                           FACTOR::weight(four.w)};
            *reinterpret_cast<uint4 *>(place + ((part ^ spread(pixel)) << 4)) = words;
        }
    }

    static __device__ __forceinline__ void bring_patches(const cuda_patch &p, const block &b, char *patches,
                                                         const int *source, barriers *bar, int thread)
    {
        int part = thread % 8, slot = 0, turn = 0;
        for (int chunk = b.first / p.taps; chunk * p.taps < b.last; chunk++) {
            char *patch = patches + slot * p.patch_bytes;
            for (int start = 0; start < p.patch_pixels; start += DOWN * BATCH) {
                float4 four[BATCH];
#pragma unroll
                for (int i = 0; i < BATCH; i++) {
                    int pixel = start + i * DOWN + thread / 8;
                    int from = pixel < p.patch_pixels ? source[pixel] : -1;
                    four[i] = read_quad(p, from, chunk * PATCH_CHANNELS + part * 4);
                }
                if (start == 0 && turn > 0) barrier_await(&bar->patch_empty[slot], (turn - 1) & 1);
#pragma unroll
                for (int i = 0; i < BATCH; i++) {
                    int pixel = start + i * DOWN + thread / 8;
                    if (pixel < p.patch_pixels) write_quad(patch, pixel, part, four[i]);
                }
            }
            barrier_arrive(&bar->patch_full[slot]);
            if (++slot == p.patches) {
                slot = 0;
                turn++;
            }
        }
    }

    /* ---- multiplying ---- */

    /* Where a warp is in the patches. */
    struct position {
        int tap, slot, turn;
        bool fresh; /* nothing of this patch was read yet */
    };

    /* The lane's factors of a step. True: the patch's last step. */
    static __device__ __forceinline__ bool read(const cuda_patch &p, factors &a, position &at, uint32_t patches,
                                                int place, const int *tap_at, barriers *bar)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if (at.fresh) barrier_await(&bar->patch_full[at.slot], at.turn & 1);
        int pixel = place + tap_at[at.tap];
        uint32_t from = patches + at.slot * p.patch_bytes + pixel * PLACE + ((lane / 16 ^ spread(pixel)) << 4);
#pragma unroll
        for (int inner = 0; inner < INNER; inner++) patch_read_matrices(a[inner], from ^ (inner << 5));
        at.fresh = ++at.tap == p.taps;
        if (!at.fresh) return false;
        at.tap = 0;
        if (++at.slot == p.patches) {
            at.slot = 0;
            at.turn++;
        }
        return true;
    }

    /* Two steps' factors are in registers: while the tensor cores work on one, the other's are read. */
    static __device__ __forceinline__ void multiply(const cuda_patch &p, const block &b, sums &sum, uint32_t weights,
                                                    uint32_t patches, const int *tap_at, barriers *bar)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        position at = {b.first % p.taps, 0, 0, true};
        int place = tile::place_of(p, warp * 16 + lane % 16);
        int stage = 0, phase = 0, before = 0, slot = 0, slot_before = 0;
        bool last_of_patch = false, last_before = false;
        factors even, odd;
        auto step = [&](factors &now, factors &next, int number) {
            barrier_await(&bar->weights_full[stage], phase);
            wgmma_begin();
#pragma unroll
            for (int inner = 0; inner < INNER; inner++) {
#pragma unroll
                for (int k = 0; k < FILTERS; k += AT_ONCE)
                    patch_multiply<FACTOR, AT_ONCE>(&sum[0][k / 8], now[inner],
                                                    wgmma_factor(weights + stage * STEP + k * ROW + inner * 32, ROW));
            }
            wgmma_commit();
            wgmma_await<1>();
            if (number > b.first && lane == 0) {
                barrier_arrive(&bar->weights_empty[before]);
                if (last_before) barrier_arrive(&bar->patch_empty[slot_before]);
            }
            before = stage;
            last_before = last_of_patch;
            slot_before = slot;
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
            if (number + 1 < b.last) {
                slot = at.slot;
                last_of_patch = read(p, next, at, patches, place, tap_at, bar);
            }
        };
        last_of_patch = read(p, even, at, patches, place, tap_at, bar);
#pragma unroll 1
        for (int number = b.first; number < b.last; number += 2) {
            step(even, odd, number);
            if (number + 1 < b.last) step(odd, even, number + 1);
        }
        wgmma_await<0>();
    }

    static __device__ void run(const cuda_patch &p)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - patch_address(memory) % 1024) % 1024;
        char *weights = shared, *patches = shared + STAGES * STEP;
        barriers *bar = reinterpret_cast<barriers *>(shared + tile::work(p, STAGES));
        int *source = reinterpret_cast<int *>(bar + 1), *tap_at = source + p.patch_pixels;
        const block b(p);
        const int bringer = static_cast<int>(threadIdx.x) - tile::WORKERS;
        if (p.fresh) await_inputs();
        if (bringer == BRINGERS) {
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
        tile::template make_tables<THREADS>(p, b, source, tap_at);
        __syncthreads();
        await_inputs();
        let_next_start();
        if (bringer < 0) {
            sums sum = {};
            multiply(p, b, sum, patch_address(weights), patch_address(patches), tap_at, bar);
            if (p.direct) {
                tile::store(p, b, sum);
            } else {
                patch_await_reads<THREADS>();
                tile::put_part(sum, reinterpret_cast<float *>(shared));
            }
        } else if (bringer < BRINGERS) {
            bring_patches(p, b, patches, source, bar, bringer);
        } else if (bringer == BRINGERS) {
            bring_weights(p, b, weights, bar);
        }
        __syncwarp();
        if (!p.direct && bringer >= 0) patch_await_reads<THREADS>();
        if (!p.direct) tile::template add_parts<THREADS>(p, b, reinterpret_cast<float *>(shared));
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS)
    patch_group_kernel(const __grid_constant__ cuda_patch p)
{
    PRODUCT::run(p);
}

#endif
