/* SPDX-License-Identifier: MIT */
/* One convolution of the lab. */
#include "apps/bench/conv/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/output/number.h"

/* Limits on the elements of a tensor, and on all multiplications: far more than fits any machine, far less than
 * overflows. */
static const double elements_most = 1e12, flops_most = 1e17;

/* Reads `count` integers >= `least`, separated by x. */
static bool read_numbers(const char *text, int count, int64_t least, int64_t *number)
{
    for (int i = 0; i < count; i++) {
        char *end;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (end == text || errno || *text < '0' || *text > '9' || value < least || value > LAB_SIDE_MOST) return false;
        number[i] = value;
        if (*end != (i + 1 < count ? 'x' : '\0')) return false;
        text = end + 1;
    }
    return true;
}

static sdlf_status read_option(const char *name, const char *text, const char *form, const char *example, int count,
                               int64_t *number)
{
    if (read_numbers(text, count, 1, number)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s %s: expected %s, %d whole numbers from 1 to %s such as %s", name, text,
                     form, count, number_count(LAB_SIDE_MOST).text, example);
}

/* Reads one number for both axes, or two. */
static sdlf_status read_pair(const char *name, const char *text, int64_t least, int64_t *pair)
{
    if (!text) return SDLF_OK;
    if (read_numbers(text, 2, least, pair)) return SDLF_OK;
    if (read_numbers(text, 1, least, pair)) {
        pair[1] = pair[0];
        return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "--%s %s: expected a whole number from %d to %s, or two such as 2x1 (height x width)", name, text,
                     (int)least, number_count(LAB_SIDE_MOST).text);
}

sdlf_status lab_shape_read(lab_shape *shape, const lab_shape_text *text)
{
    int64_t x[4], w[3];
    if (!text->kernel)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--shape %s needs a --kernel KxRxS: how many filters of which size",
                         text->shape);
    sdlf_status status = read_option("shape", text->shape, "NxCxHxW", "1x64x56x56", 4, x);
    if (status == SDLF_OK) status = read_option("kernel", text->kernel, "KxRxS", "128x3x3", 3, w);
    if (status != SDLF_OK) return status;
    *shape = (lab_shape){.n = x[0],
                         .c = x[1],
                         .h = x[2],
                         .w = x[3],
                         .k = w[0],
                         .kernel = {w[1], w[2]},
                         .stride = {1, 1},
                         .dilation = {1, 1},
                         .groups = text->groups};
    status = read_pair("stride", text->stride, 1, shape->stride);
    if (status == SDLF_OK) status = read_pair("padding", text->padding, 0, shape->padding);
    if (status == SDLF_OK) status = read_pair("dilation", text->dilation, 1, shape->dilation);
    return status;
}

static sdlf_status check_sizes(const lab_shape *s, const int64_t *y)
{
    static const char *const axis[] = {"high", "wide"};
    const int64_t in[] = {s->h, s->w};
    if (s->c % s->groups != 0 || s->k % s->groups != 0) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%" PRId64 " channels and %" PRId64 " filters cannot be cut into %" PRId64 " groups", s->c,
                         s->k, s->groups);
    }
    for (int i = 0; i < 2; i++) {
        if (y[i] >= 1) continue;
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "a window %" PRId64 " %s is larger than its image, %" PRId64 " with %" PRId64
                         " of padding on each side",
                         (s->kernel[i] - 1) * s->dilation[i] + 1, axis[i], in[i], s->padding[i]);
    }
    double x_elements = (double)s->n * (double)s->c * (double)s->h * (double)s->w;
    double w_elements = (double)s->k * (double)(s->c / s->groups) * (double)s->kernel[0] * (double)s->kernel[1];
    double outputs = (double)s->n * (double)y[0] * (double)y[1];
    bool fits = x_elements <= elements_most && w_elements <= elements_most && outputs * (double)s->k <= elements_most &&
                2 * outputs * w_elements <= flops_most;
    return fits ? SDLF_OK : sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: too large for any machine", lab_shape_print(s).text);
}

sdlf_status lab_shape_operation(const lab_shape *s, sdlf_dtype dtype, sdlf_operation *operation)
{
    *operation = (sdlf_operation){.kind = SDLF_CONV2D_FORWARD, .conv2d = {.groups = (int)s->groups}};
    sdlf_window2d *window = &operation->conv2d.window;
    const int64_t in[] = {s->h, s->w};
    int64_t y[2];
    for (int i = 0; i < 2; i++) {
        window->size[i] = (int)s->kernel[i];
        window->stride[i] = (int)s->stride[i];
        window->dilation[i] = (int)s->dilation[i];
        window->padding_before[i] = window->padding_after[i] = (int)s->padding[i];
        y[i] = (in[i] + 2 * s->padding[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
        if (in[i] + 2 * s->padding[i] < (s->kernel[i] - 1) * s->dilation[i] + 1) y[i] = 0;
    }
    sdlf_status status = check_sizes(s, y);
    if (status != SDLF_OK) return status;
    operation->in[0] = sdlf_tensor_view(dtype, sdlf_shape(s->n, s->c, s->h, s->w), NULL);
    operation->in[1] = sdlf_tensor_view(dtype, sdlf_shape(s->k, s->c / s->groups, s->kernel[0], s->kernel[1]), NULL);
    operation->out[0] = sdlf_tensor_view(dtype, sdlf_shape(s->n, s->k, y[0], y[1]), NULL);
    return sdlf_operation_check(operation);
}

/* Prints ", stride 2", ", padding 0x1"; nothing if both are the default. */
static size_t print_pair(char *text, size_t size, const char *name, const int64_t *pair, int64_t usual)
{
    if (pair[0] == usual && pair[1] == usual) return 0;
    if (pair[0] == pair[1]) return (size_t)snprintf(text, size, ", %s %" PRId64, name, pair[0]);
    return (size_t)snprintf(text, size, ", %s %" PRId64 "x%" PRId64, name, pair[0], pair[1]);
}

lab_shape_line lab_shape_print(const lab_shape *s)
{
    lab_shape_line line;
    size_t size = sizeof line.text;
    size_t used =
        (size_t)snprintf(line.text, size, "%s, %" PRId64 " of %" PRId64 "x%" PRId64,
                         sdlf_shape_print(sdlf_shape(s->n, s->c, s->h, s->w)).text, s->k, s->kernel[0], s->kernel[1]);
    if (used < size) used += print_pair(line.text + used, size - used, "stride", s->stride, 1);
    if (used < size) used += print_pair(line.text + used, size - used, "padding", s->padding, 0);
    if (used < size) used += print_pair(line.text + used, size - used, "dilation", s->dilation, 1);
    bool depthwise = s->groups > 1 && s->groups == s->c;
    if (used < size && depthwise) {
        snprintf(line.text + used, size - used, ", depthwise");
    } else if (used < size && s->groups > 1) {
        snprintf(line.text + used, size - used, ", %" PRId64 " groups", s->groups);
    }
    return line;
}
