/* SPDX-License-Identifier: MIT */
/* The convolution that "auto" takes, and whether it likes channels last. docs/reference/cuda-algorithms.md has the rule for users. */
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

/* Numbers of a sum up to which stem is taken. */
enum { STEM_DEPTH = 160 };

/* Bytes of patches as a matrix, of one image where it is large, that are worth a product by cuBLAS. */
static const int64_t MOST_COLUMNS = INT64_C(512) << 20;

/* FLOPs up to which tensor cores save nothing: of thin images, of 1x1 convolutions, and of these where they cannot have channels last; and
 * numbers of a thin image's sum, and channels of a 1x1 convolution, below which these are bound by memory whatever computes them. */
enum {
    SMALL_THIN = 100000000,
    THIN_DEPTH = 32,
    SMALL_POINTWISE = 25000000,
    ROW_POINTWISE = 45000000,
    FEW_POINTWISE = 64
};

/* 1x1 convolutions of few channels: FLOPs from which, in tf32, those into four times as many are faster as patches, and results from which
 * cuBLAS is worth the rounding of its operands to 16 bits. Other convolutions so large are patches anyway. */
enum { LARGE_EXPANSION = 200000000, EXPANSION = 4, LARGE_RESULTS = 1 << 22 };

/* 1x1 convolutions by warps that read the image themselves, in fp32: FLOPs from which these have enough to do, and above which cuBLAS's
 * larger tiles save more, but with so many filters where lines are whole quads. */
enum { WARPS_LEAST = 100000000, WARPS_LARGE = 1400000000, WARPS_MANY_FILTERS = 256 };

/* ---- row-major ---- */

static bool suits_warps(const sdlf_calculator *calculator, const sdlf_operation *op, const cuda_conv2d *g)
{
    int64_t flops = 2 * sdlf_tensor_count(&op->out[0]) * g->channels;
    bool quads = g->height * g->width % 4 == 0;
    bool large = flops >= WARPS_LEAST && (flops <= WARPS_LARGE || (quads && g->filters >= WARPS_MANY_FILTERS));
    return large && cuda_pointwise_warps_takes(calculator, op);
}

/* A 1x1 convolution: by the kernel whose warps share sums where results are few, else by cuBLAS, which has tensor cores for
 * doubles and larger tiles; a pass more for bias and activation counted. AUTO: it is none. */
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

/* In modes with tensor cores, of row-major operands: are the kernels without them as fast? 1x1 convolutions of up to `pointwise`
 * FLOPs are. */
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

/* Forward, in IEEE single or double precision (where tensor cores round the operands, implicit GEMM is faster but for single
 * filters and small problems); AUTO: none of these. */
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
 * where groups are channels, stem where 3x3 windows have up to 3, halo-16bit where it takes them, else halo. Liked for
 * what is not small (below), and in tf32 for more than 200 MFLOP with four times as many filters as channels.
 *
 * Row-major, in this order:
 *   depthwise      several groups of one channel with up to 4 filters: each number is used R S times or little more, so
 *                  that memory decides, and products would be of matrices with that many rows
 *   stem           forward, up to 3 filters, or, in fp32 and float64, sums of up to 160: there is next to no product, and
 *                  what counts is that the image comes once. In every mode where up to 4 channels are 100 MFLOP at most, or
 *                  sums are of less than 32 numbers
 *   pointwise-warps 1x1 forward in fp32 without a stride: suits_warps, above
 *   pointwise      1x1 forward in fp32 and float64: up to 2^19 results (float64: 2^14, sums of 640), or a stride; two-step,
 *                  which needs no columns then, for more. In every mode where it is 45 MFLOP at most, or has less than 64
 *                  channels (but two-step in fp16 and bf16 from 2^22 results on). Gradients of these in every mode: cuBLAS
 *                  reads both operands in wide steps, which implicit GEMM, one number a lane, does not
 *   winograd-2x2   3x3 forward in fp32 with stride 1 and 16 channels and filters or more: 2.25 times fewer multiplications,
 *                  and about as exact as the others
 *   two-step       forward in fp32 with up to 1024 pixels and sums of 4096 or more: columns are few, and what is left is a
 *                  plain product with a long sum
 *   implicit-gemm  everything else, down to the smallest: it has tiles for few filters, cuts long sums into parts, needs
 *                  no columns in memory, and adds bias, residual and activation on the way out
 *   two-step       windows of more than 31 rows and columns together, which implicit-gemm does not take, such as patches of a transformer
 *   direct         sizes that none of the others can count, or whose columns would take more than 512 MiB */
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

/* Where there is a kernel for tensor cores, and these save something. Depthwise convolutions, which are slower so, and small ones
 * follow what they find. */
bool conv2d_likes_channels_last_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
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
