/* SPDX-License-Identifier: MIT */
/* gemm for a few columns: c (m,n) = act(alpha a (m,k) b^T + bias + residual), b (n,k), n up to 16, float32 in every math mode (the
 * GEMMs are small): a last layer's forward pass, bound by launch latency and by reading a, 4 m k bytes.
 *
 * Few rows: one row per block, one element of it per warp: a lane adds every 32nd product, four at once if alignment allows, and the
 * 32 sums are reduced in a fixed order. Many rows, of whole float4: a block computes ROWS rows completely; a thread loads every 256th
 * float4 of all of them and of b, all at once if k is up to 1,024, and the threads' sums are reduced, first in each warp, in a fixed
 * order. So a is read once, and b, which is small, once for every ROWS rows, from the L2 cache. */
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/lanes.cuh"

enum { WARP = 32, ROWS = 8, WARPS = 8, MANY = 512 /* rows */, MOST = 16 /* columns */ };

struct product {
    const float *a, *b, *bias, *residual;
    float *c;
    int64_t m, n, k;
    float alpha;
    sdlf_activation activation;
};

static __device__ float dot(const float *a, const float *b, int64_t k, bool vectors)
{
    int64_t lane = threadIdx.x % WARP;
    float sum = 0;
    if (vectors) {
        const float4 *a4 = reinterpret_cast<const float4 *>(a), *b4 = reinterpret_cast<const float4 *>(b);
#pragma unroll 8
        for (int64_t i = lane; i < k / 4; i += WARP) {
            float4 x = a4[i], y = b4[i];
            sum += x.x * y.x + x.y * y.y + (x.z * y.z + x.w * y.w);
        }
    } else {
        for (int64_t i = lane; i < k; i += WARP) sum += a[i] * b[i];
    }
    for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

static __global__ void skinny_n(product p, bool vectors)
{
    int64_t m = blockIdx.x, n = threadIdx.x / WARP, at = m * p.n + n;
    for (int64_t i = threadIdx.x % WARP * 32; i < p.k; i += WARP * 32) prefetch_line(p.b + n * p.k + i);
    wait_and_launch_dependent_grids();
    float sum = p.alpha * dot(p.a + m * p.k, p.b + n * p.k, p.k, vectors);
    if (threadIdx.x % WARP != 0) return;
    if (p.bias != nullptr) sum += p.bias[n];
    if (p.residual != nullptr) sum += p.residual[at];
    p.c[at] = activate(p.activation, sum);
}

/* COLUMNS: at least n. */
template <int COLUMNS> static __global__ void __launch_bounds__(WARPS *WARP) skinny_n_of_rows(product p)
{
    const int SUMS = ROWS * COLUMNS, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    __shared__ float parts[WARPS][SUMS];
    const int64_t m0 = static_cast<int64_t>(blockIdx.x) * ROWS, quads = p.k / 4;
    const float4 *a = reinterpret_cast<const float4 *>(p.a), *b = reinterpret_cast<const float4 *>(p.b);
    float sums[SUMS] = {};
    wait_and_launch_dependent_grids();
    for (int64_t i = threadIdx.x; i < quads; i += WARPS * WARP) {
        float4 x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) x[r] = a[(m0 + r < p.m ? m0 + r : m0) * quads + i];
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            float4 y = n < p.n ? __ldg(b + n * quads + i) : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sums[r * COLUMNS + n] += x[r].x * y.x + x[r].y * y.y + (x[r].z * y.z + x[r].w * y.w);
        }
    }
    const int first = add_lanes<WARP / 2, 2>(sums);
#pragma unroll
    for (int i = 0; i < SUMS / (WARP / 2); i++) {
        float sum = sums[i] + __shfl_xor_sync(0xffffffffu, sums[i], 1);
        if (lane % 2 == 0) parts[warp][first + i] = sum;
    }
    __syncthreads();
    const int e = threadIdx.x, n = e % COLUMNS;
    const int64_t m = m0 + e / COLUMNS, at = m * p.n + n;
    if (e >= SUMS || n >= p.n || m >= p.m) return;
    float sum = parts[0][e];
#pragma unroll
    for (int w = 1; w < WARPS; w++) sum += parts[w][e];
    sum *= p.alpha;
    if (p.bias != nullptr) sum += p.bias[n];
    if (p.residual != nullptr) sum += p.residual[at];
    p.c[at] = activate(p.activation, sum);
}

extern "C" sdlf_status cuda_gemm_skinny_n(sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_tensor &c = op->out[0];
    const product p = {.a = data_of<float>(op->in[0]),
                       .b = data_of<float>(op->in[1]),
                       .bias = optional<float>(op->in[2]),
                       .residual = optional<float>(op->in[3]),
                       .c = data_of<float>(c),
                       .m = c.shape.dim[0],
                       .n = c.shape.dim[1],
                       .k = op->in[0].shape.dim[1],
                       .alpha = op->gemm.alpha,
                       .activation = op->gemm.activation};
    const cuda_calculator *calculator = cuda_calculator_from(base);
    uintptr_t addresses = reinterpret_cast<uintptr_t>(p.a) | reinterpret_cast<uintptr_t>(p.b);
    const bool vectors = p.k % 4 == 0 && addresses % 16 == 0;
    const unsigned blocks = (unsigned)((p.m + ROWS - 1) / ROWS);
    if (!vectors || p.m < MANY)
        launch_overlapped(calculator, skinny_n, (unsigned)p.m, (unsigned)p.n * WARP, 0, p, vectors);
    else if (p.n <= 10)
        launch_overlapped(calculator, skinny_n_of_rows<10>, blocks, WARPS * WARP, 0, p);
    else
        launch_overlapped(calculator, skinny_n_of_rows<MOST>, blocks, WARPS * WARP, 0, p);
    return cuda_check_launch("gemm");
}
