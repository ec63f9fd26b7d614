/* gemm for 17 to 128 rows in fp32, on compute capability 9.0 (see gemm/few_rows.cu): multiplications bind it, so a thread has 8 x 16 numbers of c,
 * and of four k reads 24 vectors from shared memory for 512 FMAs.
 *
 * A warp has 64 rows, all 64 columns of the block, and a slice of each tile's depth: an eighth of it, four k, or a quarter where a block has
 * 128 rows. Eight lanes share the rows, four the columns. Tiles of a and b come by asynchronous copies of all threads, five ahead; a warp
 * waits for a tile to be there, and with its copies for the place of another to be free, on barriers in shared memory where every lane arrives. In
 * a tile the 16-byte chunks of a line stand at chunk ^ line % 8, of b at chunk ^ line / 4 % 8: lanes that read together read
 * different banks. In the end the slices' sums meet in shared memory, in order. */
#include "calculators/cuda/gemm/few_rows.cuh"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/launch.cuh"

const int LINE = SLICES_DEPTH, CHUNKS = LINE / 4, STEP = THREADS / CHUNKS /* lines that all threads bring at once */;
enum { WARP = 32, WARPS = THREADS / WARP, SLACK = 2 /* tiles that a warp may be behind another */ };
enum { AHEAD = SLICES_STAGES - 1 - SLACK };

template <int ROWS> struct shape {
    static const int bands = ROWS / 64, slices = WARPS / bands, quads = CHUNKS / slices; /* of four k */
    static const int mine = 8, across = 16;
};

template <int ROWS> struct stage {
    float a[ROWS][LINE], b[COLUMNS][LINE];
};

template <int ROWS> struct shared_memory {
    union {
        stage<ROWS> stages[SLICES_STAGES];
        float4 sums[shape<ROWS>::slices][ROWS][COLUMNS / 4]; /* in the end; chunks at chunk ^ line % 2 * 4 */
    };
    uint64_t full[SLICES_STAGES],
        empty[SLICES_STAGES]; /* all threads arrive when a tile is there, and when it has been used */
};

static __device__ __forceinline__ uint32_t address_of(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

static __device__ __forceinline__ void begin_barrier(uint32_t barrier, int count)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
#endif
}

static __device__ __forceinline__ void arrive(uint32_t barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
#endif
}

/* The thread arrives when all its copies up to here are done. */
static __device__ __forceinline__ void arrive_with_copies(uint32_t barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
#endif
}

/* Until the phase of that parity is over; of a new barrier, that of parity 1 is. */
static __device__ __forceinline__ void await_phase(uint32_t barrier, int parity)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n .reg .pred over;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 over, [%0], %1;\n @!over bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
#endif
}

static __device__ __forceinline__ float4 vector_at(uint32_t address)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}

/* 16 bytes, or as many zeros where `size` is 0. */
static __device__ __forceinline__ void copy_chunk(uint32_t to, const float *from, int size)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
#endif
}

/* What a thread brings of every tile: one chunk of each STEP-th line. */
template <int ROWS> struct carrier {
    static const int A = ROWS / STEP, B = COLUMNS / STEP;
    const float *a[A], *b[B];
    int left; /* of k, from the chunk on */
    int a_size[A], b_size[B];
    uint32_t to_a, to_b; /* in a stage */

    __device__ __forceinline__ carrier(const product &p, int n0, int k0)
    {
        const int chunk = threadIdx.x % CHUNKS, line = threadIdx.x / CHUNKS;
        left = p.k - k0 - 4 * chunk;
        to_a = (line * LINE + 4 * (chunk ^ line % 8)) * sizeof(float);
        to_b = ((ROWS + line) * LINE + 4 * (chunk ^ line / 4 % 8)) * sizeof(float);
#pragma unroll
        for (int i = 0; i < A; i++) {
            const int m = line + i * STEP;
            a_size[i] = m < p.m ? 16 : 0;
            a[i] = p.a + (m < p.m ? static_cast<int64_t>(m) * p.k : 0) + k0 + 4 * chunk;
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            const int n = n0 + line + i * STEP;
            b_size[i] = n < p.n ? 16 : 0;
            b[i] = p.b + (n < p.n ? static_cast<int64_t>(n) * p.k : 0) + k0 + 4 * chunk;
        }
    }

    /* The next tile. */
    __device__ __forceinline__ void bring(uint32_t to, uint32_t full)
    {
#pragma unroll
        for (int i = 0; i < A; i++) {
            copy_chunk(to + to_a + i * STEP * LINE * sizeof(float), a[i], left > 0 ? a_size[i] : 0);
            a[i] += LINE;
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            copy_chunk(to + to_b + i * STEP * LINE * sizeof(float), b[i], left > 0 ? b_size[i] : 0);
            b[i] += LINE;
        }
        left -= LINE;
        arrive_with_copies(full);
    }
};

/* Four k, from the chunk on: `a` and `b` are the thread's first lines in the tile. */
template <class S>
static __device__ __forceinline__ void multiply(float (&sums)[S::mine][S::across], uint32_t a, uint32_t b, int chunk,
                                                int row, int column)
{
    const uint32_t from_a = a + 16 * (chunk ^ row), even = b + 16 * (chunk ^ column),
                   odd = b + 16 * LINE * sizeof(float) + 16 * (chunk ^ column ^ 4);
    float4 factor[S::across];
#pragma unroll
    for (int j = 0; j < S::across; j++)
        factor[j] = vector_at((j / 4 % 2 ? odd : even) + (j / 8 * 32 + j % 4) * LINE * sizeof(float));
#pragma unroll
    for (int r = 0; r < S::mine; r++) {
        const float4 v = vector_at(from_a + r * 8 * LINE * sizeof(float));
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.x * factor[j].x;
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.y * factor[j].y;
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.z * factor[j].z;
#pragma unroll
        for (int j = 0; j < S::across; j++) sums[r][j] += v.w * factor[j].w;
    }
}

/* The slices' sums meet, and the block's part leaves. A thread's columns are 16 j + 4 column and the three behind it. */
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
        for (int j = 0; j < S::across / 4; j++)
            memory.sums[slice][64 * band + row + 8 * r][(column + 4 * j) ^ row % 2 * 4] =
                make_float4(sums[r][4 * j], sums[r][4 * j + 1], sums[r][4 * j + 2], sums[r][4 * j + 3]);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * COLUMNS / 4; e += THREADS) {
        const int m = e / (COLUMNS / 4), chunk = e % (COLUMNS / 4), n = n0 + 4 * chunk;
        float4 sum = memory.sums[0][m][chunk ^ m % 2 * 4];
#pragma unroll
        for (int other = 1; other < S::slices; other++) {
            const float4 more = memory.sums[other][m][chunk ^ m % 2 * 4];
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        if (m < p.m && n < p.n)
            *reinterpret_cast<float4 *>(p.parts + (static_cast<int64_t>(blockIdx.y) * p.m + m) * p.n + n) = sum;
    }
}

template <int ROWS> static __global__ void __launch_bounds__(THREADS, 1) few_rows_slices(product p)
{
    using S = shape<ROWS>;
    extern __shared__ __align__(16) unsigned char bytes[];
    shared_memory<ROWS> &memory = *reinterpret_cast<shared_memory<ROWS> *>(bytes);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int row = lane / 4, column = lane % 4, band = warp % S::bands, slice = warp / S::bands;
    const int n0 = blockIdx.x * COLUMNS, first = blockIdx.y * p.tiles_each, count = min(p.tiles_each, p.tiles - first);
    const uint32_t stages = address_of(memory.stages), size = sizeof(stage<ROWS>);
    const uint32_t full = address_of(memory.full), empty = address_of(memory.empty);
    float sums[S::mine][S::across] = {};
    if (threadIdx.x < SLICES_STAGES) {
        begin_barrier(full + 8 * threadIdx.x, THREADS);
        begin_barrier(empty + 8 * threadIdx.x, THREADS);
    }
    __syncthreads();
    carrier<ROWS> other(p, n0, first * LINE);
    await_kernels();
#pragma unroll
    for (int t = 0; t < AHEAD; t++) {
        if (t < count) other.bring(stages + t * size, full + 8 * t);
    }
    int next = AHEAD, next_parity = 1, at = 0, parity = 0;
#pragma unroll 1
    for (int t = 0; t < count; t++) {
        if (t + AHEAD < count) {
            await_phase(empty + 8 * next, next_parity);
            other.bring(stages + next * size, full + 8 * next);
            if (++next == SLICES_STAGES) {
                next = 0;
                next_parity ^= 1;
            }
        }
        await_phase(full + 8 * at, parity);
        const uint32_t a = stages + at * size + (64 * band + row) * LINE * sizeof(float);
        const uint32_t b = stages + at * size + (ROWS + 4 * column) * LINE * sizeof(float);
#pragma unroll
        for (int q = 0; q < S::quads; q++) multiply<S>(sums, a, b, slice * S::quads + q, row, column);
        arrive(empty + 8 * at);
        if (++at == SLICES_STAGES) {
            at = 0;
            parity ^= 1;
        }
    }
    gather_sums<ROWS>(sums, memory, p, n0);
}

template <int ROWS> static sdlf_status launch(const cuda_calculator *calculator, const product &p, int splits)
{
    const dim3 blocks((unsigned)((p.n + COLUMNS - 1) / COLUMNS), (unsigned)splits);
    const int64_t bytes = sizeof(shared_memory<ROWS>);
    const int shared = (int)shared_alone(calculator, static_cast<int64_t>(blocks.x) * blocks.y, bytes);
    sdlf_status status = allow_shared(few_rows_slices<ROWS>, shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, few_rows_slices<ROWS>, blocks, THREADS, shared, p);
    return cuda_check_launch("gemm");
}

sdlf_status cuda_few_rows_slices(const cuda_calculator *calculator, const product &p, int splits)
{
    return p.m <= 64 ? launch<64>(calculator, p, splits) : launch<128>(calculator, p, splits);
}
