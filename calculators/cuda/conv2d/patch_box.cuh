/* Convolution over a patch in tf32, with products of warpgroups whose two factors lie in shared memory, and patches that the bulk copy engine
 * brings there as boxes of x (boxes.cuh): for compute capability 9.0a.
 *
 * The product is turned: its rows are filters, 64 of each group, its columns are pixels. A tile is PIXEL_GROUPS times 8 pixels across and
 * PIXELS / 8 lines high, or, of convolutions that are products already, one row. 8 neighbouring pixels of a line are 8 rows of 128
 * bytes that follow each other in the patch, the 8 of the next line come a line of the patch later: what a descriptor can say. A tap
 * is the same with another first row. Of strided windows, the patch holds the places of each remainder together, each a box of its own.
 * THROUGH: a tile is whole lines of the image, whose pixels are counted through, with a place that is no pixel behind each line (conv2d/patch_cut.c);
 * so that images whose width is no multiple of 8 leave less of a tile empty.
 *
 * One thread has patches copied, another weights, as far ahead as there is room. All other warps multiply. A block makes one tile after
 * the other, and while its results leave through a small part of shared memory, the next tile's factors arrive. Where blocks of a cluster share
 * a sum, and where activations are slow to make, results take the place of the factors, and the block has one tile.
 *
 * The copy engine rounds pixels to tf32 on their way; weights were rounded when they were made ready. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_CUH

#include "calculators/cuda/boxes.cuh"
#include "calculators/cuda/conv2d/patch_box_results.cuh"
#include "calculators/cuda/wgmma_both.cuh"

/* c (64,PIXELS) += a b for one product of a step; a as wgmma_factor has it, b as wgmma_rows. */
template <int PIXELS>
static __device__ __forceinline__ void patch_multiply_box(float (&c)[PIXELS / 8][4], uint64_t a, uint64_t b)
{
    if constexpr (PIXELS == 256)
        wgmma_tf32_both_256(c, a, b);
    else if constexpr (PIXELS == 224)
        wgmma_tf32_both_224(c, a, b);
    else if constexpr (PIXELS == 216)
        wgmma_tf32_both_216(c, a, b);
    else if constexpr (PIXELS == 208)
        wgmma_tf32_both_208(c, a, b);
    else if constexpr (PIXELS == 128)
        wgmma_tf32_both_128(c, a, b);
    else
        wgmma_tf32_both_112(c, a, b);
}

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int STAGES, int LINES, bool THROUGH>
struct patch_box_product : patch_box_results<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, LINES, THROUGH> {
    using results = patch_box_results<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, LINES, THROUGH>;
    using block = typename results::block;
    using sums = typename results::sums;
    using results::GROUPS, results::WORKERS, results::WARPS, results::THREADS, results::FILTERS, results::TILE;
    using results::ROW, results::STEP, results::PART, results::LEAVING;

    static constexpr int TILES = 8; /* more than may be under way, which are STAGES and one */
    static_assert(STAGES + 1 < TILES, "a tile's place is written anew only when all are done with it");

    struct barriers {
        uint64_t weights_full[STAGES], weights_empty[STAGES], patch_full[PATCH_SLOTS], patch_empty[PATCH_SLOTS];
        int4 tile
            [TILES]; /* of the block's tiles in turn: image, row, column, filter; there with the first step's weights */
    };

    static __device__ __forceinline__ uint32_t place_of(uint64_t *barrier)
    {
        return static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
    }

    /* Rows of the patch from tap (0, 0)'s first pixel to each tap's. */
    static __device__ void make_taps(const cuda_patch &p, int *tap_at)
    {
        const int places = p.patch_pixels / (p.pixel_step[0] * p.pixel_step[1]);
        for (int i = static_cast<int>(threadIdx.x); i < p.taps; i += THREADS) {
            int down = i / p.taps_across * p.tap_step[0], right = i % p.taps_across * p.tap_step[1];
            int rest = down % p.pixel_step[0] * p.pixel_step[1] + right % p.pixel_step[1];
            tap_at[i] = rest * places + down / p.pixel_step[0] * p.patch_across + right / p.pixel_step[1];
        }
    }

    /* ---- bringing, by one thread each ---- */

    /* The patch of a chunk of an image that lies where the copy engine cannot read; of windows without a stride. */
    static __device__ __noinline__ void bring_slowly(const cuda_patch &p, const block &b, uint32_t to, int chunk)
    {
        for (int i = 0; i < p.patch_down * p.patch_across * PATCH_CHANNELS; i++) {
            int place = i / PATCH_CHANNELS, number = i % PATCH_CHANNELS, channel = chunk * PATCH_CHANNELS + number;
            int h = b.row(p) - p.padding[0] + place / p.patch_across;
            int w = b.column(p) - p.padding[1] + place % p.patch_across;
            bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) && channel < p.channels &&
                          static_cast<unsigned>(w) < static_cast<unsigned>(p.width);
            float value = 0;
            if (inside)
                value = p.x[((static_cast<int64_t>(b.image) * p.height + h) * p.width + w) * p.channels + channel];
            uint32_t at = to + place * ROW + ((number / 4 ^ place % 8) << 4) + number % 4 * 4; /* swizzled */
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(factor_bits<SDLF_MATH_TF32>(value)) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }

    static __device__ void bring_patches(const cuda_patch &p, const CUtensorMap *x, uint32_t patches, barriers *bar,
                                         unsigned units)
    {
        const bool row = p.tile_down == 1; /* then a box is one group's */
        const int remainders = p.pixel_step[0] * p.pixel_step[1], boxes = row ? PIXEL_GROUPS : remainders;
        const int rows = row ? PIXELS : p.patch_pixels / remainders; /* from box to box */
        const int bytes = (row ? TILE : remainders * p.patch_down * p.patch_across) * ROW;
        int slot = 0, turn = 0;
        const block by(p, gridDim.x);
        block b(p, blockIdx.x);
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, b.advance(p, by)) {
            const int h = b.row(p) * p.stride[0] - p.padding[0], w = b.column(p) * p.stride[1] - p.padding[1];
            for (int chunk = b.first / p.taps; chunk <= (b.last - 1) / p.taps; chunk++) {
                if (turn > 0) barrier_await(&bar->patch_empty[slot], (turn - 1) & 1);
                uint32_t full = place_of(&bar->patch_full[slot]), to = patches + slot * p.patch_bytes;
                if (p.quads) {
                    box_expect(full, bytes);
                    for (int i = 0; i < boxes; i++) {
                        int down = row ? 0 : i / p.pixel_step[1], right = row ? i * PIXELS : i % p.pixel_step[1];
                        box_load(to + i * rows * ROW, x, {chunk * PATCH_CHANNELS, w + right, h + down, b.image}, full);
                    }
                } else {
                    bring_slowly(p, b, to, chunk);
                    barrier_arrive(&bar->patch_full[slot]);
                }
                if (++slot == p.patches) {
                    slot = 0;
                    turn++;
                }
            }
        }
    }

    static __device__ void bring_weights(const cuda_patch &p, char *weights, barriers *bar, unsigned units)
    {
        int stage = 0, turn = 0;
        const block by(p, gridDim.x);
        block b(p, blockIdx.x);
        int number = 0;
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, b.advance(p, by), number++) {
            for (int step = b.first; step < b.last; step++) {
                if (turn > 0) barrier_await(&bar->weights_empty[stage], (turn - 1) & 1);
                if (step == b.first) bar->tile[number % TILES] = {b.image, b.row(p), b.column(p), b.filter()};
                copy_bulk(weights + stage * STEP,
                          p.w + (static_cast<int64_t>(step) * p.filters_padded + b.filter()) * ROW, STEP,
                          &bar->weights_full[stage]);
                if (++stage == STAGES) {
                    stage = 0;
                    turn++;
                }
            }
        }
    }

    /* ---- multiplying ---- */

    /* Where a warp is in the rings of weights and patches. */
    struct position {
        int stage, phase, slot, turn;
    };

    /* A step's weights, and the patch behind its last tap, are read no more. */
    static __device__ __forceinline__ void release(barriers *bar, int stage, int slot, bool patch)
    {
        if (threadIdx.x % 32 != 0) return;
        barrier_arrive(&bar->weights_empty[stage]);
        if (patch) barrier_arrive(&bar->patch_empty[slot]);
    }

    static __device__ __forceinline__ void multiply(const cuda_patch &p, const block &b, sums &sum, position &at,
                                                    uint32_t filters, uint32_t patches, const int *tap_at,
                                                    barriers *bar)
    {
        const int group_bytes = THROUGH || p.tile_down == 1 ? 8 * ROW : p.patch_across * ROW;
        int tap = b.tap, stage_before = 0, slot_before = 0;
        bool fresh = true, over = false; /* a patch begins; the step before was its patch's last */
#pragma unroll 1
        for (int number = b.first; number < b.last; number++) {
            if (fresh) barrier_await(&bar->patch_full[at.slot], at.turn & 1);
            uint64_t pixels = wgmma_rows(patches + at.slot * p.patch_bytes + tap_at[tap] * ROW, group_bytes);
            uint64_t rows = wgmma_factor(filters + at.stage * STEP, ROW);
            barrier_await(&bar->weights_full[at.stage], at.phase);
            wgmma_begin();
#pragma unroll
            for (int inner = 0; inner < 4; inner++)
                patch_multiply_box<PIXELS>(sum, rows + inner * 2, pixels + inner * 2);
            wgmma_commit();
            wgmma_await<1>();
            if (number > b.first) release(bar, stage_before, slot_before, over);
            stage_before = at.stage;
            slot_before = at.slot;
            if (++at.stage == STAGES) {
                at.stage = 0;
                at.phase ^= 1;
            }
            over = fresh = ++tap == p.taps;
            if (fresh || number == b.last - 1) { /* a tile ends with its patch, read to its last tap or not */
                tap = 0;
                if (++at.slot == p.patches) {
                    at.slot = 0;
                    at.turn++;
                }
            }
        }
        wgmma_await<0>();
        release(bar, stage_before, slot_before, true);
    }

    /* ---- the block ---- */

    static __device__ void run(const cuda_patch &p, const CUtensorMap *x)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - patch_address(memory) % 1024) % 1024;
        const int product = STAGES * STEP + p.patches * p.patch_bytes;
        const uint32_t filters = patch_address(shared), patches = filters + STAGES * STEP;
        const int work = p.direct ? product + GROUPS * LEAVING * 4 : max(product, TILE * PART * 4);
        float *leaving = reinterpret_cast<float *>(shared + product);
        barriers *bar = reinterpret_cast<barriers *>(shared + work);
        int *tap_at = reinterpret_cast<int *>(bar + 1);
        const int group = static_cast<int>(threadIdx.x) / 128;
        const unsigned units = static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across * p.tiles_filters) *
                               static_cast<unsigned>(p.splits);
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                barrier_init(&bar->weights_full[i], 1);
                barrier_init(&bar->weights_empty[i], WARPS);
            }
            for (int i = 0; i < p.patches; i++) {
                barrier_init(&bar->patch_full[i], 1);
                barrier_init(&bar->patch_empty[i], WARPS);
            }
            barriers_made();
        }
        make_taps(p, tap_at);
        __syncthreads();
        const block b(p, blockIdx.x);
        if (threadIdx.x == WORKERS) {
            prefetch_share(p.ahead, p.ahead_bytes, blockIdx.x, gridDim.x);
            await_inputs();
            if (p.ahead_bytes == 0) let_next_start();
            bring_patches(p, x, patches, bar, units);
        } else if (threadIdx.x == WORKERS + 32) {
            if (p.fresh) await_inputs();
            bring_weights(p, shared, bar, units);
        } else if (threadIdx.x < WORKERS) {
            position at = {0, 0, 0, 0};
            const uint32_t rows = filters + group / PIXEL_GROUPS * 64 * ROW;
            const uint32_t pixels = patches + group % PIXEL_GROUPS * (p.tile_down == 1 ? PIXELS : 8) * ROW;
            await_inputs();
            int number = 0;
            for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, number++) {
                sums sum = {};
                multiply(p, b, sum, at, rows, pixels, tap_at, bar);
                if (p.direct) {
                    const int4 tile_at = bar->tile[number % TILES];
                    if (p.pools)
                        results::store_pooled(p, tile_at, sum, leaving + group * LEAVING, group);
                    else
                        results::store_results(p, tile_at, sum, leaving + group * LEAVING, group);
                } else { /* the block's only tile */
                    patch_await_reads<THREADS>();
                    results::put_part(sum, reinterpret_cast<float *>(shared), group);
                }
            }
        }
        if (p.direct) return;
        __syncwarp();
        if (threadIdx.x >= WORKERS) patch_await_reads<THREADS>();
        await_cluster(); /* all parts are there; a block that has a sum to itself is a cluster of one */
        await_inputs();  /* the warps that brought factors */
        float *part = reinterpret_cast<float *>(shared);
        if (p.pools)
            results::add_pooled_parts(p, b, part);
        else
            p.quick ? results::template add_parts<true>(p, b, part) : results::template add_parts<false>(p, b, part);
        __syncwarp();
        if (p.splits > 1) await_cluster(); /* others may still read from this block */
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS)
    patch_box_kernel(const __grid_constant__ cuda_patch p, const __grid_constant__ CUtensorMap x)
{
    PRODUCT::run(p, &x);
}

#endif
