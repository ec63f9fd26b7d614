/* SPDX-License-Identifier: MIT */
/* Which convolutions and GEMMs the cuda calculator wants in a storage type (sdlf_calculator_storage): those for which the engine is faster. */
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/fusions/gemm_backward_sgd.h"

/* Inference: the FLOPs of a 1x1 convolution, and the number of images of any other, from which on the engine is worthwhile; and the number of
 * images for 3x3 convolutions of many channels over wide images. Below it, kernels that keep a halo tile in shared memory and split the
 * reduction over 8 blocks are faster (measured on an H200). */
enum { LEAST_FLOPS_1X1 = 50000000, LEAST_IMAGES = 4, LEAST_WIDE_IMAGES = 8, WIDE = 56, MANY_CHANNELS = 64 };

static bool suits_inference(const sdlf_operation *op)
{
    const int64_t *w = op->in[1].shape.dim, images = op->in[0].shape.dim[0];
    if (op->kind != SDLF_CONV2D_FORWARD) return images >= LEAST_IMAGES;
    if (w[2] * w[3] == 1) return sdlf_operation_cost(op).flops >= LEAST_FLOPS_1X1;
    const bool halo = w[2] * w[3] == 9 && op->conv2d.window.stride[0] == 1 && op->conv2d.groups == 1;
    const bool wide = op->out[0].shape.dim[3] >= WIDE && op->in[0].shape.dim[1] >= MANY_CHANNELS;
    return images >= (halo && wide ? LEAST_WIDE_IMAGES : LEAST_IMAGES);
}

/* Number of rows of a GEMM from which on the engine is faster than cuBLAS's GEMM of float32 rows (measured on an H200). */
enum { LEAST_ROWS = 128, LEAST_TRAINING_ROWS = 512 };

/* True for a GEMM of rows that 16-bit storage makes faster. In training, where weights are rounded in every step, it needs more of them, and the
 * weights' gradient is a GEMM over the rows. */
static bool suits_rows(const sdlf_operation *op, bool training)
{
    if (op->kind == SDLF_ATTENTION_FORWARD || op->kind == SDLF_ATTENTION_BACKWARD) return true;
    const int64_t rows = op->in[0].shape.dim[0];
    const bool product =
        op->kind == SDLF_GEMM || (op->kind == SDLF_FUSED && op->fused.fusion == &sdlf_gemm_backward_sgd_fusion);
    return product && rows >= (training ? LEAST_TRAINING_ROWS : LEAST_ROWS);
}

sdlf_dtype storage_cuda(const sdlf_calculator *base, const sdlf_operation *op, bool training)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const bool images = sdlf_operation_type(op)->channels_last != 0;
    if (!engine_is_there(calculator) || (!images && !suits_rows(op, training))) return SDLF_NONE;
    if (images && !training && !suits_inference(op)) return SDLF_NONE;
    switch (calculator->math) {
    case SDLF_MATH_BF16: return SDLF_BFLOAT16;
    case SDLF_MATH_FP16: return SDLF_FLOAT16;
    case SDLF_MATH_TF32: return training ? SDLF_FLOAT32 : SDLF_NONE;
    default: return SDLF_NONE;
    }
}
