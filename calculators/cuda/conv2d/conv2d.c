/* SPDX-License-Identifier: MIT */
/* The convolution slots: the table of algorithms, and what each supports. The rule of "auto" is in conv2d/automatic.c. */
#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/halo.h"
#include "calculators/cuda/conv2d/halo16.h"
#include "calculators/cuda/conv2d/implicit.h"
#include "calculators/cuda/conv2d/pointwise.h"
#include "calculators/cuda/conv2d/pointwise_warps.h"
#include "calculators/cuda/conv2d/stem.h"
#include "calculators/cuda/conv2d/winograd.h"
#include "calculators/cuda/nhwc/nhwc.h"

/* ---- what each takes ---- */

/* cuBLAS takes sizes as int. */
static bool takes_products(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    return w->shape.dim[0] <= INT32_MAX && sdlf_shape_span(w->shape, 1, 4) <= INT32_MAX &&
           sdlf_shape_span(y->shape, 2, 4) <= INT32_MAX && y->shape.dim[0] <= INT32_MAX;
}

/* True if cuBLAS can compute it, or, forward, the kernel of conv2d/pointwise.cu. */
static bool takes_pointwise(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    return cuda_pointwise_takes(calculator, op) || (cuda_is_pointwise(&g) && takes_products(calculator, op));
}

static sdlf_status pointwise_forward(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_pointwise_takes(calculator, op) ? conv2d_pointwise_cuda(calculator, op)
                                                : conv2d_forward_two_step_cuda(calculator, op);
}

static int64_t pointwise_workspace(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_pointwise_takes(calculator, op) ? 0 : conv2d_two_step_workspace_cuda(calculator, op);
}

static bool takes_implicit(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return cuda_implicit_takes(op);
}

/* Elements of a tensor, and blocks of backward weights, are counted in 32 bits. */
static bool takes_depthwise(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    return w->shape.dim[1] == 1 && cuda_implicit_counts(op) && w->shape.dim[0] <= INT32_MAX / 4096 &&
           sdlf_tensor_count(x) <= INT32_MAX && sdlf_tensor_count(y) <= INT32_MAX;
}

/* Forward only, one filter a channel. */
static bool takes_depthwise_nhwc(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor *w = &op->in[1];
    return op->kind == SDLF_CONV2D_FORWARD && w->shape.dim[0] == op->in[0].shape.dim[1] &&
           !sdlf_operation_is_mixed(op) && takes_depthwise(calculator, op);
}

static int64_t depthwise_nhwc_prepared(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return sdlf_operation_is_channels_last(op) ? sdlf_tensor_bytes(&op->in[1]) : 0;
}

static sdlf_status depthwise(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return sdlf_operation_is_channels_last(op) ? conv2d_depthwise_nhwc_cuda(calculator, op)
                                               : conv2d_depthwise_forward_cuda(calculator, op);
}

static sdlf_status stem(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return sdlf_operation_is_channels_last(op) ? conv2d_stem_tensor_cuda(calculator, op)
                                               : conv2d_stem_cuda(calculator, op);
}

static int64_t stem_prepared(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return sdlf_operation_is_channels_last(op) ? cuda_stem_tensor_prepared(op) : 0;
}

static const cuda_conv2d_algorithm algorithms[CUDA_CONV2D_ALGORITHMS] = {
    [CUDA_CONV2D_DIRECT] = {.forward = conv2d_forward_direct_cuda,
                            .backward_input = conv2d_backward_input_direct_cuda,
                            .backward_weights = conv2d_backward_weights_direct_cuda},
    [CUDA_CONV2D_TWO_STEP] = {.takes = takes_products,
                              .workspace = conv2d_two_step_workspace_cuda,
                              .forward = conv2d_forward_two_step_cuda,
                              .backward_input = conv2d_backward_input_two_step_cuda,
                              .backward_weights = conv2d_backward_weights_two_step_cuda,
                              .columns = true},
    [CUDA_CONV2D_POINTWISE] = {.takes = takes_pointwise,
                               .workspace = pointwise_workspace,
                               .forward = pointwise_forward,
                               .backward_input = conv2d_backward_input_two_step_cuda,
                               .backward_weights = conv2d_backward_weights_two_step_cuda},
    [CUDA_CONV2D_POINTWISE_WARPS] = {.takes = cuda_pointwise_warps_takes,
                                     .workspace = conv2d_pointwise_warps_workspace_cuda,
                                     .forward = conv2d_pointwise_warps_cuda,
                                     .prepared = cuda_pointwise_warps_prepared,
                                     .prepare = conv2d_pointwise_warps_prepare_cuda},
    [CUDA_CONV2D_IMPLICIT] = {.takes = takes_implicit,
                              .workspace = conv2d_implicit_workspace_cuda,
                              .forward = conv2d_implicit_cuda,
                              .backward_input = conv2d_implicit_cuda,
                              .backward_weights = conv2d_implicit_cuda},
    [CUDA_CONV2D_STEM] = {.takes = cuda_stem_takes,
                          .takes_nhwc = cuda_stem_tensor_takes,
                          .forward = stem,
                          .prepared = stem_prepared,
                          .prepare = conv2d_stem_tensor_prepare_cuda},
    [CUDA_CONV2D_DEPTHWISE] = {.takes = takes_depthwise,
                               .takes_nhwc = takes_depthwise_nhwc,
                               .workspace = conv2d_depthwise_workspace_cuda,
                               .forward = depthwise,
                               .backward_input = conv2d_depthwise_backward_input_cuda,
                               .backward_weights = conv2d_depthwise_backward_weights_cuda,
                               .prepared = depthwise_nhwc_prepared,
                               .prepare = conv2d_depthwise_nhwc_prepare_cuda},
    [CUDA_CONV2D_WINOGRAD_FUSED] = {.takes = cuda_winograd_fused_takes,
                                    .workspace = conv2d_winograd_fused_workspace_cuda,
                                    .forward = conv2d_winograd_fused_cuda,
                                    .prepared = conv2d_winograd_fused_prepared_cuda,
                                    .prepare = conv2d_winograd_fused_prepare_cuda,
                                    .winograd = 2},
    [CUDA_CONV2D_WINOGRAD_2] = {.takes = cuda_winograd_2_takes,
                                .workspace = conv2d_winograd_2_workspace_cuda,
                                .forward = conv2d_winograd_2_cuda,
                                .prepared = conv2d_winograd_2_prepared_cuda,
                                .prepare = conv2d_winograd_2_prepare_cuda,
                                .winograd = 2},
    [CUDA_CONV2D_HALO] = {.takes = cuda_halo_takes,
                          .takes_nhwc = cuda_halo_takes,
                          .workspace = conv2d_halo_workspace_cuda,
                          .forward = conv2d_halo_cuda,
                          .prepared = cuda_halo_prepared,
                          .prepare = conv2d_halo_prepare_cuda},
    [CUDA_CONV2D_HALO16] = {.takes = cuda_halo16_takes,
                            .takes_nhwc = cuda_halo16_takes,
                            .workspace = conv2d_halo_workspace_cuda,
                            .forward = conv2d_halo16_cuda,
                            .prepared = cuda_halo_prepared,
                            .prepare = conv2d_halo_prepare_cuda},
};

static sdlf_kernel *kernel_of(const cuda_conv2d_algorithm *algorithm, sdlf_operation_kind kind)
{
    switch (kind) {
    case SDLF_CONV2D_FORWARD: return algorithm->forward;
    case SDLF_CONV2D_BACKWARD_INPUT: return algorithm->backward_input;
    default: return algorithm->backward_weights;
    }
}

const cuda_conv2d_algorithm *cuda_conv2d_algorithm_of(int number)
{
    bool of_lab = number >= CUDA_CONV2D_LAB && number < CUDA_CONV2D_DIRECT;
    return of_lab ? lab_conv2d_algorithm(number - CUDA_CONV2D_LAB) : &algorithms[number];
}

static const cuda_conv2d_algorithm *chosen(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_conv2d_algorithm_of(op->algorithm == CUDA_CONV2D_AUTO ? conv2d_automatic_cuda(calculator, op)
                                                                      : op->algorithm);
}

/* ---- the slots ---- */

static bool is_taken(const cuda_conv2d_algorithm *by, const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return by->takes == NULL || by->takes(calculator, op);
}

bool cuda_conv2d_takes(const sdlf_calculator *calculator, const sdlf_operation *op, int algorithm)
{
    return is_taken(&algorithms[algorithm], calculator, op);
}

bool conv2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_is_nhwc(calculator, op)) return conv2d_supports_nhwc(calculator, op);
    if (op->kind == SDLF_CONV2D_BACKWARD_INPUT && sdlf_tensor_present(&op->in[2])) return false;
    const cuda_conv2d_algorithm *algorithm = chosen(calculator, op);
    if (kernel_of(algorithm, op->kind) == NULL) return false;
    if (sdlf_operation_is_channels_last(op))
        return algorithm->takes_nhwc != NULL && algorithm->takes_nhwc(calculator, op);
    return is_taken(algorithm, calculator, op);
}

int64_t conv2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_is_nhwc(calculator, op)) return conv2d_workspace_nhwc(calculator, op);
    const cuda_conv2d_algorithm *algorithm = chosen(calculator, op);
    return algorithm->workspace != NULL ? algorithm->workspace(calculator, op) : 0;
}

sdlf_status conv2d_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_is_nhwc(calculator, op)) return conv2d_nhwc(calculator, op);
    return kernel_of(chosen(calculator, op), op->kind)(calculator, op);
}

int64_t conv2d_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_is_nhwc(calculator, op)) return conv2d_prepared_nhwc(op);
    if (op->kind != SDLF_CONV2D_FORWARD) return 0;
    const cuda_conv2d_algorithm *algorithm = chosen(calculator, op);
    return algorithm->prepared != NULL ? algorithm->prepared(calculator, op) : 0;
}

sdlf_status conv2d_prepare_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_is_nhwc(calculator, op)) return conv2d_prepare_nhwc(calculator, op);
    return chosen(calculator, op)->prepare(calculator, op);
}
