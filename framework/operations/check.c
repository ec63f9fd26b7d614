/* SPDX-License-Identifier: MIT */
/* Expectations on operands and options. */
#include "framework/operations/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *name_of(const sdlf_operation *operation, const sdlf_tensor *operand)
{
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (operand == &operation->in[i]) return type->in[i].name;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (operand == &operation->out[i]) return type->out[i].name;
    }
    return "?";
}

static bool is_open(const sdlf_check *check, const sdlf_tensor *operand)
{
    return check->status == SDLF_OK && sdlf_tensor_present(operand);
}

void sdlf_expect_dtype(sdlf_check *check, const sdlf_tensor *operand, sdlf_dtype dtype)
{
    if (!is_open(check, operand) || operand->dtype == dtype) return;
    check->status =
        sdlf_fail(SDLF_ERROR_SHAPE, "operand '%s' is %s, expected %s", name_of(check->operation, operand),
                  sdlf_dtype_name(operand->dtype), dtype == SDLF_NONE ? "another dtype" : sdlf_dtype_name(dtype));
}

void sdlf_expect_shape(sdlf_check *check, const sdlf_tensor *operand, sdlf_shape shape)
{
    if (!is_open(check, operand) || sdlf_shape_equal(operand->shape, shape)) return;
    check->status =
        sdlf_fail(SDLF_ERROR_SHAPE, "operand '%s' has shape %s, expected %s", name_of(check->operation, operand),
                  sdlf_shape_print(operand->shape).text, sdlf_shape_print(shape).text);
}

void sdlf_expect_operand(sdlf_check *check, const sdlf_tensor *operand, sdlf_dtype dtype, sdlf_shape shape)
{
    sdlf_expect_dtype(check, operand, dtype);
    sdlf_expect_shape(check, operand, shape);
}

void sdlf_expect_rank(sdlf_check *check, const sdlf_tensor *operand, int rank)
{
    if (!is_open(check, operand) || operand->shape.rank == rank) return;
    check->status =
        sdlf_fail(SDLF_ERROR_SHAPE, "operand '%s' has shape %s, expected %d dimensions, found %d",
                  name_of(check->operation, operand), sdlf_shape_print(operand->shape).text, rank, operand->shape.rank);
}

sdlf_dtype sdlf_expect_floating(sdlf_check *check, const sdlf_tensor *operand)
{
    if (is_open(check, operand) && operand->dtype != SDLF_FLOAT32 && operand->dtype != SDLF_FLOAT64) {
        check->status = sdlf_fail(SDLF_ERROR_SHAPE, "operand '%s' is %s, expected float32 or float64",
                                  name_of(check->operation, operand), sdlf_dtype_name(operand->dtype));
    }
    return operand->dtype;
}

void sdlf_expect(sdlf_check *check, bool met, const char *format, ...)
{
    if (check->status != SDLF_OK || met) return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    check->status = sdlf_fail(SDLF_ERROR_ARGUMENT, "%s", text);
}

void sdlf_expect_between(sdlf_check *check, const char *name, double value, double low, double high)
{
    sdlf_expect(check, value >= low && value <= high, "%s is %g, expected %g to %g", name, value, low, high);
}

void sdlf_expect_below(sdlf_check *check, const char *name, double value, double low, double high)
{
    sdlf_expect(check, value >= low && value < high, "%s is %g, expected at least %g and less than %g", name, value,
                low, high);
}

void sdlf_expect_axis(sdlf_check *check, int axis, const sdlf_tensor *operand)
{
    if (!is_open(check, operand)) return;
    sdlf_expect(check, axis >= 0 && axis < operand->shape.rank,
                "axis is %d, expected 0 to %d: operand '%s' has shape %s", axis, operand->shape.rank - 1,
                name_of(check->operation, operand), sdlf_shape_print(operand->shape).text);
}

/* The derivative is computed from y, which must therefore have the sign of x. */
static void expect_alpha(sdlf_check *check, const sdlf_activation *activation)
{
    double alpha = (double)activation->alpha, beta = (double)activation->beta;
    switch (activation->function) {
    case SDLF_SELU: sdlf_expect(check, beta > 0 && beta <= 1e30, "selu's beta is %g, expected more than 0", beta);
    /* fall through */
    case SDLF_ELU: sdlf_expect_between(check, "the function's alpha", alpha, 0, 1e30); break;
    case SDLF_CELU:
        sdlf_expect(check, alpha > 0 && alpha <= 1e30, "celu's alpha is %g, expected more than 0", alpha);
        break;
    case SDLF_HARD_SIGMOID:
        sdlf_expect_between(check, "hard_sigmoid's alpha", alpha, -1e30, 1e30);
        sdlf_expect_between(check, "hard_sigmoid's beta", beta, -1e30, 1e30);
        break;
    default: break;
    }
}

void sdlf_expect_activation(sdlf_check *check, const sdlf_activation *activation)
{
    sdlf_expect(check, (unsigned)activation->function < SDLF_ACTIVATION_FUNCTION_COUNT,
                "%d is not a valid activation function", (int)activation->function);
    if (activation->function == SDLF_CLIP) {
        sdlf_expect(check, activation->low <= activation->high, "clip's low %g is above its high %g",
                    (double)activation->low, (double)activation->high);
    }
    if (activation->function == SDLF_LEAKY_RELU) {
        sdlf_expect_between(check, "leaky_relu's slope", (double)activation->slope, 0, 1e30);
    }
    expect_alpha(check, activation);
}

void sdlf_expect_sgd(sdlf_check *check, const sdlf_sgd_rule *rule, const sdlf_tensor *v)
{
    sdlf_expect_below(check, "momentum", (double)rule->momentum, 0, 1);
    sdlf_expect_between(check, "decay", (double)rule->decay, 0, 1e30);
    sdlf_expect_between(check, "bias_decay", (double)rule->bias_decay, 0, 1e30);
    sdlf_expect(check, rule->momentum == 0 || sdlf_tensor_present(v), "momentum needs operand 'v'");
}

void sdlf_expect_bias_velocity(sdlf_check *check, const sdlf_tensor *v, const sdlf_tensor *b, const sdlf_tensor *bv)
{
    bool wanted = sdlf_tensor_present(v) && sdlf_tensor_present(b);
    sdlf_expect(check, sdlf_tensor_present(bv) == wanted,
                wanted ? "operand 'bv' is missing with 'b' and 'v'" : "operand 'bv' is given without 'b' and 'v'");
}

sdlf_size2d sdlf_expect_window(sdlf_check *check, const sdlf_window2d *window, int64_t height, int64_t width)
{
    static const char *const direction[2] = {"vertical", "horizontal"};
    const int64_t input[2] = {height, width};
    sdlf_size2d output = {{0, 0}};
    for (int i = 0; i < 2; i++) {
        sdlf_expect(check, window->size[i] >= 1, "the window's %s size is %d, expected at least 1", direction[i],
                    window->size[i]);
        sdlf_expect(check, window->stride[i] >= 1, "the %s stride is %d, expected at least 1", direction[i],
                    window->stride[i]);
        sdlf_expect(check, window->dilation[i] >= 1, "the %s dilation is %d, expected at least 1", direction[i],
                    window->dilation[i]);
        sdlf_expect(check, window->padding_before[i] >= 0 && window->padding_after[i] >= 0,
                    "the %s padding is %d and %d, expected at least 0", direction[i], window->padding_before[i],
                    window->padding_after[i]);
        sdlf_expect(check, input[i] <= INT64_MAX / 4, "the input's side %" PRId64 " is too large", input[i]);
    }
    for (int i = 0; i < 2 && check->status == SDLF_OK; i++) {
        output.side[i] = sdlf_window2d_output(window, i, input[i]);
        if (output.side[i] < 1) {
            check->status = sdlf_fail(SDLF_ERROR_SHAPE,
                                      "the window %dx%d (dilation %dx%d) is larger than its input %" PRId64 "x%" PRId64
                                      " (plus padding %d,%d,%d,%d)",
                                      window->size[0], window->size[1], window->dilation[0], window->dilation[1],
                                      height, width, window->padding_before[0], window->padding_before[1],
                                      window->padding_after[0], window->padding_after[1]);
        }
    }
    return check->status == SDLF_OK ? output : (sdlf_size2d){{0, 0}};
}

/* Checks one axis. The positions of the window are first, first + dilation, ... over `reach` elements; it misses the
 * input if it is entirely before or behind it, or if the input fits between two of its positions. */
static bool has_empty_window(const sdlf_window2d *window, int axis, int64_t input)
{
    int64_t dilation = window->dilation[axis], size = window->size[axis], stride = window->stride[axis];
    int64_t before = window->padding_before[axis], reach = dilation * (size - 1) + 1;
    if (before >= reach || window->padding_after[axis] >= reach) return true;
    if (input >= dilation) return false;
    int64_t outputs = sdlf_window2d_output(window, axis, input);
    for (int64_t p = 0; p < outputs && p * stride < before; p++) {
        int64_t missing = before - p * stride;
        int64_t inside = (missing + dilation - 1) / dilation; /* the first position at or after element 0 */
        if (inside >= size || inside * dilation - missing >= input) return true;
    }
    return false;
}

sdlf_size2d sdlf_expect_convolution(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *w,
                                    const sdlf_window2d *window, int groups)
{
    sdlf_expect_rank(check, x, 4);
    sdlf_expect_rank(check, w, 4);
    sdlf_expect(check, groups >= 1 && x->shape.dim[1] % groups == 0 && w->shape.dim[0] % groups == 0,
                "groups is %d, expected a divisor of the channels of x %s and of the filters of w %s", groups,
                sdlf_shape_print(x->shape).text, sdlf_shape_print(w->shape).text);
    return sdlf_expect_window(check, window, x->shape.dim[2], x->shape.dim[3]);
}

void sdlf_expect_no_empty_window(sdlf_check *check, const sdlf_window2d *window, int64_t height, int64_t width)
{
    if (check->status != SDLF_OK) return;
    sdlf_expect(check, !has_empty_window(window, 0, height) && !has_empty_window(window, 1, width),
                "a window of %dx%d (dilation %dx%d) would hold nothing but padding %d,%d,%d,%d", window->size[0],
                window->size[1], window->dilation[0], window->dilation[1], window->padding_before[0],
                window->padding_before[1], window->padding_after[0], window->padding_after[1]);
}

int64_t sdlf_product(int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t factor[4] = {a, b, c, d};
    int64_t product = 1;
    for (int i = 0; i < 4; i++) {
        if (factor[i] == 0) return 0;
    }
    for (int i = 0; i < 4; i++) product = product > INT64_MAX / factor[i] ? INT64_MAX : product * factor[i];
    return product;
}

int64_t sdlf_sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void sdlf_expect_matrices(sdlf_check *check, const sdlf_tensor *x, const char *name)
{
    int last = x->shape.rank - 1;
    const int64_t *dim = x->shape.dim, *stride = x->stride;
    bool dense = (dim[last] == 1 || stride[last] == 1) && (dim[last - 1] == 1 || stride[last - 1] == dim[last]);
    sdlf_expect(check, dense, "the matrices of operand '%s' of shape %s have gaps", name,
                sdlf_shape_print(x->shape).text);
}
