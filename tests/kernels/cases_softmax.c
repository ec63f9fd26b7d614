/* SPDX-License-Identifier: MIT */
/* Cases of softmax, log_softmax and softmax_cross_entropy.
 *
 * Tolerance: an exponential, a sum of C positive numbers (whose relative error grows slowly) and a quotient: 32
 * rounding errors, relative to probabilities down to 1 / C. Losses are sums of logarithms, of the size of the
 * logits. */
#include "kernels.h"

#include <math.h>

static void softmax_pair(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, int axis, bool logarithm, bool aliased)
{
    sdlf_tensor x = kernel_tensor(t, shape);
    kernel_case made = {.operation = {.kind = logarithm ? SDLF_LOG_SOFTMAX_FORWARD : SDLF_SOFTMAX_FORWARD}};
    made.operation.in[0] = made.operation.out[0] = x;
    made.operation.softmax.axis = axis;
    made.aliased = aliased;
    made.tolerance = 32;
    if (!logarithm) made.floor = 1 / (double)shape.dim[axis];
    kernel_emit(sink, &made, "%s axis %d", sdlf_shape_print(shape).text, axis);
    made.in[0].values = VALUES_WIDE;
    kernel_emit(sink, &made, "%s axis %d wide", sdlf_shape_print(shape).text, axis);

    /* Any y suffices for the gradient's arithmetic: probabilities or their logarithms. */
    made.operation.kind = logarithm ? SDLF_LOG_SOFTMAX_BACKWARD : SDLF_SOFTMAX_BACKWARD;
    made.operation.in[1] = x;
    made.in[0].values = logarithm ? VALUES_UNIFORM : VALUES_POSITIVE;
    made.alias = 1;
    made.floor = 1;
    made.tolerance = 4 * (double)shape.dim[axis] + 32; /* a sum of C terms within 1, times at most 3 */
    kernel_emit(sink, &made, "%s axis %d", sdlf_shape_print(shape).text, axis);
}

/* Set values that logits may have if a network has diverged or something is masked, at the first, the last or every
 * position of a row. Every fifth row is left unchanged. */
static void strange_rows(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    int64_t length = x->shape.dim[1];
    (void)calculator;
    for (int64_t row = 0; row < x->shape.dim[0]; row++) {
        double value = row % 5 == 0 ? (double)NAN : row % 5 == 1 ? (double)INFINITY : -(double)INFINITY;
        int64_t first = row / 5 % 3 == 1 ? length - 1 : 0, last = row / 5 % 3 == 0 ? 0 : length - 1;
        for (int64_t j = first; j <= last && row % 5 < 3; j++) {
            if (x->dtype == SDLF_FLOAT32)
                ((float *)x->data)[row * length + j] = (float)value;
            else
                ((double *)x->data)[row * length + j] = value;
        }
    }
}

static void strange_cases(kernel_sink *sink, sdlf_dtype t, int64_t rows, int64_t classes)
{
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(rows, classes));
    kernel_case made = {
        .operation = {.kind = SDLF_SOFTMAX_FORWARD, .in = {x}, .out = {x}}, .infinite = true, .prepare = strange_rows};
    made.operation.softmax.axis = 1;
    made.tolerance = 32;
    made.floor = 1 / (double)classes;
    kernel_emit(sink, &made, "%dx%d NaN and infinities", (int)rows, (int)classes);
    made.operation.kind = SDLF_LOG_SOFTMAX_FORWARD;
    made.floor = 1;
    kernel_emit(sink, &made, "%dx%d NaN and infinities", (int)rows, (int)classes);
}

static void one_wrong_label(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    int32_t *labels = operation->in[1].data;
    labels[operation->in[1].shape.dim[0] / 2] = (int32_t)operation->in[0].shape.dim[1];
}

static void negative_label(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    int32_t *labels = operation->in[1].data;
    labels[0] = -1;
}

static kernel_case cross_entropy(sdlf_dtype t, int64_t rows, int64_t classes, float smoothing, bool metrics)
{
    sdlf_tensor logits = kernel_tensor(t, sdlf_shape(rows, classes)), one = kernel_tensor(t, sdlf_shape(1));
    kernel_case made = {.operation = {.kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD, .in = {logits}}};
    made.operation.in[1] = kernel_tensor(SDLF_INT32, sdlf_shape(rows));
    made.operation.out[0] = logits;
    made.operation.out[1] = one;
    if (metrics) made.operation.out[2] = kernel_tensor(SDLF_FLOAT64, sdlf_shape(3));
    made.operation.cross_entropy.smoothing = smoothing;
    made.in[1] = (kernel_fill){VALUES_INTEGERS, classes};
    made.tolerance = 64;
    return made;
}

/* Forward and backward in one: gradients have magnitude 1 / N. */
static kernel_case cross_entropy_gradient(sdlf_dtype t, int64_t rows, int64_t classes, float smoothing, bool metrics)
{
    kernel_case made = cross_entropy(t, rows, classes, smoothing, metrics);
    made.operation.in[2] = made.operation.out[1];
    made.operation.out[3] = made.operation.in[0];
    made.in[2].values = VALUES_POSITIVE;
    made.floor = 1 / (double)rows;
    return made;
}

static void cross_entropy_backward(kernel_sink *sink, sdlf_dtype t, int64_t rows, int64_t classes, float smoothing)
{
    kernel_case made = cross_entropy(t, rows, classes, smoothing, false);
    made.operation.kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD;
    made.operation.in[2] = made.operation.out[1];
    made.operation.out[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    made.in[0].values = VALUES_POSITIVE;
    made.tolerance = 8;
    made.floor = 1 / (double)rows;
    kernel_emit(sink, &made, "%dx%d smoothing %g", (int)rows, (int)classes, (double)smoothing);
}

/* Without metrics: whether a row with NaN counts as correct is unspecified. */
static void strange_cross_entropy(kernel_sink *sink, sdlf_dtype t, int64_t rows, int64_t classes)
{
    for (int gradient = 0; gradient < 2; gradient++) {
        kernel_case made = gradient ? cross_entropy_gradient(t, rows, classes, 0.1f, false)
                                    : cross_entropy(t, rows, classes, 0.1f, false);
        made.prepare = strange_rows;
        kernel_emit(sink, &made, "%dx%d NaN and infinities%s", (int)rows, (int)classes, gradient ? " gradient" : "");
    }
}

static void cross_entropy_cases(kernel_sink *sink, sdlf_dtype t, int64_t rows, int64_t classes, float smoothing)
{
    static const kernel_values values[] = {VALUES_UNIFORM, VALUES_GRID, VALUES_WIDE};
    static const char *const names[] = {"", " ties", " wide"};
    for (int v = 0; v < 3; v++) {
        for (int variant = 0; variant < 4; variant++) {
            bool metrics = variant & 1, gradient = variant & 2;
            kernel_case made = gradient ? cross_entropy_gradient(t, rows, classes, smoothing, metrics)
                                        : cross_entropy(t, rows, classes, smoothing, metrics);
            made.in[0].values = values[v];
            kernel_emit(sink, &made, "%dx%d smoothing %g%s%s%s", (int)rows, (int)classes, (double)smoothing,
                        metrics ? " metrics" : "", gradient ? " gradient" : "", names[v]);
        }
    }
    for (int gradient = 0; gradient < 2; gradient++) {
        kernel_case wrong = gradient ? cross_entropy_gradient(t, rows, classes, smoothing, true)
                                     : cross_entropy(t, rows, classes, smoothing, true);
        const char *text = gradient ? " gradient" : "";
        wrong.prepare = one_wrong_label;
        kernel_emit(sink, &wrong, "%dx%d smoothing %g%s label too large", (int)rows, (int)classes, (double)smoothing,
                    text);
        wrong.prepare = negative_label;
        kernel_emit(sink, &wrong, "%dx%d smoothing %g%s label negative", (int)rows, (int)classes, (double)smoothing,
                    text);
    }
    cross_entropy_backward(sink, t, rows, classes, smoothing);
}

/* Set some weights to 0, where a label may be anything. */
static void mask_rows(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *weights = &operation->in[3];
    int32_t *labels = operation->in[1].data;
    for (int64_t n = 0; n < weights->shape.dim[0]; n += 3) {
        if (weights->dtype == SDLF_FLOAT32)
            ((float *)weights->data)[n] = 0;
        else
            ((double *)weights->data)[n] = 0;
        labels[n] = -1;
    }
}

static void weighted_cases(kernel_sink *sink, sdlf_dtype t, int64_t rows, int64_t classes, float smoothing)
{
    kernel_case made = cross_entropy(t, rows, classes, smoothing, true);
    made.operation.in[3] = kernel_tensor(t, sdlf_shape(rows));
    made.prepare = mask_rows;
    made.tolerance = 64 + (double)rows; /* a sum over rows, not a mean */
    kernel_emit(sink, &made, "%dx%d smoothing %g weights", (int)rows, (int)classes, (double)smoothing);
    sdlf_operation *o = &made.operation;
    o->in[2] = o->out[1];
    o->out[3] = o->in[0];
    made.in[2].values = VALUES_POSITIVE;
    kernel_emit(sink, &made, "%dx%d smoothing %g weights gradient", (int)rows, (int)classes, (double)smoothing);
    o->kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD;
    o->out[1] = o->out[2] = o->out[3] = (sdlf_tensor){.dtype = SDLF_NONE};
    made.in[0].values = VALUES_POSITIVE;
    made.tolerance = 8;
    kernel_emit(sink, &made, "%dx%d smoothing %g weights", (int)rows, (int)classes, (double)smoothing);
}

void softmax_cases(kernel_sink *sink, sdlf_dtype t)
{
    const sdlf_shape shapes[] = {sdlf_shape(1, 1),    sdlf_shape(5, 10),   sdlf_shape(3, 33),
                                 sdlf_shape(2, 5, 7), sdlf_shape(4, 1001), sdlf_shape(3, 60, 70),
                                 sdlf_shape(900, 10), sdlf_shape(37, 8),   sdlf_shape(37, 16)};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int axis = 0; axis < shapes[i].rank; axis++) {
            for (int variant = 0; variant < 4; variant++)
                softmax_pair(sink, t, shapes[i], axis, variant & 1, variant & 2);
        }
    }
    static const int64_t sizes[][2] = {{1, 1}, {1, 10}, {64, 10}, {7, 3}, {19, 33}, {5, 1001}, {200, 10}, {1000, 10}};
    for (int i = 0; i < 8; i++) {
        cross_entropy_cases(sink, t, sizes[i][0], sizes[i][1], 0);
        cross_entropy_cases(sink, t, sizes[i][0], sizes[i][1], 0.1f);
        weighted_cases(sink, t, sizes[i][0], sizes[i][1], i & 1 ? 0.1f : 0);
        weighted_cases(sink, t, 37 * sizes[i][0], sizes[i][1], i & 1 ? 0 : 0.1f);
    }
    static const int64_t strange[][2] = {{45, 1}, {45, 8}, {45, 10}, {45, 16}, {45, 33}, {45, 1001}};
    for (int i = 0; i < 6; i++) {
        strange_cases(sink, t, strange[i][0], strange[i][1]);
        strange_cross_entropy(sink, t, strange[i][0], strange[i][1]);
    }
}

void softmax_bench(kernel_sink *sink, sdlf_dtype t)
{
    softmax_pair(sink, t, sdlf_shape(1024, 10), 1, false, false);
    softmax_pair(sink, t, sdlf_shape(64, 1000), 1, true, false);
    for (int rows = 64; rows <= 1024; rows *= 16) {
        kernel_case forward = cross_entropy(t, rows, 10, 0, true), both = cross_entropy_gradient(t, rows, 10, 0, true);
        kernel_emit(sink, &forward, "%dx10 metrics", rows);
        kernel_emit(sink, &both, "%dx10 metrics gradient", rows);
        cross_entropy_backward(sink, t, rows, 10, 0);
    }
}
