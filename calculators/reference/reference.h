/* SPDX-License-Identifier: MIT */
/* The reference calculator's kernels, and access to elements. */
#ifndef SDLF_CALCULATORS_REFERENCE_H
#define SDLF_CALCULATORS_REFERENCE_H

#include <sdlf/calculator.h>

sdlf_kernel fill_reference, copy_reference, gather_batch_reference, next_batch_reference, shuffle_reference;
bool gemm_supports_reference(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel gemm_reference, spmm_csr_reference;
sdlf_kernel reduce_reference, add_reference;
sdlf_kernel conv2d_forward_reference, conv2d_backward_input_reference, conv2d_backward_weights_reference;
sdlf_kernel fused_reference;
int64_t recurrent_workspace_reference(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool fused_supports_reference(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t fused_workspace_reference(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel max_pool2d_forward_reference, max_pool2d_backward_reference;
sdlf_kernel avg_pool2d_forward_reference, avg_pool2d_backward_reference;
sdlf_kernel global_avg_pool2d_forward_reference, global_avg_pool2d_backward_reference;
sdlf_kernel activation_forward_reference, activation_backward_reference;
sdlf_kernel dropout_forward_reference, dropout_backward_reference;
sdlf_kernel batch_norm2d_forward_reference, batch_norm2d_infer_reference, batch_norm2d_backward_reference;
sdlf_kernel softmax_forward_reference, softmax_backward_reference;
sdlf_kernel log_softmax_forward_reference, log_softmax_backward_reference;
sdlf_kernel softmax_cross_entropy_forward_reference, softmax_cross_entropy_backward_reference;
sdlf_kernel random_uniform_reference, random_normal_reference;
sdlf_kernel sgd_update_reference, adam_update_reference, rmsprop_update_reference, clip_scale_reference;
sdlf_kernel check_finite_reference, loss_scale_update_reference;

sdlf_kernel binary_reference, binary_backward_reference, select_reference;
sdlf_kernel arg_reduce_reference, gather_reference, gather_backward_reference, top_k_reference;
sdlf_kernel resample_reference, resample_backward_reference, matmul_reference;
sdlf_kernel normalize_forward_reference, normalize_backward_reference;

sdlf_kernel quantize_reference, dequantize_reference, quantized_conv2d_reference;
sdlf_kernel quantized_add_reference, quantized_pool2d_reference, integer_matmul_reference;
sdlf_kernel dynamic_quantize_reference;

sdlf_kernel attention_forward_reference, attention_backward_reference;
sdlf_kernel lstm_forward_reference, lstm_backward_reference, gru_forward_reference, gru_backward_reference;

/* The address of element `index` (in row-major order) of a tensor with any strides. */
static inline char *element_address(const sdlf_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        offset += index % tensor->shape.dim[i] * tensor->stride[i];
        index /= tensor->shape.dim[i];
    }
    return (char *)tensor->data + offset * (int64_t)sdlf_dtype_size(tensor->dtype);
}

/* The elements of a tensor with any strides, one after the other in row-major order. */
typedef struct element_iterator {
    const sdlf_tensor *tensor;
    char *address;
    int64_t index[SDLF_MAX_RANK], size;
} element_iterator;

static inline element_iterator first_element(const sdlf_tensor *tensor)
{
    const bool present = sdlf_tensor_present(tensor);
    return (element_iterator){
        tensor, present ? tensor->data : NULL, {0}, present ? (int64_t)sdlf_dtype_size(tensor->dtype) : 0};
}

static inline void next_element(element_iterator *e)
{
    for (int i = e->address != NULL ? e->tensor->shape.rank - 1 : -1; i >= 0; i--) {
        e->address += e->tensor->stride[i] * e->size;
        if (++e->index[i] < e->tensor->shape.dim[i]) return;
        e->address -= e->tensor->stride[i] * e->size * e->tensor->shape.dim[i];
        e->index[i] = 0;
    }
}

/* Element `i` of a contiguous floating-point tensor. All arithmetic is float64. */
static inline double get(const sdlf_tensor *tensor, int64_t i)
{
    double value;
    switch (tensor->dtype) {
    case SDLF_FLOAT32: return (double)((const float *)tensor->data)[i];
    case SDLF_FLOAT64: return ((const double *)tensor->data)[i];
    default: /* 16-bit storage */
        sdlf_convert(SDLF_FLOAT64, &value, tensor->dtype, (const char *)tensor->data + 2 * i, 1);
        return value;
    }
}

static inline void put(const sdlf_tensor *tensor, int64_t i, double value)
{
    switch (tensor->dtype) {
    case SDLF_FLOAT32: ((float *)tensor->data)[i] = (float)value; break;
    case SDLF_FLOAT64: ((double *)tensor->data)[i] = value; break;
    default: sdlf_convert(tensor->dtype, (char *)tensor->data + 2 * i, SDLF_FLOAT64, &value, 1); break;
    }
}

/* The offset of element (a, b, c, d) of a four-dimensional tensor, by its strides. */
static inline int64_t at4(const sdlf_tensor *tensor, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t *stride = tensor->stride;
    return a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
}

/* The offset of element (h, w) of plane number `plane`, counting the channels of an image before images. */
static inline int64_t at_plane(const sdlf_tensor *tensor, int64_t plane, int64_t h, int64_t w)
{
    return at4(tensor, plane / tensor->shape.dim[1], plane % tensor->shape.dim[1], h, w);
}

/* True if (h, w) lies inside the image, false in the padding around it. */
static inline bool inside(const sdlf_tensor *image, int64_t h, int64_t w)
{
    return h >= 0 && h < image->shape.dim[2] && w >= 0 && w < image->shape.dim[3];
}

/* The input index of a window position along one axis: output stride + position dilation - padding. */
static inline int64_t window_input(const sdlf_window2d *window, int axis, int64_t output, int64_t position)
{
    return output * window->stride[axis] + position * window->dilation[axis] - window->padding_before[axis];
}

/* The inverse: the output whose window has input element `input` at `position`; -1 if there is none. */
static inline int64_t window_output(const sdlf_window2d *window, int axis, int64_t input, int64_t position,
                                    int64_t outputs)
{
    int64_t distance = input + window->padding_before[axis] - position * window->dilation[axis];
    if (distance < 0 || distance % window->stride[axis] != 0) return -1;
    int64_t output = distance / window->stride[axis];
    return output < outputs ? output : -1;
}

/* f(x); and f'(x) from v, which is f(x), or x if sdlf_activation_reads_input returns true. */
double activate_reference(const sdlf_activation *activation, double x);
double activation_slope_reference(const sdlf_activation *activation, double v);

/* Updates one element of w, and of v if it is present, with its gradient g, decay included: see sdlf_sgd_rule. */
void sgd_follow_reference(const sdlf_sgd_rule *rule, double rate, const sdlf_tensor *w, const sdlf_tensor *v, int64_t e,
                          double g);

#endif
