/* SPDX-License-Identifier: MIT */
/* float32 to float16 or bfloat16: the operands of a GEMM (gemm/convert_operands.h). A grid-stride loop, a thread converts 8 adjacent elements of
 * a row: 32 bytes read, 16 written, 6 bytes an element in all. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, CHUNK = 8 };

struct source {
    const float *from;
    uint4 *to;
    int64_t columns, chunks, end; /* chunks per row; of this source and those before it */
    bool vectors;                 /* rows of whole chunks at multiples of 16 bytes */
};

struct sources {
    source of[CUDA_MOST_OPERANDS16];
    int count;
};

template <sdlf_math MATH> static __device__ __forceinline__ uint32_t round_pair(float low, float high)
{
    if (MATH == SDLF_MATH_FP16) {
        __half2 pair = __floats2half2_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&pair);
}

template <sdlf_math MATH> static __device__ __forceinline__ void round_chunk(const source &s, int64_t chunk)
{
    float x[CHUNK];
    if (s.vectors) {
        const float4 *from = reinterpret_cast<const float4 *>(s.from) + 2 * chunk;
        *reinterpret_cast<float4 *>(x) = from[0];
        *reinterpret_cast<float4 *>(x + 4) = from[1];
    } else {
        int64_t row = chunk / s.chunks, column = chunk % s.chunks * CHUNK;
        const float *from = s.from + row * s.columns + column;
#pragma unroll
        for (int i = 0; i < CHUNK; i++) x[i] = column + i < s.columns ? from[i] : 0.0f;
    }
    s.to[chunk] = make_uint4(round_pair<MATH>(x[0], x[1]), round_pair<MATH>(x[2], x[3]), round_pair<MATH>(x[4], x[5]),
                             round_pair<MATH>(x[6], x[7]));
}

template <sdlf_math MATH> static __global__ void __launch_bounds__(THREADS) convert_operands(sources all)
{
    for (int i = 0; i < CUDA_MOST_OPERANDS16 && i < all.count; i++) {
        const source &s = all.of[i];
        int64_t first = i > 0 ? all.of[i - 1].end : 0, step = grid_step();
        int64_t e = grid_first();
        if (e < first) e += (first - e + step - 1) / step * step; /* this thread's first chunk of the source */
#pragma unroll 2
        for (; e < s.end; e += step) round_chunk<MATH>(s, e - first);
    }
}

extern "C" sdlf_status cuda_convert_operands(sdlf_calculator *base, const cuda_operand16 *operands, int count)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    sources all = {};
    int64_t end = 0;
    for (int i = 0; i < count; i++) {
        source &s = all.of[i];
        s.from = static_cast<const float *>(operands[i].from);
        s.to = static_cast<uint4 *>(operands[i].to);
        s.columns = operands[i].columns;
        s.chunks = cuda_operand16_line(s.columns) / CHUNK;
        s.end = end += s.chunks * operands[i].rows;
        s.vectors = s.columns % CHUNK == 0 && reinterpret_cast<uintptr_t>(s.from) % 16 == 0;
    }
    all.count = count;
    if (end == 0) return SDLF_OK;
    unsigned blocks = cuda_blocks(calculator, end, THREADS);
    if (calculator->math == SDLF_MATH_FP16)
        convert_operands<SDLF_MATH_FP16><<<blocks, THREADS, 0, calculator->stream>>>(all);
    else
        convert_operands<SDLF_MATH_BF16><<<blocks, THREADS, 0, calculator->stream>>>(all);
    return cuda_check_launch("rounding of operands");
}

/* ---- float32 to 20 bits, round to nearest, ties to even ---- */

enum { CUT = 12 /* bits */ };

/* NaN stays NaN. */
static __device__ __forceinline__ uint32_t twenty_bits(float x)
{
    uint32_t bits = __float_as_uint(x);
    if (isnan(x)) return (bits | 0x400000u) >> CUT;
    return (bits + (1u << (CUT - 1)) - 1 + (bits >> CUT & 1)) >> CUT;
}

static __global__ void __launch_bounds__(THREADS)
    pack(const float *from, char *to, int64_t chunks, int64_t columns, int64_t line)
{
    for (int64_t e = grid_first(); e < chunks; e += grid_step()) {
        const int64_t each = columns / CHUNK, row = e / each, chunk = e % each;
        const float4 *four = reinterpret_cast<const float4 *>(from) + 2 * e;
        const float4 low = four[0], high = four[1];
        const float x[CHUNK] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        uint32_t upper[CHUNK / 2] = {}, lower = 0;
#pragma unroll
        for (int i = 0; i < CHUNK; i++) {
            uint32_t bits = twenty_bits(x[i]);
            upper[i / 2] |= (bits >> 4) << (i % 2 * 16);
            lower |= (bits & 15) << (4 * i);
        }
        char *at = to + row * line;
        reinterpret_cast<uint4 *>(at)[chunk] = make_uint4(upper[0], upper[1], upper[2], upper[3]);
        reinterpret_cast<uint32_t *>(at + columns * 2)[chunk] = lower;
    }
}

extern "C" sdlf_status cuda_pack_operand(sdlf_calculator *base, const void *from, void *to, int64_t rows,
                                         int64_t columns)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t chunks = rows * (columns / CHUNK);
    if (chunks == 0) return SDLF_OK;
    pack<<<cuda_blocks(calculator, chunks, THREADS), THREADS, 0, calculator->stream>>>(
        static_cast<const float *>(from), static_cast<char *>(to), chunks, columns, cuda_packed_line(columns));
    return cuda_check_launch("rounding of weights to 20 bits");
}
