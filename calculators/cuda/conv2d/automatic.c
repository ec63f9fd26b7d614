/* SPDX-License-Identifier: MIT */
/* The algorithm that "auto" chooses, and whether it prefers channels last. docs/reference/cuda-algorithms.md has the rule for users. */
#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/halo.h"
#include "calculators/cuda/conv2d/halo16.h"
#include "calculators/cuda/conv2d/pointwise.h"
#include "calculators/cuda/conv2d/pointwise_warps.h"
#include "calculators/cuda/conv2d/stem.h"
#include "calculators/cuda/conv2d/winograd.h"
#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/cuda/nhwc/nhwc.h"

enum {
    AUTO = CUDA_CONV2D_AUTO,
    DIRECT = CUDA_CONV2D_DIRECT,
    TWO_STEP = CUDA_CONV2D_TWO_STEP,
    POINTWISE = CUDA_CONV2D_POINTWISE,
    POINTWISE_WARPS = CUDA_CONV2D_POINTWISE_WARPS,
    IMPLICIT = CUDA_CONV2D_IMPLICIT,
    STEM = CUDA_CONV2D_STEM,
    DEPTHWISE = CUDA_CONV2D_DEPTHWISE,
    WINOGRAD_FUSED = CUDA_CONV2D_WINOGRAD_FUSED,
    WINOGRAD_2 = CUDA_CONV2D_WINOGRAD_2,
    HALO = CUDA_CONV2D_HALO,
    HALO16 = CUDA_CONV2D_HALO16,
};

/* Largest GEMM depth (C R S) for which stem is chosen. */
enum { STEM_DEPTH = 160 };

/* Largest im2col workspace in bytes, of one image where that is large, for which two-step (cuBLAS) is chosen. */
static const int64_t MOST_COLUMNS = INT64_C(512) << 20;

/* FLOPs up to which tensor cores save nothing: for thin images, for 1x1 convolutions, and for 1x1 convolutions that cannot be channels last;
 * and the GEMM depth of thin images, and the channels of a 1x1 convolution, below which memory is the bound whatever computes them. */
enum {
    SMALL_THIN = 100000000,
    THIN_DEPTH = 32,
    SMALL_POINTWISE = 25000000,
    ROW_POINTWISE = 45000000,
    FEW_POINTWISE = 64
};

/* 1x1 convolutions of few channels: FLOPs above which, in tf32, those with at least EXPANSION times as many filters as channels are faster
 * channels last; and outputs from which cuBLAS is worth rounding operands to 16 bits. Other convolutions so large are channels last anyway. */
enum { LARGE_EXPANSION = 200000000, EXPANSION = 4, LARGE_RESULTS = 1 << 22 };

/* pointwise-warps (1x1, fp32): FLOPs from which it has enough work, FLOPs above which the larger tiles of cuBLAS are
 * faster, and the number of filters from which it is chosen above that limit, too, where planes are whole quads. */
enum { WARPS_LEAST = 100000000, WARPS_LARGE = 1400000000, WARPS_MANY_FILTERS = 256 };

/* ---- row-major ---- */

static bool suits_warps(const sdlf_calculator *calculator, const sdlf_operation *op, const cuda_conv2d *g)
{
    int64_t flops = 2 * sdlf_tensor_count(&op->out[0]) * g->channels;
    bool quads = g->height * g->width % 4 == 0;
    bool large = flops >= WARPS_LEAST && (flops <= WARPS_LARGE || (quads && g->filters >= WARPS_MANY_FILTERS));
    return large && cuda_pointwise_warps_takes(calculator, op);
}

/* Algorithm of a 1x1 convolution: the pointwise kernel, whose warps share sums, where outputs are few; else cuBLAS, which has tensor
 * cores for doubles and larger tiles, even with its extra pass for bias and activation. AUTO: it is not a 1x1 convolution. */
static int pointwise_forward_algorithm(const sdlf_calculator *calculator, const sdlf_operation *op,
                                       const cuda_conv2d *g)
{
    if (!cuda_pointwise_takes(calculator, op)) return AUTO;
    if (suits_warps(calculator, op, g)) return POINTWISE_WARPS;
    if (!cuda_is_pointwise(g) || !cuda_conv2d_takes(calculator, op, TWO_STEP)) return POINTWISE; /* a stride */
    int64_t results = sdlf_tensor_count(&op->out[0]);
    bool few = op->out[0].dtype == SDLF_FLOAT32 ? results <= 1 << 19 : results <= 1 << 14 && g->channels <= 640;
    return few ? POINTWISE : TWO_STEP;
}

bool cuda_pointwise_is_small(int64_t channels, int64_t flops)
{
    return flops <= SMALL_POINTWISE || channels < FEW_POINTWISE;
}

/* In modes with tensor cores, of row-major operands: true if the kernels without tensor cores are as fast. They are for
 * 1x1 convolutions of up to `pointwise` FLOPs. */
static bool is_small(const sdlf_calculator *calculator, const sdlf_operation *op, const cuda_conv2d *g,
                     int64_t pointwise)
{
    bool thin = g->channels <= HALO_THIN && cuda_stem_takes(calculator, op);
    if (!thin && !cuda_pointwise_takes(calculator, op)) return false;
    int64_t depth = g->group_channels * g->window.size[0] * g->window.size[1];
    int64_t flops = 2 * sdlf_tensor_count(&op->out[0]) * depth;
    if (thin) return flops <= SMALL_THIN || depth < THIN_DEPTH || g->filters <= STEM_FILTERS;
    return flops <= pointwise || cuda_pointwise_is_small(g->channels, flops);
}

/* Forward algorithm in IEEE single or double precision (where tensor cores round the operands, implicit GEMM is faster
 * except for few filters and small problems); AUTO: none of these. */
static int exact_forward(const sdlf_calculator *calculator, const sdlf_operation *op, const cuda_conv2d *g, bool exact)
{
    int64_t depth = g->group_channels * g->window.size[0] * g->window.size[1];
    int64_t pixels = g->batch * g->out_height * g->out_width;
    bool suits = exact || is_small(calculator, op, g, ROW_POINTWISE);
    if (cuda_stem_takes(calculator, op) && (g->filters <= STEM_FILTERS || (suits && depth <= STEM_DEPTH))) return STEM;
    if (!suits) return AUTO;
    int algorithm = pointwise_forward_algorithm(calculator, op, g);
    bool moves = algorithm == TWO_STEP && cuda_has_operands16(((const cuda_calculator *)calculator)->math) &&
                 sdlf_tensor_count(&op->out[0]) < LARGE_RESULTS;
    if (!exact) return moves ? AUTO : algorithm; /* rounding both operands first would move them three times */
    if (algorithm != AUTO) return algorithm;
    if (cuda_winograd_2_takes(calculator, op) && g->channels >= 16 && g->filters >= 16) {
        bool fused = cuda_winograd_fused_takes(calculator, op) && !cuda_winograd_prefers_steps(op);
        return fused ? WINOGRAD_FUSED : WINOGRAD_2;
    }
    bool single = op->out[0].dtype == SDLF_FLOAT32;
    if (single && g->groups == 1 && pixels <= 1024 && depth >= 4096 && cuda_conv2d_takes(calculator, op, TWO_STEP))
        return TWO_STEP;
    return AUTO;
}

/* ---- the rule ---- */

/* Channels last: implicit-gemm in 16-bit storage, and in tf32 where the engine is faster (conv2d_is_nhwc); else depthwise
 * where every group has one channel, stem where 3x3 windows have up to 3 channels, halo-16bit where it is supported, else
 * halo. Channels last is preferred unless the convolution is small (below), and in tf32 above 200 MFLOP with four times
 * as many filters as channels.
 *
 * Row-major, in this order:
 *   depthwise      several groups of one channel with up to 4 filters: each element is used little more than R S times, so
 *                  memory is the bound, and a GEMM would have only that many rows
 *   stem           forward, up to 3 filters, or, in fp32 and float64, a GEMM depth of up to 160: there is little arithmetic,
 *                  and it matters that the image is loaded once. In every mode where convolutions of up to 4 channels have
 *                  100 MFLOP at most, or a GEMM depth of less than 32
 *   pointwise-warps 1x1 forward in fp32 with stride 1: suits_warps, above
 *   pointwise      1x1 forward in fp32 and float64: up to 2^19 outputs (float64: 2^14, depth 640), or a stride; for more
 *                  outputs two-step, which then needs no im2col. In every mode up to 45 MFLOP, or with fewer than 64
 *                  channels (but two-step in fp16 and bf16 from 2^22 outputs on). Gradients of these in every mode: cuBLAS
 *                  reads both operands with vectorised loads, implicit GEMM one element a lane
 *   winograd-2x2   3x3 forward in fp32 with stride 1 and 16 or more channels and filters: 2.25 times fewer multiplications,
 *                  and about as exact as the others
 *   two-step       forward in fp32 with up to 1024 pixels and a depth of 4096 or more: a small im2col, then a long-K GEMM
 *   implicit-gemm  everything else, down to the smallest: it has tiles for few filters, splits a long K, stores no im2col
 *                  matrix, and fuses bias, residual and activation into its epilogue
 *   two-step       windows with R + S > 31, which implicit-gemm does not support, such as patch embeddings of transformers
 *   direct         sizes that exceed the index ranges of all others, or whose im2col would need more than 512 MiB */
int conv2d_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_is_nhwc(calculator, op)) return CUDA_CONV2D_IMPLICIT;
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_operation_is_channels_last(op)) {
        if (g.group_channels == 1 && g.groups > 1) return DEPTHWISE;
        return cuda_stem_tensor_takes(calculator, op) ? STEM : cuda_halo16_takes(calculator, op) ? HALO16 : HALO;
    }
    if (g.groups > 1 && g.group_filters <= 4 && cuda_conv2d_takes(calculator, op, DEPTHWISE)) return DEPTHWISE;
    if (op->kind != SDLF_CONV2D_FORWARD && cuda_conv2d_takes(calculator, op, POINTWISE)) return POINTWISE;
    bool exact = op->out[0].dtype == SDLF_FLOAT64 || ((const cuda_calculator *)calculator)->math == SDLF_MATH_FP32;
    int chosen = op->kind == SDLF_CONV2D_FORWARD ? exact_forward(calculator, op, &g, exact) : AUTO;
    if (chosen != AUTO) return chosen;
    if (cuda_conv2d_takes(calculator, op, IMPLICIT)) return IMPLICIT;
    const bool fits =
        cuda_conv2d_takes(calculator, op, TWO_STEP) && conv2d_two_step_workspace_cuda(calculator, op) <= MOST_COLUMNS;
    return fits ? TWO_STEP : DIRECT;
}

/* True where there is a tensor-core kernel and it saves time. Depthwise convolutions, which are slower channels last,
 * and small convolutions keep the layout of their input. */
bool conv2d_prefers_channels_last_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    sdlf_operation nhwc = sdlf_operation_channels_last(op);
    const bool by_engine = conv2d_is_nhwc(calculator, &nhwc) && conv2d_supports_nhwc(calculator, &nhwc);
    if (op->kind == SDLF_CONV2D_BACKWARD_INPUT) return by_engine;
    bool wanted = op->algorithm == HALO || op->algorithm == HALO16;
    if ((op->algorithm != AUTO && !wanted) || !(by_engine || cuda_halo_takes(calculator, &nhwc))) return false;
    cuda_conv2d g = cuda_conv2d_geometry(op);
    bool expands = cuda_is_pointwise(&g) && g.filters >= EXPANSION * g.channels &&
                   sdlf_operation_cost(op).flops > LARGE_EXPANSION &&
                   ((const cuda_calculator *)calculator)->math == SDLF_MATH_TF32;
    return wanted || expands || !is_small(calculator, op, &g, SMALL_POINTWISE);
}
