/* SPDX-License-Identifier: MIT */
/* gemm for 17 to 128 rows in fp32, on compute capability 9.0 (see gemm/skinny_m.cu): bound by multiplications, so a thread has 8 x 16
 * accumulators, and for four k reads 24 vectors from shared memory for 512 FMAs.
 *
 * A warp has 64 rows, all 64 columns of the block, and a slice of each tile's depth: an eighth of it, four k, or a quarter if a block
 * has 128 rows. Eight lanes share the rows, four the columns; a lane's rows are 8 apart, its columns 4. One thread issues TMA loads of
 * the tiles of a and b, with 16-byte chunks of a row swizzled to chunk ^ row % 8: lanes that read at the same time read different
 * banks. Warps wait on mbarriers for a tile to be full, the loading thread for a stage to be empty; every lane arrives on the latter.
 * At the end the slices' sums are added in shared memory, in order. */
#include "calculators/cuda/gemm/skinny_m.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mbarrier.cuh"
#include "calculators/cuda/tma.cuh"

enum { LINE = SLICES_DEPTH * sizeof(float) /* bytes */, CHUNKS = SLICES_DEPTH / 4 };
enum { WARP = 32, WARPS = THREADS / WARP, SLACK = 2 /* tiles by which one warp may lag another */ };
enum { AHEAD = SLICES_STAGES - 1 - SLACK, PITCH = COLUMNS + 4 /* padded against bank conflicts */ };

template <int ROWS> struct shape {
    static const int bands = ROWS / 64, slices = WARPS / bands, quads = CHUNKS / slices; /* groups of four k */
    static const int mine = 8, across = 16;
};

template <int ROWS> struct shared_memory {
    union {
        float tiles[SLICES_STAGES][ROWS + COLUMNS][SLICES_DEPTH]; /* a, then b */
        float sums[shape<ROWS>::slices][ROWS][PITCH];             /* at the end */
    };
    uint64_t full[SLICES_STAGES],
        empty
            [SLICES_STAGES]; /* full: completed by the loaded bytes; empty: every thread arrives when it has used the tile */
};

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ float4 vector_at(uint32_t address)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}

/* Multiply four k of chunk `chunk`: `a` and `b` are the thread's first rows in the tile. */
template <class S>
static __device__ __forceinline__ void multiply(float (&sums)[S::mine][S::across], uint32_t a, uint32_t b, int chunk,
                                                int row, int column)
{
    const uint32_t from_a = a + 16 * (chunk ^ row), even = b + 16 * (chunk ^ column),
                   odd = b + 16 * (chunk ^ column ^ 4);
    float4 operand[S::across];
#pragma unroll
    for (int j = 0; j < S::across; j++) operand[j] = vector_at((j % 2 == 0 ? even : odd) + 4 * j * LINE);
#pragma unroll
    for (int r = 0; r < S::mine; r++) {
        const float4 v = vector_at(from_a + 8 * r * LINE);
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.x * operand[j].x;
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.y * operand[j].y;
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.z * operand[j].z;
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.w * operand[j].w;
    }
}

/* Add the slices' sums, and write the block's partial result. A thread's columns are `column` and every fourth after it. */
template <int ROWS>
static __device__ __forceinline__ void gather_sums(const float (&sums)[8][16], shared_memory<ROWS> &memory,
                                                   const product &p, int n0)
{
    using S = shape<ROWS>;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int row = lane / 4, column = lane % 4, band = warp % S::bands, slice = warp / S::bands;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < S::mine; r++) {
#pragma unroll
        for (int j = 0; j < S::across; j++) memory.sums[slice][64 * band + row + 8 * r][column + 4 * j] = sums[r][j];
    }
    __syncthreads();
#pragma unroll 1 /* code that runs once is not in the instruction cache */
    for (int e = threadIdx.x; e < ROWS * COLUMNS / 4; e += THREADS) {
        const int m = e / (COLUMNS / 4), chunk = e % (COLUMNS / 4), n = n0 + 4 * chunk;
        float4 sum = *reinterpret_cast<const float4 *>(&memory.sums[0][m][4 * chunk]);
#pragma unroll
        for (int other = 1; other < S::slices; other++) {
            const float4 more = *reinterpret_cast<const float4 *>(&memory.sums[other][m][4 * chunk]);
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        if (m < p.m && n < p.n)
            *reinterpret_cast<float4 *>(p.parts + (static_cast<int64_t>(blockIdx.y) * p.m + m) * p.n + n) = sum;
    }
}
#endif

template <int ROWS>
static __global__ void __launch_bounds__(THREADS, 1)
    skinny_m_slices(product p, const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map)
{
#if __CUDA_ARCH__ >= 900
    using S = shape<ROWS>;
    extern __shared__ __align__(1024) unsigned char bytes[];
    shared_memory<ROWS> &memory = *reinterpret_cast<shared_memory<ROWS> *>(bytes);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int row = lane / 4, column = lane % 4, band = warp % S::bands, slice = warp / S::bands;
    const int n0 = blockIdx.x * COLUMNS, first = blockIdx.y * p.tiles_each, count = min(p.tiles_each, p.tiles - first);
    const uint32_t tiles = static_cast<uint32_t>(__cvta_generic_to_shared(memory.tiles)), size = sizeof memory.tiles[0];
    const auto load = [&](int tile, int stage) {
        const uint32_t full = static_cast<uint32_t>(__cvta_generic_to_shared(&memory.full[stage]));
        const int k = (first + tile) * SLICES_DEPTH;
        tma_expect(full, size);
        tma_load_image(tiles + stage * size, &a_map, {k, 0, 0, 0}, full);
        tma_load_image(tiles + stage * size + ROWS * LINE, &b_map, {k, n0, 0, 0}, full);
    };
    const bool loads = threadIdx.x == 0;
    if (loads) {
        for (int stage = 0; stage < SLICES_STAGES; stage++) {
            barrier_init(&memory.full[stage], 1);
            barrier_init(&memory.empty[stage], THREADS);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    wait_and_launch_dependent_grids();
    if (loads) {
#pragma unroll 1
        for (int tile = 0; tile < AHEAD && tile < count; tile++) load(tile, tile);
    }
    float sums[S::mine][S::across] = {};
    int next = AHEAD, next_parity = 1 /* the previous phase of a new barrier counts as complete */, at = 0, parity = 0;
#pragma unroll 1
    for (int tile = 0; tile < count; tile++) {
        if (loads && tile + AHEAD < count) {
            barrier_await(&memory.empty[next], next_parity);
            load(tile + AHEAD, next);
            if (++next == SLICES_STAGES) {
                next = 0;
                next_parity ^= 1;
            }
        }
        barrier_await(&memory.full[at], parity);
        const uint32_t a = tiles + at * size + (64 * band + row) * LINE;
        const uint32_t b = tiles + at * size + (ROWS + column) * LINE;
#pragma unroll
        for (int q = 0; q < S::quads; q++) multiply<S>(sums, a, b, slice * S::quads + q, row, column);
        barrier_arrive(&memory.empty[at]);
        if (++at == SLICES_STAGES) {
            at = 0;
            parity ^= 1;
        }
    }
    gather_sums<ROWS>(sums, memory, p, n0);
#endif
}

/* The map of rows of k elements, with boxes of `box` rows. False if the driver has no such maps. */
static bool map_lines(CUtensorMap *map, const float *data, int lines, int k, int box)
{
    return make_image_map(
        map,
        {.data = data, .images = 1, .height = 1, .width = lines, .channels = k, .size = {1, box}, .stride = {1, 1}});
}

template <int ROWS> static sdlf_status launch(const cuda_calculator *calculator, const product &p, int splits)
{
    CUtensorMap a, b;
    if (!map_lines(&a, p.a, p.m, p.k, ROWS) || !map_lines(&b, p.b, p.n, p.k, COLUMNS))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "gemm by skinny-m: the driver has no tensor maps");
    const dim3 blocks((unsigned)((p.n + COLUMNS - 1) / COLUMNS), (unsigned)splits);
    const int64_t bytes = sizeof(shared_memory<ROWS>);
    const int shared = (int)shared_alone(calculator, static_cast<int64_t>(blocks.x) * blocks.y, bytes);
    sdlf_status status = allow_shared(skinny_m_slices<ROWS>, shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, skinny_m_slices<ROWS>, blocks, THREADS, shared, p, a, b);
    return cuda_check_launch("gemm");
}

sdlf_status cuda_skinny_m_slices(const cuda_calculator *calculator, const product &p, int splits)
{
    return p.m <= 64 ? launch<64>(calculator, p, splits) : launch<128>(calculator, p, splits);
}
