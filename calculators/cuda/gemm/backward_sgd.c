/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: the choice of algorithm; and the algorithm for large batches, whose GEMMs take longer than the memory traffic
 * of the weights (gemm/backward_sgd.h):
 *
 * dx = dy w, then times the slope of the preceding activation;   v = momentum v + dy^T x, where the GEMM accumulates into
 * the velocity itself, so that no gradient is stored;   then w and v are updated
 *
 * Moves w three times and v four times. In fp16 and bf16 x, dy and w are rounded once for both GEMMs, into the workspace. Partial sums of
 * the biases' gradient follow there, at a multiple of 256 bytes.
 *
 * x, dy and dx in 16-bit storage: GEMMs whatever the batch; only w is rounded, and dx is written in 16 bits. */
#include "calculators/cuda/gemm/backward_sgd.h"
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/gemm/blas.h"
#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/cuda/gemm/gemm.h"

/* x (N,I), dy (N,U) and w (U,I), as operands of the GEMMs. */
typedef struct operands {
    const void *x, *dy, *w;
    bool rounded;
} operands;

static int64_t rounded_bytes(const sdlf_tensor *operand)
{
    return cuda_operand16_bytes(operand->shape.dim[0], operand->shape.dim[1]);
}

static bool rounds(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return cuda_has_operands16(calculator->math) && op->out[0].dtype == SDLF_FLOAT32;
}

static bool is_stored(const sdlf_operation *op)
{
    return sdlf_operation_storage(op) != SDLF_NONE;
}

/* The operands to round, of x, dy and w; returns their number. Only dx needs w. */
static int unrounded(const sdlf_operation *op, const sdlf_tensor **operand)
{
    int count = 0;
    if (!is_stored(op)) operand[count++] = &op->in[0];
    if (!is_stored(op)) operand[count++] = &op->in[1];
    if (sdlf_tensor_present(&op->out[2])) operand[count++] = &op->out[0];
    return count;
}

static int64_t operands_bytes(const cuda_calculator *calculator, const sdlf_operation *op)
{
    if (!rounds(calculator, op)) return 0;
    const sdlf_tensor *from[CUDA_MOST_OPERANDS16];
    int64_t bytes = 0;
    for (int i = 0, count = unrounded(op, from); i < count; i++) bytes += rounded_bytes(from[i]);
    return (bytes + 255) / 256 * 256;
}

int64_t cuda_products_workspace(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return operands_bytes(calculator, op) + cuda_move_biases_workspace(calculator, op);
}

static sdlf_status make_operands(sdlf_calculator *base, const sdlf_operation *op, operands *made)
{
    *made = (operands){op->in[0].data, op->in[1].data, op->out[0].data, is_stored(op)};
    if (!rounds(cuda_calculator_from(base), op) || !sdlf_tensor_present(&op->workspace)) return SDLF_OK;
    const sdlf_tensor *from[CUDA_MOST_OPERANDS16];
    cuda_operand16 operand[CUDA_MOST_OPERANDS16];
    char *room = op->workspace.data;
    const int count = unrounded(op, from);
    for (int i = 0; i < count; i++) {
        operand[i] = (cuda_operand16){from[i]->data, room, from[i]->shape.dim[0], from[i]->shape.dim[1]};
        room += rounded_bytes(from[i]);
        if (from[i] == &op->in[0]) made->x = operand[i].to;
        if (from[i] == &op->in[1]) made->dy = operand[i].to;
        if (from[i] == &op->out[0]) made->w = operand[i].to;
    }
    made->rounded = true;
    return cuda_convert_operands(base, operand, count);
}

static sdlf_status input_gradient(sdlf_calculator *base, const sdlf_operation *op, const operands *from)
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
    if (status != SDLF_OK || gemm_backward_sgd_options_of(op)->activation.function == SDLF_IDENTITY) return status;
    const sdlf_operation slope = {.kind = SDLF_ACTIVATION_BACKWARD,
                                  .in = {op->in[0], op->out[2]},
                                  .out = {op->out[2]},
                                  .activation = gemm_backward_sgd_options_of(op)->activation};
    return activation_backward_cuda(base, &slope);
}

/* v = momentum v + dy^T x */
static sdlf_status velocity(sdlf_calculator *base, const sdlf_operation *op, const operands *from)
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
        .beta = gemm_backward_sgd_options_of(op)->sgd.momentum,
    };
    return cuda_blas_multiply(calculator, &product);
}

sdlf_status cuda_products(sdlf_calculator *base, const sdlf_operation *op)
{
    char *room = sdlf_tensor_present(&op->workspace) ? op->workspace.data : NULL;
    if (room != NULL) room += operands_bytes(cuda_calculator_from(base), op);
    operands made;
    sdlf_status status = make_operands(base, op, &made);
    if (status == SDLF_OK) status = input_gradient(base, op, &made);
    if (status == SDLF_OK) status = velocity(base, op, &made);
    if (status == SDLF_OK) status = cuda_follow_velocity(base, op);
    return status == SDLF_OK ? cuda_move_biases(base, op, room) : status;
}

static bool fits_int(const sdlf_operation *op)
{
    return op->in[0].shape.dim[0] <= INT32_MAX && op->in[0].shape.dim[1] <= INT32_MAX &&
           op->in[1].shape.dim[1] <= INT32_MAX;
}

static bool is_narrow(const sdlf_operation *op)
{
    return !is_stored(op) && op->out[0].dtype == SDLF_FLOAT32 && op->out[0].shape.dim[0] <= NARROW_MOST_UNITS &&
           fits_int(op);
}

/* One pass and GEMMs require a velocity, and no Nesterov momentum, which needs the gradient itself. */
static bool is_for_velocity(const sdlf_operation *op)
{
    return fits_int(op) && sdlf_tensor_present(&op->out[1]) && !gemm_backward_sgd_options_of(op)->sgd.nesterov;
}

/* cuBLAS reads x and dy, and writes dx, as they are stored: in the type of the mode, in which w is rounded. */
static bool takes_stored(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return engine_is_there(calculator) && calculator->math == cuda_math_of_storage(op->in[0].dtype) &&
           op->in[0].shape.dim[1] % 8 == 0 && op->in[1].shape.dim[1] % 8 == 0;
}

bool gemm_backward_sgd_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    bool empty = sdlf_tensor_count(&op->in[0]) == 0 || sdlf_tensor_count(&op->in[1]) == 0;
    if (is_stored(op) && !takes_stored((const cuda_calculator *)calculator, op)) return false;
    return !empty && (is_narrow(op) || is_for_velocity(op));
}

/* True if one pass is faster than GEMMs. Depends on sizes only, since the workspace size depends on it. */
static bool suits_one_pass(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int64_t rows = op->in[0].shape.dim[0], inputs = op->in[0].shape.dim[1], units = op->in[1].shape.dim[1];
    bool tensor_cores = cuda_has_tensor_cores(calculator);
    return !is_stored(op) && op->out[0].dtype == SDLF_FLOAT32 && is_for_velocity(op) && rows <= ONE_PASS_MOST_ROWS &&
           inputs % 4 == 0 && units % 4 == 0 && (calculator->math == SDLF_MATH_FP32 || tensor_cores) &&
           calculator->shared_most >= (rows > 64 ? 150 : 90) << 10;
}

/* True if its 16-byte loads are possible. */
static bool is_aligned(const sdlf_operation *op)
{
    uintptr_t addresses = (uintptr_t)op->in[0].data | (uintptr_t)op->in[1].data | (uintptr_t)op->out[0].data |
                          (uintptr_t)op->out[1].data | (uintptr_t)op->out[2].data;
    return addresses % 16 == 0;
}

/* Wide strips if there are enough of them to occupy most of the device, and if a block may use that much shared memory. */
static bool suits_wide(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return op->in[0].shape.dim[1] >= 40 * (int64_t)calculator->multiprocessors && calculator->shared_most >= 215 << 10;
}

int64_t gemm_backward_sgd_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    return is_narrow(op) || suits_one_pass(calculator, op) ? 0 : cuda_products_workspace(calculator, op);
}

static sdlf_status run_backward_sgd(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (calculator->math != SDLF_MATH_FP32) return cuda_backward_sgd_tensor(base, op);
    return cuda_backward_sgd_fp32(base, op, suits_wide(calculator, op));
}

sdlf_status gemm_backward_sgd_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (is_narrow(op)) return cuda_backward_sgd_narrow(base, op);
    return suits_one_pass(calculator, op) && is_aligned(op) ? run_backward_sgd(base, op) : cuda_products(base, op);
}
