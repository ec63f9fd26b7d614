/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd of large batches, whose products take longer than the weights' way through memory (gemm/backward_sgd.h):
 *
 *   dx = dy w, then times the slope of the activation before it;   v = momentum v + dy^T x, where the product adds to the
 *   velocity itself, so that no gradient is stored;   then w and v move on
 *
 * Moves w three times and v four times. In fp16 and bf16 x, dy and w are rounded once for both products, into the workspace. */
#include "calculators/cuda/gemm/backward_sgd.h"
#include "calculators/cuda/gemm/blas_product.h"
#include "calculators/cuda/gemm/factors.h"

/* x (N,I), dy (N,U) and w (U,I), as the products take them. */
typedef struct factors {
    const void *x, *dy, *w;
    bool rounded;
} factors;

static int64_t rounded_bytes(const sdlf_tensor *factor)
{
    return cuda_factor_bytes(factor->shape.dim[0], factor->shape.dim[1]);
}

static bool rounds(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return cuda_has_half_factors(calculator->math) && op->out[0].dtype == SDLF_FLOAT32;
}

int64_t cuda_products_workspace(const cuda_calculator *calculator, const sdlf_operation *op)
{
    if (!rounds(calculator, op)) return 0;
    return rounded_bytes(&op->in[0]) + rounded_bytes(&op->in[1]) +
           (sdlf_tensor_present(&op->out[2]) ? rounded_bytes(&op->out[0]) : 0);
}

static sdlf_status make_factors(sdlf_calculator *base, const sdlf_operation *op, factors *made)
{
    *made = (factors){op->in[0].data, op->in[1].data, op->out[0].data, false};
    if (!rounds(cuda_calculator_from(base), op) || !sdlf_tensor_present(&op->workspace)) return SDLF_OK;
    const sdlf_tensor *from[] = {&op->in[0], &op->in[1], &op->out[0]};
    cuda_factor factor[3];
    char *room = op->workspace.data;
    int count = sdlf_tensor_present(&op->out[2]) ? 3 : 2;
    for (int i = 0; i < count; i++) {
        factor[i] = (cuda_factor){from[i]->data, room, from[i]->shape.dim[0], from[i]->shape.dim[1]};
        room += rounded_bytes(from[i]);
    }
    *made = (factors){factor[0].to, factor[1].to, count == 3 ? factor[2].to : NULL, true};
    return cuda_round_factors(base, factor, count);
}

static sdlf_status input_gradient(sdlf_calculator *base, const sdlf_operation *op, const factors *from)
{
    if (!sdlf_tensor_present(&op->out[2])) return SDLF_OK;
    cuda_calculator *calculator = cuda_calculator_from(base);
    const cuda_blas_product product = {
        .m = op->in[1].shape.dim[0],
        .n = op->in[0].shape.dim[1],
        .k = op->in[1].shape.dim[1],
        .dtype = op->out[2].dtype,
        .math = calculator->math,
        .rounded = from->rounded,
        .a = from->dy,
        .b = from->w,
        .c = op->out[2].data,
        .alpha = 1,
    };
    sdlf_status status = cuda_blas_multiply(calculator, &product);
    if (status != SDLF_OK || op->gemm_backward.activation.function == SDLF_IDENTITY) return status;
    const sdlf_operation slope = {.kind = SDLF_ACTIVATION_BACKWARD,
                                  .in = {op->in[0], op->out[2]},
                                  .out = {op->out[2]},
                                  .activation = op->gemm_backward.activation};
    return activation_backward_cuda(base, &slope);
}

/* v = momentum v + dy^T x */
static sdlf_status velocity(sdlf_calculator *base, const sdlf_operation *op, const factors *from)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    const cuda_blas_product product = {
        .m = op->in[1].shape.dim[1],
        .n = op->in[0].shape.dim[1],
        .k = op->in[0].shape.dim[0],
        .dtype = op->out[1].dtype,
        .math = calculator->math,
        .rounded = from->rounded,
        .transpose_a = true,
        .a = from->dy,
        .b = from->x,
        .residual = op->out[1].data,
        .c = op->out[1].data,
        .alpha = 1,
        .beta = op->gemm_backward.sgd.momentum,
    };
    return cuda_blas_multiply(calculator, &product);
}

sdlf_status cuda_products(sdlf_calculator *base, const sdlf_operation *op)
{
    factors made;
    sdlf_status status = make_factors(base, op, &made);
    if (status == SDLF_OK) status = input_gradient(base, op, &made);
    if (status == SDLF_OK) status = velocity(base, op, &made);
    if (status == SDLF_OK) status = cuda_follow_velocity(base, op);
    return status == SDLF_OK ? cuda_move_biases(base, op) : status;
}
