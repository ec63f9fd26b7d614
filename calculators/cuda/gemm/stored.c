/* SPDX-License-Identifier: MIT */
/* GEMMs of rows in 16-bit storage: m rows of k elements are treated as a line of m pixels with k channels, and multiplied by the engine's
 * 1x1 convolution, with bias, residual and activation in its epilogue. */
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/gemm/gemm.h"

static engine_conv2d convolution_of(const sdlf_operation *op)
{
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    return (engine_conv2d){
        .dtype = op->in[0].dtype,
        .n = 1,
        .h = 1,
        .w = s.m,
        .c = s.k,
        .k = s.n,
        .p = 1,
        .q = s.m,
        .r = 1,
        .s = 1,
        .stride = {1, 1},
        .dilation = {1, 1},
        .bias = op->in[2].data,
        .residual = op->in[3].data,
        .activation = op->gemm.activation,
        .x = op->in[0].data,
        .y = op->out[0].data,
        .by_channels = !op->gemm.transpose_b,
    };
}

bool gemm_stored_takes(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const engine_conv2d conv = convolution_of(op);
    return !op->gemm.transpose_a && op->gemm.alpha == 1.0f && op->in[1].dtype == SDLF_FLOAT32 &&
           op->out[0].dtype == op->in[0].dtype && conv.c % 8 == 0 && engine_takes_forward(calculator, &conv);
}

/* Shapes and dtypes decide: where b is rounded, and how, does not depend on addresses. */
bool gemm_stored_takes_cublas(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor *a = &op->in[0], *b = &op->in[1];
    const bool both = b->dtype == a->dtype;
    const bool rounds = b->dtype == SDLF_FLOAT32 && calculator->math == cuda_math_of_storage(a->dtype);
    return engine_is_there(calculator) && (both || rounds) && op->out[0].dtype == SDLF_FLOAT32 &&
           !sdlf_tensor_present(&op->in[3]) && a->shape.dim[1] % 8 == 0 && (!both || b->shape.dim[1] % 8 == 0);
}

int64_t gemm_stored_prepared(const sdlf_operation *op)
{
    const engine_conv2d conv = convolution_of(op);
    return (engine_prepared(&conv) + 63) / 64 * 64;
}

int64_t gemm_stored_workspace(const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->prepared) ? 0 : gemm_stored_prepared(op);
}

sdlf_status gemm_stored_prepare(const cuda_calculator *calculator, const sdlf_operation *op, void *to)
{
    const engine_conv2d conv = convolution_of(op);
    return engine_prepare(calculator, &conv, op->in[1].data, to);
}

sdlf_status gemm_stored_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    engine_conv2d conv = convolution_of(op);
    sdlf_status status = SDLF_OK;
    conv.prepared = op->prepared.data;
    if (!sdlf_tensor_present(&op->prepared)) {
        conv.prepared = op->workspace.data;
        status = gemm_stored_prepare(calculator, op, op->workspace.data);
    }
    return status == SDLF_OK ? engine_forward(calculator, &conv) : status;
}
