/* SPDX-License-Identifier: MIT */
/* Algorithm selection for conv2d_forward, conv2d_backward_input, conv2d_backward_weights. Contracts: <sdlf/operation.h>. */
#include "calculators/cpu/conv2d_algorithms.h"
#include "calculators/cpu/kernels/conv2d_naive.h"
#include "calculators/cpu/kernels/conv2d_nhwc.h"
#include "calculators/cpu/kernels/conv2d_nhwc_backward.h"
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/kernels.h"

enum { AUTO = CPU_CONV2D_AUTO, DIRECT = CPU_CONV2D_DIRECT, IM2COL = CPU_CONV2D_IM2COL };

static bool is_depthwise(const convolution *v, int algorithm)
{
    return (algorithm == AUTO || algorithm == DIRECT) && depthwise_takes(v);
}

/* Algorithms that exist only for the forward pass. */
static bool is_forward_only(int algorithm)
{
    return algorithm == CPU_CONV2D_NAIVE || algorithm == CPU_CONV2D_IMPLICIT || cpu_conv2d_winograd(algorithm) != 0;
}

static bool is_direct(const convolution *v, int algorithm)
{
    if (algorithm == AUTO) return direct_takes_cpu(v) && direct_pays_cpu(v);
    return algorithm == DIRECT;
}

static bool is_direct_forward(const convolution *v, int algorithm)
{
    if (algorithm == AUTO) return direct_takes_cpu(v) && direct_pays_forward_cpu(v);
    return algorithm == DIRECT;
}

/* im2col supports every shape; direct, requested by name, must support this one. */
static bool supports(const convolution *v, int algorithm)
{
    if (is_forward_only(algorithm)) return false;
    return algorithm != DIRECT || direct_takes_cpu(v) || depthwise_takes(v);
}

static convolution of_operation(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *w)
{
    return convolution_make(x, w, &operation->conv2d.window, operation->conv2d.groups);
}

/* The algorithm that "auto" selects, for each of the three operations. */
int conv2d_automatic_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    bool forward = operation->kind == SDLF_CONV2D_FORWARD, input_needed = operation->kind == SDLF_CONV2D_BACKWARD_INPUT;
    convolution v = of_operation(operation, input_needed ? &operation->out[0] : &operation->in[0],
                                 forward || input_needed ? &operation->in[1] : &operation->out[0]);
    (void)calculator;
    if (forward && conv2d_is_nhwc_cpu(operation)) return conv2d_nhwc_automatic_cpu(operation, &v);
    if (sdlf_operation_is_channels_last(operation)) return CPU_CONV2D_AUTO;
    bool direct = forward ? is_direct_forward(&v, AUTO) : is_direct(&v, AUTO);
    return is_depthwise(&v, AUTO) || direct ? DIRECT : IM2COL;
}

/* ---- forward ---- */

/* NHWC does not pay for small one-channel images: x is NHWC already, and repacking y costs more than it gains. */
bool conv2d_prefers_channels_last_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->in[1]);
    (void)calculator;
    if (operation->algorithm != AUTO) return true; /* the other algorithms check their support themselves */
    return conv2d_nhwc_pays_cpu(&v) && !(v.c == 1 && direct_takes_cpu(&v));
}

/* Weights are repacked in every training step, and whenever they are not constant: that pays if each weight meets enough pixels. */
enum { LARGE_WEIGHTS = 1 << 18, LEAST_PIXELS = 128, LEAST_PIXELS_OF_LARGE = 512 };

static bool meets_pixels(const convolution *v, int64_t pixels)
{
    bool large = v->groups * v->k * v->taps >= LARGE_WEIGHTS;
    return v->n * pixels >= (large ? LEAST_PIXELS_OF_LARGE : LEAST_PIXELS);
}

/* The gradients: vectors run over the columns of the products, channels of dx and filters of dw. */
bool conv2d_backward_input_prefers_channels_last_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->out[0], &operation->in[1]);
    (void)calculator;
    return operation->algorithm == AUTO && (depthwise_takes(&v) ? v.groups : v.c) >= LANES &&
           (sdlf_tensor_present(&operation->prepared) || meets_pixels(&v, v.h * v.w));
}

bool conv2d_backward_weights_prefers_channels_last_cpu(const sdlf_calculator *calculator,
                                                       const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->out[0]);
    (void)calculator;
    return operation->algorithm == AUTO && (depthwise_takes(&v) ? v.groups : v.k) >= LANES && meets_pixels(&v, v.p_q);
}

/* The prepacked weights for NHWC activations. */
int64_t conv2d_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->in[1]);
    (void)calculator;
    return conv2d_nhwc_prepared_size_cpu(operation, &v) * (int64_t)sizeof(element);
}

sdlf_status conv2d_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->in[1]);
    conv2d_nhwc_prepare_cpu(cpu_from(calculator), operation, &v);
    return SDLF_OK;
}

int64_t conv2d_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->in[1]);
    if (conv2d_is_nhwc_cpu(operation)) return im2col_bytes_cpu(calculator, conv2d_nhwc_space_cpu(operation, &v));
    if (is_depthwise(&v, operation->algorithm) || operation->algorithm == CPU_CONV2D_NAIVE) return 0;
    bool direct = is_direct_forward(&v, operation->algorithm);
    return im2col_bytes_cpu(calculator, direct ? direct_forward_space_cpu(&v, NULL) : im2col_forward_space_cpu(&v));
}

bool conv2d_forward_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->in[1]);
    (void)calculator;
    if (conv2d_is_nhwc_cpu(operation)) return conv2d_nhwc_supports_cpu(operation, &v);
    return operation->algorithm == CPU_CONV2D_NAIVE || supports(&v, operation->algorithm);
}

/* The algorithm, and so the packing of the weights, may depend on the size of the image, which a plan with states changes. */
static sdlf_status check_prepared(const sdlf_operation *operation, int64_t bytes)
{
    if (!sdlf_tensor_present(&operation->prepared) || operation->prepared.shape.dim[0] == bytes) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "the weights were prepacked for images of another size");
}

sdlf_status conv2d_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_status status = check_prepared(operation, conv2d_prepared_cpu(calculator, operation));
    if (status != SDLF_OK) return status;
    convolution_forward forward = {.v = of_operation(operation, &operation->in[0], &operation->in[1]),
                                   .x = input(operation, 0),
                                   .w = input(operation, 1),
                                   .bias = input(operation, 2),
                                   .residual = input(operation, 3),
                                   .y = output(operation, 0),
                                   .activation = operation->conv2d.activation};
    if (conv2d_is_nhwc_cpu(operation)) {
        conv2d_nhwc_forward_cpu(cpu_from(calculator), operation, &forward);
    } else if (operation->algorithm == CPU_CONV2D_NAIVE) {
        conv2d_naive_forward_cpu(cpu_from(calculator), &forward);
    } else if (is_depthwise(&forward.v, operation->algorithm)) {
        depthwise_forward_cpu(cpu_from(calculator), &forward);
    } else if (is_direct_forward(&forward.v, operation->algorithm)) {
        direct_forward_cpu(cpu_from(calculator), &forward, NULL, operation->workspace.data);
    } else {
        im2col_forward_cpu(cpu_from(calculator), &forward, operation->workspace.data);
    }
    return SDLF_OK;
}

/* ---- input gradient ---- */

static convolution_backward input_gradient(const sdlf_operation *operation)
{
    return (convolution_backward){.v = of_operation(operation, &operation->out[0], &operation->in[1]),
                                  .w = input(operation, 1),
                                  .dy = input(operation, 0),
                                  .dx = output(operation, 0),
                                  .wants_dx = true};
}

int64_t conv2d_backward_input_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = input_gradient(operation);
    bool last = sdlf_operation_is_channels_last(operation);
    (void)calculator;
    return last ? conv2d_nhwc_input_packed_size_cpu(&backward.v) * (int64_t)sizeof(element) : 0;
}

sdlf_status conv2d_backward_input_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = input_gradient(operation);
    conv2d_nhwc_input_pack_cpu(cpu_from(calculator), operation->prepared.data, &backward);
    return SDLF_OK;
}

int64_t conv2d_backward_input_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = input_gradient(operation);
    if (sdlf_operation_is_channels_last(operation))
        return im2col_bytes_cpu(calculator,
                                conv2d_nhwc_input_space_cpu(&backward.v, sdlf_tensor_present(&operation->prepared)));
    if (is_depthwise(&backward.v, operation->algorithm)) return 0;
    bool direct = is_direct(&backward.v, operation->algorithm);
    return im2col_bytes_cpu(calculator, direct ? direct_backward_space_cpu(&backward, NULL)
                                               : im2col_backward_input_space_cpu(&backward.v));
}

bool conv2d_backward_input_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = input_gradient(operation);
    (void)calculator;
    if (sdlf_operation_is_channels_last(operation))
        return operation->algorithm == AUTO && conv2d_nhwc_input_takes_cpu(&backward.v);
    return !sdlf_tensor_present(&operation->in[2]) && supports(&backward.v, operation->algorithm);
}

sdlf_status conv2d_backward_input_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = input_gradient(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    sdlf_status status = check_prepared(operation, conv2d_backward_input_prepared_cpu(calculator, operation));
    if (status != SDLF_OK) return status;
    if (sdlf_operation_is_channels_last(operation)) {
        conv2d_nhwc_input_cpu(cpu, &backward, input(operation, 2), operation->prepared.data, operation->workspace.data);
    } else if (is_depthwise(&backward.v, operation->algorithm)) {
        depthwise_backward_cpu(cpu, &backward);
    } else if (is_direct(&backward.v, operation->algorithm)) {
        direct_backward_cpu(cpu, &backward, NULL, operation->workspace.data);
    } else {
        im2col_backward_input_cpu(cpu, &backward.v, backward.dy, backward.w, backward.dx, operation->workspace.data);
    }
    return SDLF_OK;
}

/* ---- weight and bias gradients ---- */

static convolution_backward weights_gradient(const sdlf_operation *operation)
{
    return (convolution_backward){.v = of_operation(operation, &operation->in[0], &operation->out[0]),
                                  .x = input(operation, 0),
                                  .dy = input(operation, 1),
                                  .dw = output(operation, 0),
                                  .wants_dw = true};
}

int64_t conv2d_backward_weights_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = weights_gradient(operation);
    if (sdlf_operation_is_channels_last(operation))
        return im2col_bytes_cpu(calculator, conv2d_nhwc_weights_space_cpu(&backward.v));
    if (is_depthwise(&backward.v, operation->algorithm)) return 0;
    bool direct = is_direct(&backward.v, operation->algorithm);
    return im2col_bytes_cpu(calculator, direct ? direct_backward_space_cpu(&backward, NULL)
                                               : im2col_backward_weights_space_cpu(&backward.v));
}

bool conv2d_backward_weights_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = weights_gradient(operation);
    (void)calculator;
    if (sdlf_operation_is_channels_last(operation))
        return operation->algorithm == AUTO && conv2d_nhwc_weights_takes_cpu(&backward.v);
    return supports(&backward.v, operation->algorithm);
}

sdlf_status conv2d_backward_weights_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_backward backward = weights_gradient(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    bool last = sdlf_operation_is_channels_last(operation), biased = sdlf_tensor_present(&operation->out[1]);
    if (last) {
        conv2d_nhwc_weights_cpu(cpu, &backward, operation->workspace.data);
    } else if (is_depthwise(&backward.v, operation->algorithm)) {
        depthwise_backward_cpu(cpu, &backward);
    } else if (is_direct(&backward.v, operation->algorithm)) {
        direct_backward_cpu(cpu, &backward, NULL, operation->workspace.data);
    } else {
        im2col_backward_weights_cpu(cpu, &backward.v, backward.x, backward.dy, backward.dw, operation->workspace.data);
    }
    if (biased && last) {
        conv2d_nhwc_bias_cpu(cpu, &backward.v, backward.dy, output(operation, 1));
    } else if (biased) {
        convolution_backward_bias_cpu(cpu, &backward.v, backward.dy, output(operation, 1));
    }
    return SDLF_OK;
}
