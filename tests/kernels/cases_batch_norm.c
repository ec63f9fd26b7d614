/* SPDX-License-Identifier: MIT */
/* Cases of batch_norm2d.
 *
 * Tolerance: values up to 1 are multiplied by 1 / deviation, which is about 2; 64 rounding errors leave a margin for
 * sums in float32. With values around 100, a mean in float32 is off by up to 100 rounding errors; the cancellation in
 * E[x^2] - E[x]^2 would be off by 100 times more, and is detected. Sums of n terms in the gradient: n errors. */
#include "kernels.h"

static const sdlf_shape *shapes(int *count)
{
    static sdlf_shape all[10];
    all[0] = sdlf_shape(1, 1, 1, 1);
    all[1] = sdlf_shape(2, 3, 5, 7);
    all[2] = sdlf_shape(4, 17, 3, 3);
    all[3] = sdlf_shape(9, 6);
    all[4] = sdlf_shape(1, 5);
    all[5] = sdlf_shape(1, 2, 13, 17);
    all[6] = sdlf_shape(33, 35);
    all[7] = sdlf_shape(129, 40); /* channels in eights from here on: 16-bit storage */
    all[8] = sdlf_shape(1, 8);
    all[9] = sdlf_shape(700, 264);
    *count = 10;
    return all;
}

static sdlf_operation describe(sdlf_operation_kind kind, sdlf_dtype t, sdlf_shape shape)
{
    sdlf_tensor x = kernel_tensor(t, shape), c = kernel_tensor(t, sdlf_shape(shape.dim[1]));
    sdlf_operation o = {.kind = kind, .in = {x, c, c}, .out = {x}, .batch_norm = {.epsilon = 1e-3f, .momentum = 0.1f}};
    return o;
}

static void forward(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, kernel_values values)
{
    kernel_case made = {.operation = describe(SDLF_BATCH_NORM2D_FORWARD, t, shape)};
    for (int i = 1; i <= 4; i++) made.operation.out[i] = made.operation.in[1];
    made.in[0].values = values;
    made.out[4].values = VALUES_POSITIVE;
    made.tolerance = values == VALUES_OFFSET ? 4000 : 64; /* the sum of hundreds of such values adds its own errors */
    kernel_emit(sink, &made, "%s%s", sdlf_shape_print(shape).text, values == VALUES_OFFSET ? " around 100" : "");
}

static void infer(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, int activation, bool aliased)
{
    kernel_case made = {.operation = describe(SDLF_BATCH_NORM2D_INFER, t, shape), .aliased = aliased};
    made.operation.in[3] = made.operation.in[4] = made.operation.in[1];
    made.operation.batch_norm.activation = kernel_activation[activation];
    made.in[4].values = VALUES_POSITIVE;
    made.tolerance = 32;
    kernel_emit(sink, &made, "%s%s", sdlf_shape_print(shape).text, kernel_activation_name[activation]);
}

static void backward(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, bool dx)
{
    kernel_case made = {.operation = describe(SDLF_BATCH_NORM2D_BACKWARD, t, shape)};
    made.operation.in[3] = made.operation.in[2];
    made.operation.in[4] = made.operation.in[0];
    if (!dx) made.operation.out[0] = (sdlf_tensor){.dtype = SDLF_NONE};
    made.operation.out[1] = made.operation.out[2] = made.operation.in[1];
    made.in[3].values = VALUES_POSITIVE;
    made.tolerance = 4 * (double)(sdlf_shape_count(shape) / shape.dim[1]) + 64;
    kernel_emit(sink, &made, "%s%s", sdlf_shape_print(shape).text, dx ? " dx" : " without dx");
}

/* With a residual and an activation, as fused in training. */
static void forward_fused(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, bool residual, int activation,
                          bool aliased)
{
    kernel_case made = {.operation = describe(SDLF_BATCH_NORM2D_FORWARD, t, shape), .aliased = aliased, .alias = 3};
    for (int i = 1; i <= 4; i++) made.operation.out[i] = made.operation.in[1];
    if (residual) made.operation.in[3] = made.operation.in[0];
    made.operation.batch_norm.activation = kernel_activation[activation];
    made.out[4].values = VALUES_POSITIVE;
    made.tolerance = 80;
    kernel_emit(sink, &made, "%s%s%s", sdlf_shape_print(shape).text, residual ? " residual" : "",
                kernel_activation_name[activation]);
}

static void backward_fused(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape, int activation, bool dx, bool dresidual,
                           bool shift)
{
    kernel_case made = {.operation = describe(SDLF_BATCH_NORM2D_BACKWARD, t, shape)};
    const sdlf_tensor x = made.operation.in[0], c = made.operation.in[1], none = {.dtype = SDLF_NONE};
    made.operation.in[3] = c;
    made.operation.in[4] = x;
    if (activation != SDLF_IDENTITY) made.operation.in[shift ? 6 : 5] = shift ? c : x;
    made.operation.out[0] = dx ? x : none;
    made.operation.out[1] = made.operation.out[2] = c;
    if (dresidual) made.operation.out[3] = x;
    made.operation.batch_norm.activation = kernel_activation[activation];
    made.in[3].values = VALUES_POSITIVE;
    made.in[5].values = VALUES_GRID; /* including zeros */
    made.tolerance = 4 * (double)(sdlf_shape_count(shape) / shape.dim[1]) + 64;
    kernel_emit(sink, &made, "%s%s%s%s%s", sdlf_shape_print(shape).text, kernel_activation_name[activation],
                dx ? " dx" : " without dx", dresidual ? " dresidual" : "", shift ? " shift" : "");
}

void batch_norm_cases(kernel_sink *sink, sdlf_dtype t)
{
    int count;
    const sdlf_shape *all = shapes(&count);
    for (int i = 0; i < count; i++) {
        forward(sink, t, all[i], VALUES_UNIFORM);
        if (sdlf_shape_count(all[i]) > 2 * all[i].dim[1]) forward(sink, t, all[i], VALUES_OFFSET);
        for (int activation = 0; activation < KERNEL_EPILOGUES; activation++) {
            infer(sink, t, all[i], activation, false);
            infer(sink, t, all[i], activation, true);
        }
        backward(sink, t, all[i], true);
        backward(sink, t, all[i], false);
        for (int activation = SDLF_IDENTITY; activation <= SDLF_LEAKY_RELU; activation++) {
            forward_fused(sink, t, all[i], true, activation, activation == SDLF_RELU);
            forward_fused(sink, t, all[i], false, activation, false);
            backward_fused(sink, t, all[i], activation, true, true, false);
            backward_fused(sink, t, all[i], activation, activation != SDLF_CLIP, activation == SDLF_CLIP, false);
            if (activation != SDLF_IDENTITY) backward_fused(sink, t, all[i], activation, true, i % 2, true);
        }
        static const int of_input[] = {SDLF_SILU, SDLF_GELU, SDLF_HARD_SWISH, SDLF_MISH};
        for (int a = 0; a < 4; a++) { /* their slopes depend on the normalised values */
            forward_fused(sink, t, all[i], i % 2, of_input[a], false);
            backward_fused(sink, t, all[i], of_input[a], true, false, true);
            backward_fused(sink, t, all[i], of_input[a], i % 2, true, true);
        }
    }
}

void batch_norm_bench(kernel_sink *sink, sdlf_dtype t)
{
    sdlf_shape shape = sdlf_shape(32, 64, 56, 56);
    forward(sink, t, shape, VALUES_UNIFORM);
    infer(sink, t, shape, SDLF_RELU, false);
    backward(sink, t, shape, true);
}
