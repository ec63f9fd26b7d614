/* SPDX-License-Identifier: MIT */
/* fprop and dgrad with windows of several pixels and a horizontal stride of 1: implicit GEMM over tiles of 8 x 8 output pixels. Operand A is the
 * input under the tile, with its halo, in shared memory, loaded once for all taps of the filter. For wgmma, a tap is an offset of the first row: the
 * tile's 8 lines are 8 rows each, one line of the box apart.
 *
 * A block computes every slots-th pair of tiles, one tile per warpgroup, by BN output channels. A producer thread loads the boxes of both tiles and
 * the weights of each tap, some channels at a time, into rings of stages. If all weights of the block's columns fit in shared memory they stay
 * resident. The image is read about 1.6 times from the L2 cache, instead of once for each tap. Compute capability 9.0a. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_HALO_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_HALO_CUH

#include "calculators/cuda/engine/image_epilogue.cuh"
#include "calculators/cuda/engine/pool_epilogue.cuh"

enum { HALO_TILE = 8, HALO_PAIR = 2 };

struct halo_params {
    image_params image;            /* of[0]: the only class; its map is tiled; row_tiles: pairs of tiles */
    int box[2], box_bytes;         /* of a tile: pixels down and across; size in shared memory */
    int row_bytes;                 /* of a pixel's channels per load: 32, 64 or 128 */
    int weight_bytes;              /* of a tap, and as many channels */
    int box_stages, weight_stages; /* pairs of boxes; taps: all of them, or some */
    bool resident;                 /* all taps stay in shared memory */
    int tiles;
    divider<int32_t> down, across; /* tiles of an image */
};

enum { HALO_STAGES = 8, HALO_CONSUMERS = 256, HALO_THREADS = HALO_CONSUMERS + 32 };

/* The layout of weights in shared memory: if columns are innermost, 64 columns at a time. */
template <typename T, int BN, bool COLUMNS_INNER> struct filter_layout {
    static constexpr int ACROSS = BN < 64 ? BN : 64, ROW = ACROSS * static_cast<int>(sizeof(T));
};

struct halo_barriers {
    uint64_t box_full[HALO_STAGES], box_empty[HALO_STAGES], weights_full[HALO_STAGES], weights_empty[HALO_STAGES];
};

/* A position in a ring of stages. */
struct ring_place {
    int stage, parity;

    __device__ __forceinline__ void advance(int stages)
    {
        if (++stage < stages) return;
        stage = 0;
        parity ^= 1;
    }
};

/* The position of a tile: its image and its first pixel. */
struct tile_place {
    int image, row, column;

    __device__ __forceinline__ tile_place(const halo_params &p, int tile)
    {
        int i, j;
        image = divide(divide(tile, p.across, j), p.down, i);
        row = i * HALO_TILE;
        column = j * HALO_TILE;
    }
    /* The number of valid pixels in the tile. */
    __device__ __forceinline__ int count(const image_params &p) const
    {
        return min(HALO_TILE, p.height - row) * min(HALO_TILE, p.width - column);
    }
};

/* The rows of a warpgroup as the pixels of a tile. */
struct tile_pixels {
    const image_params &p;
    tile_place at;
    bool is_there;

    __device__ __forceinline__ bool locate(int row, int64_t &pixel) const
    {
        const int y = at.row + row % 64 / HALO_TILE, x = at.column + row % HALO_TILE;
        pixel = (static_cast<int64_t>(at.image) * p.height + y) * p.width + x;
        return is_there && y < p.height && x < p.width;
    }
    /* The same of the 2 x 2 pooling window that the row's pixel belongs to. */
    __device__ __forceinline__ bool locate_window(int row, int64_t &window) const
    {
        const int y = (at.row + row % 64 / HALO_TILE) / 2, x = (at.column + row % HALO_TILE) / 2;
        window = (static_cast<int64_t>(at.image) * p.height + y) * p.width + x;
        return is_there && y < p.height && x < p.width;
    }
};

#ifdef SDLF_HAS_WGMMA

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* Issue the loads of a tap's weights for some channels. */
template <typename T, int BN, bool COLUMNS_INNER>
static __device__ __forceinline__ void load_weights(const halo_params &p, int filter, int channel, int column,
                                                    uint32_t to, uint32_t barrier)
{
    using layout = filter_layout<T, BN, COLUMNS_INNER>;
    if constexpr (COLUMNS_INNER) {
        const int rows = p.row_bytes / static_cast<int>(sizeof(T));
#pragma unroll
        for (int c = 0; c < BN; c += layout::ACROSS, to += rows * layout::ROW)
            tma_load_3d(to, &p.image.weights, barrier, column + c, filter, channel);
    } else {
        tma_load_3d(to, &p.image.weights, barrier, channel, filter, column);
    }
}

/* The producer thread: issues all loads of the block. */
template <typename T, int BN, bool COLUMNS_INNER>
static __device__ __forceinline__ void load_all(const halo_params &p, halo_barriers &bar, uint32_t boxes,
                                                uint32_t weights, int slot, int column)
{
    const dgrad_phase &of = p.image.of[0];
    const int channels = p.row_bytes / static_cast<int>(sizeof(T)), box_load = p.box[0] * p.box[1] * p.row_bytes;
    ring_place box = {0, 1}, tap = {0, 1}; /* in the first round every stage is empty */
    auto load_taps = [&](int chunk) {
        for (int i = 0; i < of.taps[0]; i++) {
            for (int j = 0; j < of.taps[1]; j++) {
                const int filter = (of.first[0] + of.step[0] * i) * p.image.filter_width + of.first[1] + of.step[1] * j;
                uint32_t barrier = shared_address(&bar.weights_full[0]);
                if (!p.resident) {
                    barrier = shared_address(&bar.weights_full[tap.stage]);
                    barrier_await(&bar.weights_empty[tap.stage], tap.parity);
                    tma_expect(barrier, p.weight_bytes);
                }
                load_weights<T, BN, COLUMNS_INNER>(p, filter, chunk * channels, column * BN,
                                                   weights + tap.stage * p.weight_bytes, barrier);
                tap.advance(p.weight_stages);
            }
        }
    };
    if (p.resident) { /* before any box: consumers wait for all weights before they release a box stage */
        tma_expect(shared_address(&bar.weights_full[0]), of.taps[0] * of.taps[1] * p.image.chunks * p.weight_bytes);
        for (int chunk = 0; chunk < p.image.chunks; chunk++) load_taps(chunk);
    }
    for (int pair = slot; pair < p.image.row_tiles; pair += p.image.slots) {
        const int tiles = min(HALO_PAIR, p.tiles - pair * HALO_PAIR);
        for (int chunk = 0; chunk < p.image.chunks; chunk++) {
            const uint32_t full = shared_address(&bar.box_full[box.stage]);
            barrier_await(&bar.box_empty[box.stage], box.parity);
            tma_expect(full, tiles * box_load);
            for (int i = 0; i < tiles; i++) {
                const tile_place at(p, pair * HALO_PAIR + i);
                const image_place from = {chunk * channels, at.column + of.lower[1],
                                          at.row * of.stride[0] + of.lower[0], at.image};
                tma_load_image(boxes + (box.stage * HALO_PAIR + i) * p.box_bytes, &of.read, from, full);
            }
            box.advance(p.box_stages);
            if (!p.resident) load_taps(chunk);
        }
    }
}

/* c = the GEMM of a tile, from its boxes at `boxes` and all weights: chunk by chunk of channels, tap by tap. */
template <typename T, int BN, bool COLUMNS_INNER, int ROW>
static __device__ __forceinline__ void multiply_rows(const halo_params &p, halo_barriers &bar, uint32_t boxes,
                                                     uint32_t weights, ring_place &box, ring_place &tap,
                                                     float (&c)[BN / 8][4])
{
    using layout = filter_layout<T, BN, COLUMNS_INNER>;
    const dgrad_phase &of = p.image.of[0];
    constexpr int ROWS = ROW / static_cast<int>(sizeof(T));      /* per chunk of weights whose columns are innermost */
    const int line = p.box[1] * ROW, next = of.stride[0] * line; /* between lines of the box, and of the tile */
    const bool releases = threadIdx.x % 32 == 0;
    wgmma_clear(c);
    for (int chunk = 0; chunk < p.image.chunks; chunk++) {
        barrier_await(&bar.box_full[box.stage], box.parity);
        int before = -1;
        for (int i = 0; i < of.taps[0]; i++) {
            uint32_t first = boxes + box.stage * HALO_PAIR * p.box_bytes + i * of.tap_offset[0] * line;
            for (int j = 0; j < of.taps[1]; j++, first += of.tap_offset[1] * ROW) {
                if (!p.resident) barrier_await(&bar.weights_full[tap.stage], tap.parity);
                const uint32_t at = weights + tap.stage * p.weight_bytes;
                wgmma_begin();
#pragma unroll
                for (int k = 0; k < ROW; k += 32) {
                    const uint64_t a = smem_descriptor_of_rows(first + k, ROW, 16, next);
                    const uint64_t b = COLUMNS_INNER
                                           ? smem_descriptor<layout::ROW>(at + k / 2 * layout::ROW, ROWS * layout::ROW)
                                           : smem_descriptor<ROW>(at + k, 16);
                    wgmma16<T, BN, 0, COLUMNS_INNER>::run(c, a, b);
                }
                wgmma_commit();
                wgmma_await<1>();
                if (before >= 0 && releases && !p.resident) barrier_arrive(&bar.weights_empty[before]);
                before = tap.stage;
                tap.advance(p.weight_stages);
            }
        }
        wgmma_await<0>();
        if (releases) {
            if (!p.resident) barrier_arrive(&bar.weights_empty[before]);
            barrier_arrive(&bar.box_empty[box.stage]);
        }
        box.advance(p.box_stages);
    }
}

template <typename T, int BN, bool COLUMNS_INNER>
static __device__ __forceinline__ void multiply(const halo_params &p, halo_barriers &bar, uint32_t boxes,
                                                uint32_t weights, ring_place &box, ring_place &tap,
                                                float (&c)[BN / 8][4])
{
    if (p.row_bytes == 128)
        multiply_rows<T, BN, COLUMNS_INNER, 128>(p, bar, boxes, weights, box, tap, c);
    else if (p.row_bytes == 64)
        multiply_rows<T, BN, COLUMNS_INNER, 64>(p, bar, boxes, weights, box, tap, c);
    else
        multiply_rows<T, BN, COLUMNS_INNER, 32>(p, bar, boxes, weights, box, tap, c);
}

#endif

template <typename T, int BN, bool COLUMNS_INNER, image_mode MODE>
static __global__ void __launch_bounds__(HALO_THREADS, 2) halo_kernel(const __grid_constant__ halo_params p)
{
#ifdef SDLF_HAS_WGMMA
    extern __shared__ uint8_t unaligned[];
    __shared__ halo_barriers bar;
    __shared__ channel_numbers<BN> numbers;
    if (threadIdx.x == 0) {
        for (int s = 0; s < HALO_STAGES; s++) {
            barrier_init(&bar.box_full[s], 1);
            barrier_init(&bar.box_empty[s], HALO_CONSUMERS / 32);
            barrier_init(&bar.weights_full[s], 1);
            barrier_init(&bar.weights_empty[s], HALO_CONSUMERS / 32);
        }
        fence_mbarrier_init();
        tma_prefetch(&p.image.of[0].read);
        tma_prefetch(&p.image.weights);
    }
    __syncthreads();
    wait_and_launch_dependent_grids();
    const int warp = static_cast<int>(threadIdx.x) / 32, group = warp / 4;
    const int slot = static_cast<int>(blockIdx.x) / p.image.column_tiles;
    const int column = static_cast<int>(blockIdx.x) - slot * p.image.column_tiles;
    const uint32_t boxes = ring_start(unaligned), weights = boxes + p.box_stages * HALO_PAIR * p.box_bytes;
    if (warp == HALO_CONSUMERS / 32) {
        if (threadIdx.x % 32 == 0) load_all<T, BN, COLUMNS_INNER>(p, bar, boxes, weights, slot, column);
        return;
    }
    image_epilogue<T, BN, MODE> epilogue(p.image, numbers, column, 0);
    if (p.resident) barrier_await(&bar.weights_full[0], 0);
    ring_place box = {0, 0}, tap = {0, 0};
    float c[BN / 8][4];
    for (int pair = slot; pair < p.image.row_tiles; pair += p.image.slots) {
        multiply<T, BN, COLUMNS_INNER>(p, bar, boxes + group * p.box_bytes, weights, box, tap, c);
        const int tile = pair * HALO_PAIR;
        const tile_pixels pixels = {p.image, tile_place(p, tile + group), tile + group < p.tiles};
        if constexpr (MODE == POOL_VALUES) {
            store_maxima<T, BN>(p.image, pixels, numbers.bias, {epilogue.column, epilogue.end}, c);
        } else {
            int count = 0;
            for (int i = 0; i < HALO_PAIR; i++)
                count += tile + i < p.tiles ? tile_place(p, tile + i).count(p.image) : 0;
            epilogue.finish(p.image, pixels, count, c, nullptr);
        }
    }
    epilogue.leave(p.image, slot);
#endif
}

#endif
