/* SPDX-License-Identifier: MIT */
/* gemm with integer weights (weight-only quantisation): b (k,n) float32, transposed, is stored as integers q (n,...)
 * and scales per block along k.
 *
 *   b[j,p] = (q[j,p] - zero[j,g]) scale[j,g], g = p / block, block = sdlf_gemm_block(k, blocks)
 *   in: a (m,k) float32, q (n,k) int8 or (n, 16 ceil(k / 32)) uint8, bias? (n), residual? (m,n), scale (n,blocks)
 *       float32, zero? (n,blocks) float32: with uint8 only
 * uint8 holds two 4-bit values per byte: of each 32, the first 16 are the low nibbles of 16 bytes, the last 16 the high
 * ones. Only calculators whose `supports` accepts it receive it. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_GEMM_WEIGHT_ONLY_H
#define SDLF_FRAMEWORK_OPERATIONS_GEMM_WEIGHT_ONLY_H

#include <sdlf/operation.h>

enum { SDLF_GEMM_GROUP = 32 };

/* The elements of a block: all k, or the smallest multiple of a group that gives that number of blocks. */
static inline int64_t sdlf_gemm_block(int64_t k, int64_t blocks)
{
    int64_t groups = (k + SDLF_GEMM_GROUP - 1) / SDLF_GEMM_GROUP;
    return blocks <= 1 ? k : (groups + blocks - 1) / blocks * SDLF_GEMM_GROUP;
}

static inline bool sdlf_gemm_is_weight_only(const sdlf_operation *operation)
{
    return operation->kind == SDLF_GEMM && sdlf_tensor_present(&operation->in[4]);
}

#endif
