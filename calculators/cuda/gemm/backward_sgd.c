/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: which way it takes. */
#include "calculators/cuda/gemm/backward_sgd.h"

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
    uintptr_t addresses = (uintptr_t)op->in[0].data | (uintptr_t)op->in[1].data | (uintptr_t)op->out[0].data |
                          (uintptr_t)op->out[1].data | (uintptr_t)op->out[2].data;
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

int64_t gemm_backward_sgd_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    return is_narrow(op) || suits_sweep(calculator, op) ? 0 : cuda_products_workspace(calculator, op);
}

static sdlf_status run_sweep(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (calculator->math != SDLF_MATH_FP32) return cuda_sweep_tensor(base, op);
    return cuda_sweep_fp32(base, op, suits_wide(calculator, op));
}

sdlf_status gemm_backward_sgd_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (is_narrow(op)) return cuda_sweep_narrow(base, op);
    return suits_sweep(calculator, op) ? run_sweep(base, op) : cuda_products(base, op);
}
