/* SPDX-License-Identifier: MIT */
/* The teaching ladder of tall-skinny GEMM. The bytes that a kernel loads through the caches are given for m rows, k
 * inner elements and n columns of T bytes; T (m k + m n) must come from memory in every kernel. */
#include "lab/gemm.h"

#include "calculators/cuda/kernels.cuh"

enum {
    THREADS = 128,
    MAXIMUM_COLUMNS = 32,    /* n, at most, of the kernels that keep a row's sums in registers */
    SHARED_BYTES = 48 << 10, /* of b; every device allows a block as much */
    TILE = 16,               /* inner elements of a tile of `tiled` */
};

template <typename T> struct tall {
    const T *a, *b;
    T *c, alpha;
    int64_t m, n, k;
};

/* T (2 m k n + 2 m k n): the sum goes to memory and back at every step (volatile: the compiler would keep it). */
template <typename T> static __global__ void gemm_baseline(tall<T> g)
{
    int64_t i = grid_first();
    if (i >= g.m * g.n) return;
    volatile T *c = g.c + i;
    *c = 0;
    for (int64_t p = 0; p < g.k; p++) *c = *c + g.a[i / g.n * g.k + p] * g.b[p * g.n + i % g.n];
    *c = g.alpha * *c;
}

/* T (2 m k n). */
template <typename T> static __global__ void gemm_register(tall<T> g)
{
    int64_t i = grid_first();
    if (i >= g.m * g.n) return;
    T sum = 0;
    for (int64_t p = 0; p < g.k; p++) sum += g.a[i / g.n * g.k + p] * g.b[p * g.n + i % g.n];
    g.c[i] = g.alpha * sum;
}

template <typename T> static __device__ T *load_b(const tall<T> &g)
{
    extern __shared__ double dynamic[]; /* the widest element's alignment */
    T *b = reinterpret_cast<T *>(dynamic);
    for (int64_t i = threadIdx.x; i < g.k * g.n; i += blockDim.x) b[i] = g.b[i];
    __syncthreads();
    return b;
}

/* T m k n from the caches, as much from shared memory, and b once a block: blocks stride over the outputs. */
template <typename T> static __global__ void gemm_shared(tall<T> g)
{
    const T *b = load_b(g);
    for (int64_t i = grid_first(); i < g.m * g.n; i += grid_step()) {
        T sum = 0;
        for (int64_t p = 0; p < g.k; p++) sum += g.a[i / g.n * g.k + p] * b[p * g.n + i % g.n];
        g.c[i] = g.alpha * sum;
    }
}

/* A thread reads its row of a once for each column: T m k n from the caches, by one thread each and so without
 * coalescing; all lanes read the same element of b. */
template <typename T> static __global__ void gemm_inner(tall<T> g)
{
    const T *b = load_b(g);
    for (int64_t r = grid_first(); r < g.m; r += grid_step()) {
        for (int64_t j = 0; j < g.n; j++) {
            T sum = 0;
            for (int64_t p = 0; p < g.k; p++) sum += g.a[r * g.k + p] * b[p * g.n + j];
            g.c[r * g.n + j] = g.alpha * sum;
        }
    }
}

/* A thread reads its row of a once, with n sums in registers: T m k. Lanes are k elements apart, so each load fetches a
 * sector of 32 bytes for one element, which must stay in the cache for the next ones. */
template <typename T> static __global__ void gemm_outer(tall<T> g)
{
    const T *b = load_b(g);
    for (int64_t r = grid_first(); r < g.m; r += grid_step()) {
        T sum[MAXIMUM_COLUMNS] = {};
        for (int64_t p = 0; p < g.k; p++) {
            T x = g.a[r * g.k + p];
#pragma unroll
            for (int j = 0; j < MAXIMUM_COLUMNS; j++)
                if (j < g.n) sum[j] += x * b[p * g.n + j];
        }
#pragma unroll
        for (int j = 0; j < MAXIMUM_COLUMNS; j++)
            if (j < g.n) g.c[r * g.n + j] = g.alpha * sum[j];
    }
}

/* a is loaded in tiles of THREADS rows and TILE inner elements, contiguously by the whole block, and stored with one
 * element of padding a row against bank conflicts: T m k from memory, each byte once. */
template <typename T> static __global__ void gemm_tiled(tall<T> g)
{
    __shared__ T tile[THREADS][TILE + 1];
    const T *b = load_b(g);
    for (int64_t r0 = static_cast<int64_t>(blockIdx.x) * THREADS; r0 < g.m;
         r0 += static_cast<int64_t>(gridDim.x) * THREADS) {
        T sum[MAXIMUM_COLUMNS] = {};
        for (int64_t p0 = 0; p0 < g.k; p0 += TILE) {
            __syncthreads();
            for (int i = threadIdx.x; i < THREADS * TILE; i += THREADS) {
                int64_t r = r0 + i / TILE, p = p0 + i % TILE;
                tile[i / TILE][i % TILE] = r < g.m && p < g.k ? g.a[r * g.k + p] : T(0);
            }
            __syncthreads();
            int64_t inner = g.k - p0 < TILE ? g.k - p0 : TILE;
            for (int64_t p = 0; p < inner; p++) {
                T x = tile[threadIdx.x][p];
#pragma unroll
                for (int j = 0; j < MAXIMUM_COLUMNS; j++)
                    if (j < g.n) sum[j] += x * b[(p0 + p) * g.n + j];
            }
        }
        int64_t r = r0 + threadIdx.x;
        if (r >= g.m) continue;
#pragma unroll
        for (int j = 0; j < MAXIMUM_COLUMNS; j++)
            if (j < g.n) g.c[r * g.n + j] = g.alpha * sum[j];
    }
}

/* ---- choosing ---- */

extern "C" bool lab_gemm_takes(const sdlf_operation *op, int number)
{
    int64_t k = op->in[1].shape.dim[0], n = op->in[1].shape.dim[1], size = (int64_t)sdlf_dtype_size(op->out[0].dtype);
    if (number <= LAB_GEMM_REGISTER) return true;
    int64_t tile = number == LAB_GEMM_TILED ? THREADS * (TILE + 1) * size : 0;
    if (n > MAXIMUM_COLUMNS && number >= LAB_GEMM_OUTER) return false;
    return n == 0 || k <= (SHARED_BYTES - tile) / size / n;
}

extern "C" sdlf_status lab_gemm(sdlf_calculator *base, const sdlf_operation *op, int number)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        tall<T> g = {data_of<T>(op->in[0]),          data_of<T>(op->in[1]),   data_of<T>(op->out[0]),
                     static_cast<T>(op->gemm.alpha), op->out[0].shape.dim[0], op->out[0].shape.dim[1],
                     op->in[0].shape.dim[1]};
        size_t shared = static_cast<size_t>(g.k * g.n) * sizeof(T);
        unsigned outputs = static_cast<unsigned>((g.m * g.n + THREADS - 1) / THREADS);
        unsigned few = cuda_blocks(calculator, g.m * g.n, THREADS), rows = cuda_blocks(calculator, g.m, THREADS);
        cudaStream_t stream = calculator->stream;
        switch (number) {
        case LAB_GEMM_BASELINE: gemm_baseline<T><<<outputs, THREADS, 0, stream>>>(g); break;
        case LAB_GEMM_REGISTER: gemm_register<T><<<outputs, THREADS, 0, stream>>>(g); break;
        case LAB_GEMM_SHARED: gemm_shared<T><<<few, THREADS, shared, stream>>>(g); break;
        case LAB_GEMM_INNER: gemm_inner<T><<<rows, THREADS, shared, stream>>>(g); break;
        case LAB_GEMM_OUTER: gemm_outer<T><<<rows, THREADS, shared, stream>>>(g); break;
        default: gemm_tiled<T><<<rows, THREADS, shared, stream>>>(g); break;
        }
    });
    return cuda_check_launch("gemm");
}
