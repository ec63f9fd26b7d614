/* SPDX-License-Identifier: MIT */
/* Winograd convolution with tiles of 2x2 outputs, in one kernel: neither patches nor products are ever in memory.
 *
 * A block computes 64 filters x 32 tiles, in k-steps of 8 channels. For a k-step it copies 16 x 8 x 64 transformed filter elements by
 * cp.async (u is in this order); each thread loads one patch, of one channel (its warp) and one tile (its lane), transforms it in registers
 * and writes 16 elements to shared memory. Both are for the next k-step, while this one is multiplied. Patches overlap: a lane loads two of
 * its four columns, and gets the others from its neighbours by shuffles. Each warp multiplies two of the 16 points: (64, 8) by (8, 32), 8 x 8
 * accumulators a thread and point, 16 elements read for 64 multiply-adds. At the end the points of a tile, which are in 8 warps, are brought
 * together in shared memory, 16 filters at a time. 2.25 times fewer multiplications than the direct formula.
 *
 * Loads x once for every 64 filters (mostly from the L2 cache), u once for every 32 tiles; stores y once. With fewer blocks than multiprocessors
 * the channels are split: each block writes its outputs to the scratch memory, and the last to arrive adds them in order. */
#include "calculators/cuda/conv2d/winograd.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum {
    THREADS = 256,
    FILTERS = WINOGRAD_FILTERS,
    TILES = WINOGRAD_TILES,
    CHANNELS = WINOGRAD_CHANNELS,
    POINTS = WINOGRAD_POINTS,
    U = POINTS * CHANNELS * FILTERS, /* elements of a k-step */
    V = POINTS * CHANNELS * TILES,
    ROUND = 16,                      /* filters whose points are brought together at a time */
    ROW = 40,                        /* elements between two of these filters: stores have no bank conflicts */
    ITEMS = ROUND * TILES / THREADS, /* tiles of a thread in a round */
};

static __device__ __forceinline__ void load_filters(float *to, const float *from)
{
#pragma unroll
    for (int i = 0; i < U / 4 / THREADS; i++) {
        int at = (i * THREADS + static_cast<int>(threadIdx.x)) * 4;
        copy_async(to + at, from + at, true);
    }
}

/* Whether a lane loads the outer columns of its patch itself, because no neighbour has them; it always loads the middle two. */
struct lone_sides {
    bool left, right;
};

/* Bit 4 i + j of `inside` is for pixel (i, j). PAIRS: the middle two are aligned to 8 bytes, and either both inside or both outside. */
template <bool PAIRS>
static __device__ __forceinline__ void read_columns(float *d, const float *from, int width, unsigned inside,
                                                    const lone_sides &lone)
{
#pragma unroll
    for (int i = 0; i < 4; i++, d += 4, from += width, inside >>= 4) {
        d[0] = lone.left && (inside & 1) ? __ldg(from) : 0.0f;
        d[3] = lone.right && (inside & 8) ? __ldg(from + 3) : 0.0f;
        if (PAIRS) {
            float2 middle = inside & 2 ? __ldg(reinterpret_cast<const float2 *>(from + 1)) : make_float2(0.0f, 0.0f);
            d[1] = middle.x;
            d[2] = middle.y;
        } else {
            d[1] = inside & 2 ? __ldg(from + 1) : 0.0f;
            d[2] = inside & 4 ? __ldg(from + 2) : 0.0f;
        }
    }
}

/* Complete, transform and write the thread's patch, of channel `warp` of a k-step and tile `lane`. */
static __device__ __forceinline__ void leave_patch(float *to, float *d, const lone_sides &lone)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float left = __shfl_up_sync(0xffffffffu, d[4 * i + 2], 1),
              right = __shfl_down_sync(0xffffffffu, d[4 * i + 1], 1);
        d[4 * i] = lone.left ? d[4 * i] : left;
        d[4 * i + 3] = lone.right ? d[4 * i + 3] : right;
    }
    winograd_patch<2>(d);
#pragma unroll
    for (int point = 0; point < POINTS; point++) to[point * CHANNELS * TILES + threadIdx.x] = d[point];
}

/* Thread (down, across) of a warp's 8 x 4 has filters 4 down + (0..3) and those 32 further on, tiles 4 across + (0..3) and those 16 further on. */
static __device__ __forceinline__ void multiply(float (*sum)[8][8], const float *u, const float *v)
{
    const int warp = threadIdx.x / 32, down = threadIdx.x % 32 / 4, across = threadIdx.x % 4;
    u += warp * 2 * CHANNELS * FILTERS + down * 4;
    v += warp * 2 * CHANNELS * TILES + across * 4;
#pragma unroll
    for (int point = 0; point < 2; point++) {
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            float a[8], b[8];
            *reinterpret_cast<float4 *>(a) = *reinterpret_cast<const float4 *>(u + (point * CHANNELS + c) * FILTERS);
            *reinterpret_cast<float4 *>(a + 4) =
                *reinterpret_cast<const float4 *>(u + (point * CHANNELS + c) * FILTERS + 32);
            *reinterpret_cast<float4 *>(b) = *reinterpret_cast<const float4 *>(v + (point * CHANNELS + c) * TILES);
            *reinterpret_cast<float4 *>(b + 4) =
                *reinterpret_cast<const float4 *>(v + (point * CHANNELS + c) * TILES + 16);
#pragma unroll
            for (int i = 0; i < 8; i++) {
#pragma unroll
                for (int j = 0; j < 8; j++) sum[point][i][j] += a[i] * b[j];
            }
        }
    }
}

/* Write the sums of each thread's filters 2 round and 2 round + 1 to shared memory: rows 2 down and 2 down + 1 of the round. */
static __device__ __forceinline__ void meet(float *points, const float (*sum)[8][8], int round)
{
    const int warp = threadIdx.x / 32, down = threadIdx.x % 32 / 4, across = threadIdx.x % 4;
#pragma unroll
    for (int point = 0; point < 2; point++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float *to = points + ((warp * 2 + point) * ROUND + down * 2 + i) * ROW + across * 4;
            const float *s = sum[point][round * 2 + i];
            *reinterpret_cast<float4 *>(to) = make_float4(s[0], s[1], s[2], s[3]);
            *reinterpret_cast<float4 *>(to + 16) = make_float4(s[4], s[5], s[6], s[7]);
        }
    }
}

/* The filter within the block that row `row` of a round belongs to. */
static __device__ __forceinline__ int filter_of(int round, int row)
{
    int i = round * 2 + row % 2;
    return i / 4 * 32 + row / 2 * 4 + i % 4;
}

template <bool PAIRS>
static __global__ void __launch_bounds__(THREADS, 1) winograd_fused(const __grid_constant__ cuda_winograd p)
{
    extern __shared__ __align__(16) float shared[]; /* filters of two k-steps, patches of two k-steps */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned block = blockIdx.x;
    const int filter_block = block % p.filter_blocks;
    block /= p.filter_blocks;
    const int tile_block = block % p.tile_blocks, split = block / p.tile_blocks;
    const int steps = (p.channels + CHANNELS - 1) / CHANNELS, share = steps / p.splits, rest = steps % p.splits;
    const int first = share * split + min(split, rest), last = first + share + (split < rest);

    const int tile = tile_block * TILES + lane;
    const winograd_tile at(p, tile < p.tiles ? tile : 0, 2);
    const int top = at.row - p.padding[0], left = at.column - p.padding[1];
    const unsigned inside = tile < p.tiles ? static_cast<unsigned>(winograd_inside<2>(p, top, left)) : 0;
    const lone_sides lone = {lane == 0 || at.column == 0, lane == 31 || at.column + 2 >= p.out_width};
    const int64_t plane = static_cast<int64_t>(p.height) * p.width;
    const float *from = kept(p.x + (static_cast<int64_t>(at.image) * p.channels + first * CHANNELS + warp) * plane +
                             top * p.width + left);
    const float *u = p.u + (static_cast<int64_t>(filter_block) * steps + first) * U;

    float sum[2][8][8] = {};
    float d[POINTS];
    static_assert(U == THREADS * 128 / static_cast<int>(sizeof(float)), "a line a thread");
    prefetch_line(u + threadIdx.x * (128 / sizeof(float)));
    wait_and_launch_dependent_grids();
    load_filters(shared, u);
    cp_async_commit();
    read_columns<PAIRS>(d, from, p.width, first * CHANNELS + warp < p.channels ? inside : 0, lone);
    leave_patch(shared + 2 * U, d, lone);
    cp_async_wait<0>();
    __syncthreads();
#pragma unroll 1
    for (int step = first; step < last; step++) {
        const int now = (step - first) % 2, next = 1 - now;
        const bool more = step + 1 < last;
        if (more) {
            u += U;
            from += CHANNELS * plane;
            load_filters(shared + next * U, u);
            read_columns<PAIRS>(d, from, p.width, (step + 1) * CHANNELS + warp < p.channels ? inside : 0, lone);
        }
        cp_async_commit();
        multiply(sum, shared + now * U, shared + 2 * U + now * V);
        if (more) leave_patch(shared + 2 * U + next * V, d, lone);
        cp_async_wait<0>();
        __syncthreads();
    }

    float *parts = p.scratch +
                   (static_cast<int64_t>(tile_block) * p.filter_blocks + filter_block) * p.splits * FILTERS * TILES * 4;
#pragma unroll
    for (int round = 0; round < FILTERS / ROUND; round++) {
        meet(shared, sum, round);
        __syncthreads();
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            int row = warp * ITEMS + item;
            float points[POINTS], y[4];
#pragma unroll
            for (int point = 0; point < POINTS; point++) points[point] = shared[(point * ROUND + row) * ROW + lane];
            winograd_output<2>(y, points);
            int filter = filter_block * FILTERS + filter_of(round, row);
            if (p.splits > 1) {
                float4 *part = reinterpret_cast<float4 *>(parts) + split * FILTERS * TILES;
                part[(round * ROUND + row) * TILES + lane] = make_float4(y[0], y[1], y[2], y[3]);
            } else if (tile < p.tiles && filter < p.filters) {
                winograd_write<2>(p, at, filter, y);
            }
        }
        __syncthreads();
    }
    if (p.splits == 1) return;
    if (!is_last_block(p.tickets + tile_block * p.filter_blocks + filter_block, p.splits)) return;
    float4 total[FILTERS / (THREADS / 32)] = {}; /* the warp's filters; all loads of a part are in flight at once */
    const float4 *part = reinterpret_cast<const float4 *>(parts) + threadIdx.x;
#pragma unroll 2
    for (int i = 0; i < p.splits; i++, part += FILTERS * TILES) {
#pragma unroll
        for (int own = 0; own < FILTERS / (THREADS / 32); own++) {
            float4 more = __ldcg(part + own * THREADS);
            total[own].x += more.x;
            total[own].y += more.y;
            total[own].z += more.z;
            total[own].w += more.w;
        }
    }
#pragma unroll
    for (int own = 0; own < FILTERS / (THREADS / 32); own++) {
        int index = own * (THREADS / 32) + warp,
            filter = filter_block * FILTERS + filter_of(index / ROUND, index % ROUND);
        float y[4] = {total[own].x, total[own].y, total[own].z, total[own].w};
        if (tile < p.tiles && filter < p.filters) winograd_write<2>(p, at, filter, y);
    }
}

extern "C" int64_t cuda_winograd_shared(void)
{
    return static_cast<int64_t>(2 * (U + V) * sizeof(float));
}

extern "C" sdlf_status cuda_winograd_fused(sdlf_calculator *calculator, const cuda_winograd *problem)
{
    unsigned blocks = static_cast<unsigned>(problem->filter_blocks * problem->tile_blocks * problem->splits);
    bool pairs =
        problem->width % 2 == 0 && problem->padding[1] % 2 == 1 && (reinterpret_cast<uintptr_t>(problem->x) & 7) == 0;
    auto kernel = pairs ? winograd_fused<true> : winograd_fused<false>;
    sdlf_status status = allow_shared(kernel, cuda_winograd_shared());
    if (status != SDLF_OK) return status;
    launch_overlapped(cuda_calculator_from(calculator), kernel, dim3(blocks), dim3(THREADS),
                      static_cast<int>(cuda_winograd_shared()), *problem);
    return cuda_check_launch("conv2d, Winograd 2x2");
}
