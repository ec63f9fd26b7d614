/* SPDX-License-Identifier: MIT */
/* The kernel of engine/conv2d_halo_weights.cuh, and its launch. */
#include "calculators/cuda/engine/conv2d_halo_weights.cuh"

#include <algorithm>
#include <type_traits>

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/groups.h"
#include "calculators/cuda/engine/mainloop.cuh"
#include "calculators/cuda/engine/pack.h"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { TILE = 8, BM = 64, TAPS = 3, GROUPS = 3, CONSUMERS = 128 * GROUPS, THREADS = CONSUMERS + 32, MOST_STAGES = 8 };

struct halo_weights_params {
    CUtensorMap x, dy;             /* maps of the input box with its halo, and of the dy tile */
    int box[2], x_bytes, dy_bytes; /* pixels down and across; size of a box in shared memory */
    int x_row, dy_row;             /* bytes of a pixel's channels, and filters: 32, 64 or 128 */
    int stages;
    int row_tiles, channel_tiles, tap_tiles, tiles_each, tiles;
    int filters, channels, taps, filter_width;
    int dilation[2], lower[2], stride; /* stride: input lines between lines of the tile */
    divider<int32_t> down, across;     /* tiles of an image */
    float *sums;
};

struct halo_weights_barriers {
    uint64_t full[MOST_STAGES], empty[MOST_STAGES];
};

/* What a block computes: filters and channels from `row` and `channel` on, nine taps, over the tiles from `first` to before `end`. */
template <int BN> struct halo_weights_place {
    int row, channel, tap, split, first, end;

    __device__ __forceinline__ explicit halo_weights_place(const halo_weights_params &p)
    {
        int at = static_cast<int>(blockIdx.x);
        tap = at % p.tap_tiles * GROUPS * TAPS;
        at /= p.tap_tiles;
        channel = at % p.channel_tiles * BN;
        at /= p.channel_tiles;
        row = at % p.row_tiles * BM;
        split = at / p.row_tiles;
        first = split * p.tiles_each;
        end = min(first + p.tiles_each, p.tiles);
    }
};

#ifdef SDLF_HAS_WGMMA

/* The producer thread: loads the boxes of all of the block's tiles. */
template <int BN>
static __device__ __forceinline__ void load_all(const halo_weights_params &p, const halo_weights_place<BN> &place,
                                                halo_weights_barriers &bar, uint32_t ring)
{
    const int bytes = p.box[0] * p.box[1] * p.x_row + TILE * TILE * p.dy_row;
    int stage = 0, parity = 1; /* in the first round every stage is empty */
    for (int tile = place.first; tile < place.end; tile++) {
        int i, j;
        const int image = divide(divide(tile, p.across, j), p.down, i);
        const uint32_t full = static_cast<uint32_t>(__cvta_generic_to_shared(&bar.full[stage]));
        const uint32_t to = ring + stage * (p.x_bytes + p.dy_bytes);
        barrier_await(&bar.empty[stage], parity);
        tma_expect(full, bytes);
        tma_load_image(to, &p.x, {place.channel, j * TILE + p.lower[1], i * TILE * p.stride + p.lower[0], image}, full);
        tma_load_image(to + p.x_bytes, &p.dy, {place.row, j * TILE, i * TILE, image}, full);
        if (++stage < p.stages) continue;
        stage = 0;
        parity ^= 1;
    }
}

/* c[i] = the accumulators of the warpgroup's i-th tap. */
template <typename T, int BN>
static __device__ __forceinline__ void multiply(const halo_weights_params &p, const halo_weights_place<BN> &place,
                                                halo_weights_barriers &bar, uint32_t ring, float (&c)[TAPS][BN / 8][4])
{
    const int line = p.box[1] * p.x_row, first = place.tap + static_cast<int>(threadIdx.x) / 128 * TAPS;
    const int next = p.stride * line; /* from a line of the tile to the next */
    const uint64_t of_x = smem_descriptor_of_rows(0, p.x_row, 0, next);
    const uint64_t of_dy = smem_descriptor_of_rows(0, p.dy_row, 0, TILE * p.dy_row);
    uint32_t tap_at[TAPS]; /* in units of 16 bytes, as in a descriptor */
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        const int tap = min(first + i, p.taps - 1), r = tap / p.filter_width, s = tap - r * p.filter_width;
        tap_at[i] = static_cast<uint32_t>(r * p.dilation[0] * line + s * p.dilation[1] * p.x_row) >> 4;
        wgmma_clear(c[i]);
    }
    int stage = 0, parity = 0, before = -1;
    for (int tile = place.first; tile < place.end; tile++) {
        const uint32_t x = (ring + stage * (p.x_bytes + p.dy_bytes)) >> 4, dy = x + (p.x_bytes >> 4);
        barrier_await(&bar.full[stage], parity);
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < TILE; k += 2) {
#pragma unroll
            for (int i = 0; i < TAPS; i++)
                wgmma16<T, BN, 1, 1>::run(c[i], of_dy + dy + k * (TILE * p.dy_row >> 4),
                                          of_x + x + tap_at[i] + k * (next >> 4));
        }
        wgmma_commit();
        wgmma_await<1>();
        if (before >= 0 && threadIdx.x % 32 == 0) barrier_arrive(&bar.empty[before]);
        before = stage;
        if (++stage < p.stages) continue;
        stage = 0;
        parity ^= 1;
    }
    wgmma_await<0>();
}

#endif

/* A lane stores two adjacent channels of a filter and a tap, a warp 8 filters by 8 channels. */
template <typename T, int BN>
static __global__ void __launch_bounds__(THREADS, 1) halo_weights_kernel(const __grid_constant__ halo_weights_params p)
{
#ifdef SDLF_HAS_WGMMA
    extern __shared__ uint8_t unaligned[];
    __shared__ halo_weights_barriers bar;
    if (threadIdx.x == 0) {
        for (int s = 0; s < MOST_STAGES; s++) {
            barrier_init(&bar.full[s], 1);
            barrier_init(&bar.empty[s], CONSUMERS / 32);
        }
        fence_mbarrier_init();
        tma_prefetch(&p.x);
        tma_prefetch(&p.dy);
    }
    __syncthreads();
    wait_and_launch_dependent_grids();
    const halo_weights_place<BN> place(p);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const uint32_t ring = ring_start(unaligned);
    if (warp == CONSUMERS / 32) {
        if (lane == 0) load_all(p, place, bar, ring);
        return;
    }
    float c[TAPS][BN / 8][4];
    multiply<T, BN>(p, place, bar, ring, c);
    const int filter = place.row + warp % 4 * 16 + lane / 4, channel = place.channel + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        const int tap = place.tap + warp / 4 * TAPS + i;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (tap >= p.taps || filter + 8 * h >= p.filters) continue;
            const int64_t row = static_cast<int64_t>(place.split) * p.filters + filter + 8 * h;
            float *to = p.sums + (row * p.taps + tap) * p.channels + channel;
#pragma unroll
            for (int j = 0; j < BN / 8; j++) {
                if (channel + 8 * j >= p.channels) break;
                *reinterpret_cast<float2 *>(to + 8 * j) = make_float2(c[i][j][2 * h], c[i][j][2 * h + 1]);
            }
        }
    }
#endif
}

/* ---- partition, and launch ---- */

static int row_bytes_of(int64_t channels)
{
    return channels <= 16 ? 32 : channels <= 32 ? 64 : 128;
}

static int columns_of(int64_t channels)
{
    return channels <= 32 ? 32 : 64;
}

static bool cut(const cuda_calculator *calculator, const engine_conv2d *conv, halo_weights_params *p)
{
    const int64_t down = cuda_ceil_div(conv->p, TILE), across = cuda_ceil_div(conv->q, TILE);
    const int size[2] = {conv->r, conv->s};
    p->channels = static_cast<int>(engine_packed_channels(conv->c));
    p->filters = static_cast<int>(conv->k);
    p->taps = conv->r * conv->s;
    p->filter_width = conv->s;
    p->stride = conv->stride[0];
    p->x_row = row_bytes_of(p->channels);
    p->dy_row = row_bytes_of(p->filters);
    for (int i = 0; i < 2; i++) {
        p->dilation[i] = conv->dilation[i];
        p->lower[i] = -conv->padding[i];
        p->box[i] = (TILE - 1) * conv->stride[i] + (size[i] - 1) * conv->dilation[i] + 1;
    }
    p->x_bytes = (p->box[0] * p->box[1] * p->x_row + 1023) / 1024 * 1024;
    p->dy_bytes = TILE * TILE * p->dy_row;
    p->down = divider<int32_t>(down);
    p->across = divider<int32_t>(across);
    p->tiles = static_cast<int>(conv->n * down * across);
    const int columns = columns_of(p->channels);
    p->row_tiles = static_cast<int>(cuda_ceil_div(p->filters, BM));
    p->channel_tiles = static_cast<int>(cuda_ceil_div(p->channels, columns));
    p->tap_tiles = static_cast<int>(cuda_ceil_div(p->taps, GROUPS * TAPS));
    const int64_t products = static_cast<int64_t>(p->row_tiles) * p->channel_tiles * p->tap_tiles;
    const int64_t splits = std::max<int64_t>(calculator->multiprocessors / products, 1);
    p->tiles_each = static_cast<int>(cuda_ceil_div(p->tiles, std::min<int64_t>(splits, p->tiles)));
    p->stages = std::min<int>((calculator->shared_most - 2 * 1024) / (p->x_bytes + p->dy_bytes), MOST_STAGES);
    return p->stages >= 2;
}

int64_t engine_halo_weights_splits(const cuda_calculator *calculator, const engine_conv2d *conv)
{
    halo_weights_params p = {};
    if (conv->dtype == SDLF_FLOAT32 || engine_is_grouped(conv) || conv->stride[1] != 1 || conv->r * conv->s < 2 ||
        conv->r > 32 || conv->s > 32)
        return 0;
    const int64_t pixels = conv->n * conv->p * conv->q;
    const bool fits =
        cuda_ceil_div(conv->p, TILE) * cuda_ceil_div(conv->q, TILE) * conv->n <= INT32_MAX / (TILE * TILE);
    if (!fits || !cut(calculator, conv, &p) || p.box[0] > 64 || p.box[1] > 64 ||
        2 * static_cast<int64_t>(p.tiles) * TILE * TILE > 3 * pixels)
        return 0;
    return cuda_ceil_div(p.tiles, p.tiles_each);
}

sdlf_status engine_run_halo_weights(const cuda_calculator *calculator, const engine_conv2d *conv, const void *x,
                                    float *sums)
{
    halo_weights_params p = {};
    cut(calculator, conv, &p);
    p.sums = sums;
    tiled_shape image = {x, 4, {p.channels, conv->w, conv->h, conv->n}, {p.x_row / 2, p.box[1], p.box[0], 1}};
    image.stride[0] = conv->pixel_step;
    image.stride[1] = conv->row_step;
    const tiled_shape dy = {conv->y, 4, {conv->k, conv->q, conv->p, conv->n}, {p.dy_row / 2, TILE, TILE, 1}};
    if (!make_tiled_map(&p.x, conv->dtype, image) || !make_tiled_map(&p.dy, conv->dtype, dy))
        return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d_backward_weights: the driver refuses a tensor map");
    const int shared = p.stages * (p.x_bytes + p.dy_bytes) + 1024;
    const int64_t splits = cuda_ceil_div(p.tiles, p.tiles_each);
    const dim3 blocks(static_cast<unsigned>(splits * p.row_tiles * p.channel_tiles * p.tap_tiles));
    sdlf_status status = SDLF_OK;
    auto run = [&](auto kernel) {
        /* always requested: static shared memory counts towards the 48 KB, too */
        status = allow_shared(kernel, std::max(shared, 48 << 10 | 1));
        if (status == SDLF_OK) launch_overlapped(calculator, kernel, blocks, dim3(THREADS), shared, p);
    };
    auto by_columns = [&](auto zero) {
        using T = decltype(zero);
        if (columns_of(p.channels) == 32)
            run(halo_weights_kernel<T, 32>);
        else
            run(halo_weights_kernel<T, 64>);
    };
    if (conv->dtype == SDLF_BFLOAT16)
        by_columns(__nv_bfloat16());
    else
        by_columns(__half());
    return status == SDLF_OK ? cuda_check_launch("conv2d_backward_weights") : status;
}
