/* SPDX-License-Identifier: MIT */
/* What the `register-stationary` kernels share: c (m,n) = alpha a (m,k) b (k,n) with all of b in registers, CHUNKS times 32 elements of k and 16
 * columns, in float32 (register_stationary.cu) and float64 (register_stationary64.cu). */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_REGISTER_STATIONARY_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_REGISTER_STATIONARY_CUH

#include <type_traits>

#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/kernels.cuh"

enum { WARP = 32, ROWS = 8 /* of a warp's tile */, COLUMNS = 16, CHUNK = 32, MOST_CHUNKS = 4 };

template <typename T> struct tall {
    const T *a, *b;
    T *c, alpha;
    int64_t m;
    int n, k;
    bool packs; /* rows of c can be stored in vectors of 16 bytes */
};

/* k is a multiple of `group`: the elements of 16 bytes, or those of one Tensor Core instruction. */
template <typename T>
static bool register_stationary_fits(const cuda_calculator *calculator, const sdlf_operation *op, int group)
{
    const int64_t m = op->in[0].shape.dim[0], k = op->in[1].shape.dim[0], n = op->in[1].shape.dim[1];
    const sdlf_dtype dtype = sizeof(T) == sizeof(float) ? SDLF_FLOAT32 : SDLF_FLOAT64;
    return cuda_is_built_for(calculator, 90) && op->out[0].dtype == dtype && m <= INT32_MAX && n >= 1 && n <= COLUMNS &&
           k >= group && k <= MOST_CHUNKS * CHUNK && k % group == 0;
}

template <typename T> static tall<T> describe_tall(const sdlf_operation *op)
{
    tall<T> g = {};
    g.a = data_of<T>(op->in[0]);
    g.b = data_of<T>(op->in[1]);
    g.c = data_of<T>(op->out[0]);
    g.alpha = static_cast<T>(op->gemm.alpha);
    g.m = op->out[0].shape.dim[0];
    g.n = static_cast<int>(op->out[0].shape.dim[1]);
    g.k = static_cast<int>(op->in[0].shape.dim[1]);
    g.packs = reinterpret_cast<uintptr_t>(g.c) % 16 == 0 && g.n % (16 / static_cast<int>(sizeof(T))) == 0;
    return g;
}

/* kernel_of(CHUNKS, WHOLE) is the kernel for k up to 32 CHUNKS, or for exactly that; blocks have `warps` warps, `resident` blocks fit
 * on a multiprocessor. The launch waits for the previous kernel to end: an early start would take the place of its last blocks, which
 * cost a layer of two convolutions 10 to 20 us. The next kernel may start early. */
template <int CHUNKS, typename T, typename Function>
static void launch_chunks(const cuda_calculator *calculator, const tall<T> &g, int warps, int resident,
                          Function kernel_of)
{
    const int64_t wanted = (g.m + ROWS * warps - 1) / (ROWS * warps), most = resident * calculator->multiprocessors;
    const unsigned blocks = static_cast<unsigned>(wanted < most ? wanted : most), threads = warps * WARP;
    const std::integral_constant<int, CHUNKS> chunks;
    if (g.k == CHUNKS * CHUNK)
        kernel_of(chunks, std::true_type())<<<blocks, threads, 0, calculator->stream>>>(g);
    else
        kernel_of(chunks, std::false_type())<<<blocks, threads, 0, calculator->stream>>>(g);
}

template <typename T, typename Function>
static sdlf_status run_register_stationary(sdlf_calculator *base, const sdlf_operation *op, int warps, int resident,
                                           Function kernel_of)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const tall<T> g = describe_tall<T>(op);
    switch ((g.k + CHUNK - 1) / CHUNK) {
    case 1: launch_chunks<1>(calculator, g, warps, resident, kernel_of); break;
    case 2: launch_chunks<2>(calculator, g, warps, resident, kernel_of); break;
    case 3: launch_chunks<3>(calculator, g, warps, resident, kernel_of); break;
    default: launch_chunks<MOST_CHUNKS>(calculator, g, warps, resident, kernel_of); break;
    }
    return cuda_check_launch("gemm");
}

#endif
