/* SPDX-License-Identifier: MIT */
/* c (m,n) = act(alpha a (m,k) b (n,k)^T + bias + residual) for up to 4 rows: a fully connected layer on one image or a few.
 *
 * Every element of b is used m times, so reading b is the bound: 4 n k bytes, or if it was prepacked 2.5 n k in tf32
 * (gemm/convert_operands.h), 2 n k in fp16 and bf16; 25088 x 4096: 0.098, 0.061 and 0.049 ms at 4.2 TB/s. a stays in the L1 cache.
 *
 * A block computes UNITS columns of c. Its threads load a row's chunks of 16 bytes in turn, of all UNITS rows of b at once, and load the
 * next ones before they use these, so that a multiprocessor has some 100 KB in flight. Threads' sums are added by shuffles, warps' in
 * order. Products and sums are float32; b has its stored precision, a is not rounded. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/launch.cuh"

enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP };

struct gemv {
    const float *a, *bias, *residual;
    const char *b;
    float *c;
    float alpha;
    int m, n, k;
    bool ready;   /* b was prepacked before the network ran */
    int64_t line; /* bytes from one row of b to the next */
    sdlf_activation activation;
};

/* ---- chunks of a row of b, by storage format ---- */

/* float32. */
struct plain_chunk {
    static constexpr int WIDTH = 4;
    uint4 four;

    __device__ __forceinline__ void read(const char *row, int chunk, int)
    {
        four = __ldcs(reinterpret_cast<const uint4 *>(row) + chunk);
    }
    __device__ __forceinline__ void unpack(float (&to)[WIDTH]) const
    {
        to[0] = __uint_as_float(four.x);
        to[1] = __uint_as_float(four.y);
        to[2] = __uint_as_float(four.z);
        to[3] = __uint_as_float(four.w);
    }
};

/* 16 bits. */
template <typename HALF> struct half_chunk {
    static constexpr int WIDTH = 8;
    uint4 pairs;

    __device__ __forceinline__ void read(const char *row, int chunk, int)
    {
        pairs = __ldcs(reinterpret_cast<const uint4 *>(row) + chunk);
    }
    static __device__ __forceinline__ float2 both(uint32_t pair, const __half *)
    {
        return __half22float2(*reinterpret_cast<const __half2 *>(&pair));
    }
    static __device__ __forceinline__ float2 both(uint32_t pair, const __nv_bfloat16 *)
    {
        return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)}; /* a float32's upper half */
    }
    __device__ __forceinline__ void unpack(float (&to)[WIDTH]) const
    {
        const uint32_t pair[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 two = both(pair[i], static_cast<const HALF *>(nullptr));
            to[2 * i] = two.x;
            to[2 * i + 1] = two.y;
        }
    }
};

/* 20 bits (gemm/convert_operands.h). */
struct packed_chunk {
    static constexpr int WIDTH = 8;
    uint4 upper;
    uint32_t lower;

    __device__ __forceinline__ void read(const char *row, int chunk, int columns)
    {
        upper = __ldcs(reinterpret_cast<const uint4 *>(row) + chunk);
        lower = __ldcs(reinterpret_cast<const uint32_t *>(row + static_cast<int64_t>(columns) * 2) + chunk);
    }
    /* Element i's low 4 bits, at their position in a float32. */
    __device__ __forceinline__ uint32_t rest(int i) const
    {
        return (i < 3 ? lower << (12 - 4 * i) : lower >> (4 * i - 12)) & 0xf000u;
    }
    __device__ __forceinline__ void unpack(float (&to)[WIDTH]) const
    {
        const uint32_t pair[4] = {upper.x, upper.y, upper.z, upper.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to[2 * i] = __uint_as_float(pair[i] << 16 | rest(2 * i));
            to[2 * i + 1] = __uint_as_float((pair[i] & 0xffff0000u) | rest(2 * i + 1));
        }
    }
};

/* Load chunk `chunk` of the block's rows of b; zeros past the last row or chunk. */
template <typename WEIGHTS, int UNITS>
static __device__ __forceinline__ void read_rows(WEIGHTS (&to)[UNITS], const gemv &s, int first, int chunk, int chunks)
{
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        to[i] = {};
        if (first + i < s.n && chunk < chunks) to[i].read(s.b + (first + i) * s.line, chunk, s.k);
    }
}

template <typename WEIGHTS, int ROWS, int UNITS>
static __global__ void __launch_bounds__(THREADS, 2) gemm_gemv(const __grid_constant__ gemv s)
{
    constexpr int WIDTH = WEIGHTS::WIDTH;
    __shared__ float part[WARPS][ROWS * UNITS];
    const int thread = static_cast<int>(threadIdx.x), first = static_cast<int>(blockIdx.x) * UNITS;
    const int chunks = s.k / WIDTH;
    WEIGHTS next[UNITS];
    launch_dependent_grids();
    if (!s.ready) wait_on_dependent_grids();
    read_rows<WEIGHTS, UNITS>(next, s, first, thread, chunks);
    if (s.ready) wait_on_dependent_grids();
    float sum[ROWS][UNITS] = {};
    for (int chunk = thread; chunk < chunks; chunk += THREADS) {
        WEIGHTS now[UNITS];
#pragma unroll
        for (int i = 0; i < UNITS; i++) now[i] = next[i];
        read_rows<WEIGHTS, UNITS>(next, s, first, chunk + THREADS, chunks);
        float a[ROWS][WIDTH];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float4 *from =
                reinterpret_cast<const float4 *>(s.a + static_cast<int64_t>(r) * s.k) + chunk * (WIDTH / 4);
#pragma unroll
            for (int v = 0; v < WIDTH; v += 4) {
                float4 four = {0, 0, 0, 0};
                if (r < s.m) four = from[v / 4];
                a[r][v] = four.x;
                a[r][v + 1] = four.y;
                a[r][v + 2] = four.z;
                a[r][v + 3] = four.w;
            }
        }
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            float b[WIDTH];
            now[i].unpack(b);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
#pragma unroll
                for (int v = 0; v < WIDTH; v++) sum[r][i] += a[r][v] * b[v];
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            float total = sum[r][i];
            for (int step = WARP / 2; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
            if (thread % WARP == 0) part[thread / WARP][r * UNITS + i] = total;
        }
    }
    __syncthreads();
    int row = thread / UNITS, unit = first + thread % UNITS;
    if (row >= ROWS || row >= s.m || unit >= s.n) return;
    float total = 0;
    for (int i = 0; i < WARPS; i++) total += part[i][thread];
    int64_t at = static_cast<int64_t>(row) * s.n + unit;
    total *= s.alpha;
    if (s.bias != nullptr) total += s.bias[unit];
    if (s.residual != nullptr) total += s.residual[at];
    s.c[at] = activate(s.activation, total);
}

template <typename WEIGHTS, int ROWS, int UNITS>
static void launch_units(const cuda_calculator *calculator, const gemv &s)
{
    launch_overlapped(calculator, gemm_gemv<WEIGHTS, ROWS, UNITS>,
                      dim3(static_cast<unsigned>((s.n + UNITS - 1) / UNITS)), dim3(THREADS), 0, s);
}

/* Fewer columns per block where there would be less than two blocks per multiprocessor. */
template <typename WEIGHTS> static void launch(const cuda_calculator *calculator, const gemv &s)
{
    bool wide = s.n >= 16 * calculator->multiprocessors;
    if (s.m == 1 && wide)
        launch_units<WEIGHTS, 1, 8>(calculator, s);
    else if (s.m == 1)
        launch_units<WEIGHTS, 1, 4>(calculator, s);
    else if (s.m == 2)
        launch_units<WEIGHTS, 2, 4>(calculator, s);
    else
        launch_units<WEIGHTS, 4, 4>(calculator, s);
}

extern "C" sdlf_status cuda_gemm_gemv(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    bool ready = sdlf_tensor_present(&op->prepared);
    gemv s = {};
    s.a = data_of<float>(op->in[0]);
    s.b = static_cast<const char *>(ready ? op->prepared.data : op->in[1].data);
    s.bias = optional<float>(op->in[2]);
    s.residual = optional<float>(op->in[3]);
    s.c = data_of<float>(op->out[0]);
    s.alpha = op->gemm.alpha;
    s.m = static_cast<int>(op->out[0].shape.dim[0]);
    s.n = static_cast<int>(op->out[0].shape.dim[1]);
    s.k = static_cast<int>(op->in[0].shape.dim[1]);
    s.ready = ready;
    s.line = 4 * static_cast<int64_t>(s.k);
    s.activation = op->gemm.activation;
    if (!ready) {
        launch<plain_chunk>(calculator, s);
    } else if (calculator->math == SDLF_MATH_TF32) {
        s.line = cuda_packed_line(s.k);
        launch<packed_chunk>(calculator, s);
    } else {
        s.line = 2 * cuda_operand16_line(s.k);
        if (calculator->math == SDLF_MATH_FP16)
            launch<half_chunk<__half>>(calculator, s);
        else
            launch<half_chunk<__nv_bfloat16>>(calculator, s);
    }
    return cuda_check_launch("gemm of few rows");
}
