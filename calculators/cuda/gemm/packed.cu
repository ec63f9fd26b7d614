/* SPDX-License-Identifier: MIT */
/* float32 to 20 bits (gemm/packed.h), to nearest, ties to even. A thread 8 neighbours of a line, striding: 32 bytes read, 20 written. */
#include "calculators/cuda/gemm/packed.h"

#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, CHUNK = 8, CUT = 12 /* bits */ };

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

extern "C" sdlf_status cuda_pack_factor(sdlf_calculator *base, const void *from, void *to, int64_t rows,
                                        int64_t columns)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t chunks = rows * (columns / CHUNK);
    if (chunks == 0) return SDLF_OK;
    pack<<<cuda_blocks(calculator, chunks, THREADS), THREADS, 0, calculator->stream>>>(
        static_cast<const float *>(from), static_cast<char *>(to), chunks, columns, cuda_packed_line(columns));
    return cuda_check_launch("rounding of weights to 20 bits");
}
