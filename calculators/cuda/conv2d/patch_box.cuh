/* Convolution over a patch in tf32, with products of warpgroups whose two factors lie in shared memory, and patches that the bulk copy engine
 * brings there as boxes of x (boxes.cuh): for compute capability 9.0a.
 *
 * The product is turned: its rows are filters, 64 of each group, its columns are pixels. A tile is PIXEL_GROUPS times 8 pixels across and
 * PIXELS / 8 lines high, or, of convolutions that are products already, one row. 8 neighbouring pixels of a line are 8 rows of 128
 * bytes that follow each other in the patch, the 8 of the next line come a line of the patch later: what a descriptor can say. A tap
 * is the same with another first row. Of strided windows, the patch holds the places of each remainder together, each a box of its own.
 *
 * One thread has patches copied, another weights, as far ahead as there is room. All other warps multiply. A block makes one tile after
 * the other, and while its results leave through a small part of shared memory, the next tile's factors arrive. Where blocks of a cluster share
 * a sum, and where activations are slow to make, results take the place of the factors, and the block has one tile.
 *
 * The copy engine rounds pixels to tf32 on their way; weights were rounded when they were made ready. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_CUH

#include "calculators/cuda/boxes.cuh"
#include "calculators/cuda/conv2d/patch.cuh"
#include "calculators/cuda/wgmma_both.cuh"

/* c (64,PIXELS) += a b for one product of a step; a as wgmma_factor has it, b as wgmma_rows. */
template <int PIXELS>
static __device__ __forceinline__ void patch_multiply_box(float (&c)[PIXELS / 8][4], uint64_t a, uint64_t b)
{
    if constexpr (PIXELS == 256)
        wgmma_tf32_both_256(c, a, b);
    else if constexpr (PIXELS == 224)
        wgmma_tf32_both_224(c, a, b);
    else if constexpr (PIXELS == 128)
        wgmma_tf32_both_128(c, a, b);
    else
        wgmma_tf32_both_112(c, a, b);
}

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int STAGES, int LINES> struct patch_box_product {
    static constexpr int GROUPS = FILTER_GROUPS * PIXEL_GROUPS, WORKERS = 128 * GROUPS, WARPS = WORKERS / 32;
    static constexpr int THREADS = WORKERS + 64; /* one warp for patches, one for weights */
    static constexpr int FILTERS = 64 * FILTER_GROUPS, TILE = PIXELS * PIXEL_GROUPS;
    static constexpr int ROW = PATCH_CHANNELS * 4, STEP = FILTERS * ROW, PART = FILTERS + 4;
    static constexpr int SOME = 8 * LINES,
                         LEFT = 68; /* pixels of a group that leave together; a row of 64 filters, in floats */
    static constexpr int LEAVING = 2 * SOME * LEFT; /* floats of a group that leave, in two turns */

    static constexpr int TILES = 8; /* more than may be under way, which are STAGES and one */
    static_assert(STAGES + 1 < TILES, "a tile's place is written anew only when all are done with it");

    typedef float sums[PIXELS / 8][4];

    struct barriers {
        uint64_t weights_full[STAGES], weights_empty[STAGES], patch_full[PATCH_SLOTS], patch_empty[PATCH_SLOTS];
        int4 tile
            [TILES]; /* of the block's tiles in turn: image, row, column, filter; there with the first step's weights */
    };

    static __device__ __forceinline__ uint32_t place_of(uint64_t *barrier)
    {
        return static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
    }

    /* ---- tiles ---- */

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
                box_expect(full, bytes);
                for (int i = 0; i < boxes; i++) {
                    int down = row ? 0 : i / p.pixel_step[1], right = row ? i * PIXELS : i % p.pixel_step[1];
                    box_load(to + i * rows * ROW, x, {chunk * PATCH_CHANNELS, w + right, h + down, b.image}, full);
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
        const int group_bytes = p.tile_down == 1 ? 8 * ROW : p.patch_across * ROW;
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

    /* ---- results ---- */

    /* Wait for the other threads of a group. */
    static __device__ __forceinline__ void await_group(int group)
    {
        asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    }

    /* Quick activations by two bounds; NaN stays NaN. */
    static __device__ __forceinline__ float between(float x, float low, float high)
    {
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
        asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
        return x;
    }

    /* Results of a group, through `leaving`, two turns of its own: written as the products left them, read four filters of a pixel a
     * thread. */
    static __device__ __forceinline__ void store_results(const cuda_patch &p, const int4 &tile_at, const sums &sum,
                                                         float *leaving, int group)
    {
        const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
        const bool row = p.tile_down == 1;
        const int left = tile_at.z + group % PIXEL_GROUPS * (row ? PIXELS : 8), pixel = thread / 16;
        const int filter = tile_at.w + group / PIXEL_GROUPS * 64 + thread % 16 * 4;
        const int64_t line_step =
            static_cast<int64_t>(row ? 8 : p.out_width) * p.filters; /* between a thread's results */
        int64_t at = (static_cast<int64_t>(tile_at.x) * p.out_height + tile_at.y) * p.out_width + left + pixel;
        int lines =
            row ? (p.out_width - left - pixel + 7) / 8 : p.out_height - tile_at.y; /* of this thread that exist */
        if (filter >= p.filters || left + pixel >= p.out_width) lines = 0;
        float4 bias = {0, 0, 0, 0};
        if (p.bias != nullptr && filter < p.filters) bias = __ldg(reinterpret_cast<const float4 *>(p.bias + filter));
        const bool bounded = p.activation.function == SDLF_CLIP;
        const float low = bounded                              ? static_cast<float>(p.activation.low)
                          : p.activation.function == SDLF_RELU ? 0.0f
                                                               : -INFINITY;
        const float high = bounded ? static_cast<float>(p.activation.high) : INFINITY;
        at = at * p.filters + filter;
        float *to = leaving + lane % 4 * 2 * LEFT + warp * 16 + lane / 4;
        const float *from = leaving + pixel * LEFT + thread % 16 * 4;
        auto leave = [&](int some) {
#pragma unroll
            for (int line = 0; line < LINES; line++) {
                const float(&c)[4] = sum[some * LINES + line];
#pragma unroll
                for (int v = 0; v < 4; v++) to[some % 2 * SOME * LEFT + (line * 8 + v % 2) * LEFT + v / 2 * 8] = c[v];
            }
        };
        leave(0);
#pragma unroll
        for (int some = 0; some < PIXELS / SOME; some++) {
            const int turn = some % 2 * SOME * LEFT;
            await_group(group); /* who is past it has read the other turn */
            float4 four[LINES];
#pragma unroll
            for (int line = 0; line < LINES; line++)
                four[line] = *reinterpret_cast<const float4 *>(from + turn + line * 8 * LEFT);
            if (some + 1 < PIXELS / SOME) leave(some + 1);
#pragma unroll
            for (int line = 0; line < LINES; line++) {
                float4 v = {four[line].x + bias.x, four[line].y + bias.y, four[line].z + bias.z, four[line].w + bias.w};
                if (some * LINES + line >= lines) continue;
                if (p.residual != nullptr) {
                    float4 more = *reinterpret_cast<const float4 *>(p.residual + at);
                    v = make_float4(v.x + more.x, v.y + more.y, v.z + more.z, v.w + more.w);
                }
                *reinterpret_cast<float4 *>(p.y + at) = make_float4(between(v.x, low, high), between(v.y, low, high),
                                                                    between(v.z, low, high), between(v.w, low, high));
                at += line_step;
            }
        }
        await_group(group); /* before the next tile's results */
    }

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
        if (p.tile_down > 1) {
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
        let_next_start();
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
            await_inputs();
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
                    store_results(p, bar->tile[number % TILES], sum, leaving + group * LEAVING, group);
                } else {                                                        /* the block's only tile */
                    asm volatile("bar.sync 15, %0;" ::"n"(WORKERS) : "memory"); /* the last step's reads */
                    put_part(sum, reinterpret_cast<float *>(shared), group);
                }
            }
        }
        if (p.direct) return;
        __syncwarp();
        if (p.splits > 1)
            patch_cluster_wait();
        else
            __syncthreads();
        await_inputs(); /* the warps that brought factors */
        float *part = reinterpret_cast<float *>(shared);
        p.quick ? add_parts<true>(p, b, part) : add_parts<false>(p, b, part);
        if (p.splits > 1) patch_cluster_wait(); /* others may still read from this block */
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS)
    patch_box_kernel(const __grid_constant__ cuda_patch p, const __grid_constant__ CUtensorMap x)
{
    PRODUCT::run(p, &x);
}

#endif
