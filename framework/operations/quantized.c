/* SPDX-License-Identifier: MIT */
/* quantize, dequantize, quantized_conv2d, quantized_add, quantized_pool2d, dynamic_quantize.
 * Contracts: <sdlf/operations/quantization.h>. */
#include <math.h>

#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static int lowest(sdlf_dtype dtype)
{
    return dtype == SDLF_INT8 ? -128 : 0;
}

static int highest(sdlf_dtype dtype)
{
    return dtype == SDLF_INT8 ? 127 : 255;
}

void sdlf_expect_quantised(sdlf_check *check, const sdlf_tensor *x, const char *name, int zero)
{
    if (!sdlf_tensor_present(x)) return;
    if (x->dtype != SDLF_INT8) sdlf_expect_dtype(check, x, SDLF_UINT8);
    sdlf_expect_between(check, name, zero, lowest(x->dtype), highest(x->dtype));
}

void sdlf_expect_bounds(sdlf_check *check, const sdlf_tensor *y, double low, double high)
{
    sdlf_expect_between(check, "low", low, lowest(y->dtype), highest(y->dtype));
    sdlf_expect_between(check, "high", high, low, highest(y->dtype));
    sdlf_expect(check, low == rint(low) && high == rint(high), "low is %g and high %g, expected whole numbers", low,
                high);
}

static void expect_scale(sdlf_check *check, const char *name, double scale)
{
    sdlf_expect(check, scale > 0 && scale < (double)INFINITY, "%s is %g, expected more than 0", name, scale);
}

static sdlf_status check_quantize(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    const sdlf_quantize_options *o = &operation->quantize;
    sdlf_check check = {.operation = operation};
    sdlf_expect_dtype(&check, x, SDLF_FLOAT32);
    sdlf_expect_quantised(&check, y, "zero", o->zero);
    sdlf_expect_shape(&check, y, x->shape);
    expect_scale(&check, "scale", (double)o->scale);
    sdlf_expect_bounds(&check, y, (double)o->low, (double)o->high);
    return check.status;
}

const sdlf_operation_class sdlf_quantize_operation = {
    .name = "quantize",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .check = check_quantize,
};

static sdlf_status check_dequantize(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    sdlf_check check = {.operation = operation};
    sdlf_expect_quantised(&check, x, "zero", operation->quantize.zero);
    sdlf_expect_operand(&check, y, SDLF_FLOAT32, x->shape);
    expect_scale(&check, "scale", (double)operation->quantize.scale);
    return check.status;
}

const sdlf_operation_class sdlf_dequantize_operation = {
    .name = "dequantize",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .check = check_dequantize,
};

static sdlf_status check_conv2d(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1], *y = &operation->out[0];
    const sdlf_quantized_conv2d_options *o = &operation->quantized_conv2d;
    sdlf_check check = {.operation = operation};
    const bool sums = y->dtype == SDLF_INT32;
    sdlf_expect_quantised(&check, x, "x_zero", o->x_zero);
    if (y->dtype != SDLF_FLOAT32 && !sums) {
        sdlf_expect_quantised(&check, y, "y_zero", o->y_zero);
        sdlf_expect_bounds(&check, y, (double)o->low, (double)o->high);
    }
    sdlf_expect(&check, o->low <= o->high, "low is %g, and high %g", (double)o->low, (double)o->high);
    sdlf_size2d output = sdlf_expect_convolution(&check, x, w, &o->window, o->groups);
    if (check.status != SDLF_OK) return check.status;
    int64_t n = x->shape.dim[0], c = x->shape.dim[1], k = w->shape.dim[0];
    sdlf_expect_operand(&check, w, SDLF_INT8, sdlf_shape(k, c / o->groups, o->window.size[0], o->window.size[1]));
    sdlf_expect_operand(&check, &operation->in[2], SDLF_INT32, sdlf_shape(k));
    sdlf_expect(&check, sdlf_tensor_present(&operation->in[3]) != sums,
                "%s a multiplier: sums of int32 have none, and other results have one", sums ? "there is" : "expected");
    sdlf_expect_operand(&check, &operation->in[3], SDLF_FLOAT32, sdlf_shape(k));
    sdlf_expect_operand(&check, &operation->in[4], x->dtype, sdlf_shape(1));
    sdlf_expect_shape(&check, y, sdlf_shape(n, k, output.side[0], output.side[1]));
    return check.status;
}

static int64_t conv2d_flops(const sdlf_operation *operation)
{
    return sdlf_product(2, sdlf_tensor_count(&operation->out[0]), sdlf_shape_span(operation->in[1].shape, 1, 4), 1);
}

const sdlf_operation_class sdlf_quantized_conv2d_operation = {
    .name = "quantized_conv2d",
    .in = {{.name = "x"},
           {.name = "w"},
           {.name = "bias", .optional = true},
           {.name = "multiplier", .optional = true},
           {.name = "x_zero", .optional = true}},
    .out = {{.name = "y"}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .stays_row_major = 1u << 0,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_conv2d,
    .flops = conv2d_flops,
};

static sdlf_status check_add(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    const sdlf_quantized_add_options *o = &operation->quantized_add;
    sdlf_check check = {.operation = operation};
    sdlf_expect_quantised(&check, a, "a_zero", o->a_zero);
    sdlf_expect_quantised(&check, b, "b_zero", o->b_zero);
    sdlf_expect_quantised(&check, y, "y_zero", o->y_zero);
    if (sdlf_tensor_present(b)) sdlf_expect_shape(&check, b, a->shape);
    sdlf_expect_shape(&check, y, a->shape);
    expect_scale(&check, "a_scale", (double)o->a_scale);
    if (sdlf_tensor_present(b)) expect_scale(&check, "b_scale", (double)o->b_scale);
    sdlf_expect_bounds(&check, y, (double)o->low, (double)o->high);
    return check.status;
}

const sdlf_operation_class sdlf_quantized_add_operation = {
    .name = "quantized_add",
    .in = {{.name = "a"}, {.name = "b", .optional = true}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0 | 1u << 1,
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .check = check_add,
};

static sdlf_status check_pool2d(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    const sdlf_quantized_pool2d_options *o = &operation->quantized_pool2d;
    sdlf_check check = {.operation = operation};
    sdlf_expect_quantised(&check, x, "x_zero", o->x_zero);
    sdlf_expect_quantised(&check, y, "y_zero", o->y_zero);
    sdlf_expect_rank(&check, x, 4);
    const int64_t *dim = x->shape.dim;
    sdlf_size2d output = sdlf_expect_window(&check, &o->window, dim[2], dim[3]);
    sdlf_expect_no_empty_window(&check, &o->window, dim[2], dim[3]);
    sdlf_expect_shape(&check, y, sdlf_shape(dim[0], dim[1], output.side[0], output.side[1]));
    expect_scale(&check, "scale", (double)o->scale);
    sdlf_expect_bounds(&check, y, (double)o->low, (double)o->high);
    return check.status;
}

static int64_t pool2d_flops(const sdlf_operation *operation)
{
    const int *size = operation->quantized_pool2d.window.size;
    return sdlf_product(sdlf_tensor_count(&operation->out[0]), size[0], size[1], 1);
}

const sdlf_operation_class sdlf_quantized_pool2d_operation = {
    .name = "quantized_pool2d",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_pool2d,
    .flops = pool2d_flops,
};

static sdlf_status check_dynamic_quantize(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_expect_dtype(&check, x, SDLF_FLOAT32);
    sdlf_expect(&check, sdlf_tensor_count(x) > 0, "operand 'x' has shape %s: an empty tensor has no range",
                sdlf_shape_print(x->shape).text);
    sdlf_expect_operand(&check, &operation->out[0], SDLF_UINT8, x->shape);
    sdlf_expect_operand(&check, &operation->out[1], SDLF_FLOAT32, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[2], SDLF_UINT8, sdlf_shape(1));
    return check.status;
}

const sdlf_operation_class sdlf_dynamic_quantize_operation = {
    .name = "dynamic_quantize",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}, {.name = "scale"}, {.name = "zero"}},
    .check = check_dynamic_quantize,
};
