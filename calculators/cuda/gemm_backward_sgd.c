/* gemm_backward_sgd: which way it takes, and the way of large batches: dx = dy w; v = momentum v + dy^T x, where the product
 * adds to the velocity itself, so that no gradient is stored; then w and v move on. Moves w three times and v four times. */
#include "calculators/cuda/gemm_backward_sgd.h"

#include "calculators/cuda/gemm.h"

static bool fits_int(const sdlf_operation *op)
{
    return op->in[0].shape.dim[0] <= INT32_MAX && op->in[0].shape.dim[1] <= INT32_MAX &&
           op->in[1].shape.dim[1] <= INT32_MAX;
}

static bool is_narrow(const sdlf_operation *op)
{
    return op->out[0].dtype == SDLF_FLOAT32 && op->out[0].shape.dim[0] <= NARROW_MOST_UNITS && fits_int(op);
}

/* Sweeps and products take these: with a velocity, and not Nesterov's rule, which needs the gradient itself. */
static bool is_for_velocity(const sdlf_operation *op)
{
    return fits_int(op) && sdlf_tensor_present(&op->out[1]) && !op->gemm_backward.sgd.nesterov;
}

bool gemm_backward_sgd_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    bool empty = sdlf_tensor_count(&op->in[0]) == 0 || sdlf_tensor_count(&op->in[1]) == 0;
    return !empty && (is_narrow(op) || is_for_velocity(op));
}

/* Will a sweep take less time than products, and are its copies of 16 bytes possible? */
static bool suits_sweep(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int64_t rows = op->in[0].shape.dim[0], inputs = op->in[0].shape.dim[1], units = op->in[1].shape.dim[1];
    uintptr_t addresses = (uintptr_t)op->in[1].data | (uintptr_t)op->out[0].data | (uintptr_t)op->out[1].data;
    bool tensor_cores = cuda_has_tensor_cores(calculator);
    return op->out[0].dtype == SDLF_FLOAT32 && is_for_velocity(op) && rows <= SWEEP_MOST_ROWS && inputs % 4 == 0 &&
           units % 4 == 0 && addresses % 16 == 0 && (calculator->math == SDLF_MATH_FP32 || tensor_cores) &&
           calculator->shared_most >= (rows > 64 ? 150 : 90) << 10;
}

/* Wide strips where these are enough to keep most of the device busy, and where a block may have that much memory. */
static bool suits_wide(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return op->in[0].shape.dim[1] >= 40 * (int64_t)calculator->multiprocessors && calculator->shared_most >= 215 << 10;
}

static sdlf_status input_gradient(sdlf_calculator *base, const sdlf_operation *op)
{
    if (!sdlf_tensor_present(&op->out[2])) return SDLF_OK;
    const sdlf_operation product = {
        .kind = SDLF_GEMM, .in = {op->in[1], op->out[0]}, .out = {op->out[2]}, .gemm = {.alpha = 1}};
    sdlf_status status = gemm_cuda(base, &product);
    if (status != SDLF_OK || op->gemm_backward.activation.function == SDLF_IDENTITY) return status;
    const sdlf_operation slope = {.kind = SDLF_ACTIVATION_BACKWARD,
                                  .in = {op->in[0], op->out[2]},
                                  .out = {op->out[2]},
                                  .activation = op->gemm_backward.activation};
    return activation_backward_cuda(base, &slope);
}

/* v = momentum v + dy^T x */
static sdlf_status velocity(sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_operation product = {.kind = SDLF_GEMM,
                                    .in = {op->in[1], op->in[0], {.dtype = SDLF_NONE}, op->out[1]},
                                    .out = {op->out[1]},
                                    .gemm = {.transpose_a = true, .alpha = 1}};
    return cuda_gemm_accumulate(base, &product, op->gemm_backward.sgd.momentum);
}

static sdlf_status by_products(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_status status = input_gradient(base, op);
    if (status == SDLF_OK) status = velocity(base, op);
    if (status == SDLF_OK) status = cuda_follow_velocity(base, op);
    return status == SDLF_OK ? cuda_move_biases(base, op) : status;
}

sdlf_status gemm_backward_sgd_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (is_narrow(op)) return cuda_sweep_narrow(base, op);
    if (!suits_sweep(calculator, op)) return by_products(base, op);
    bool wide = suits_wide(calculator, op);
    return calculator->math == SDLF_MATH_FP32 ? cuda_sweep_fp32(base, op, wide) : cuda_sweep_tensor(base, op, wide);
}
