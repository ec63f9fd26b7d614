/* SPDX-License-Identifier: MIT */
/* Rows of `sdlf bench kernels`: operations along an axis, gathers and top-k. */
#include "apps/bench/kernels/kernels.h"

static sdlf_tensor indices(sdlf_dtype dtype, sdlf_shape shape)
{
    return sdlf_tensor_view(dtype, shape, NULL);
}

static void add_reductions(kernel_rows *rows, int64_t lines)
{
    static const char *const along[] = {"along columns", "along lines"};
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(lines, 1024));
    for (int axis = 0; axis < 2; axis++) {
        sdlf_shape shape = sdlf_shape(axis == 0 ? 1024 : lines);
        sdlf_operation sum = {.kind = SDLF_REDUCE, .in = {x}, .out = {kernel_rows_tensor(rows, shape)}};
        sum.reduce.axis = axis;
        kernel_rows_add(rows, &sum, false, "sum of %lldx1024 %s", (long long)lines, along[axis]);
        sum.reduce.function = SDLF_REDUCE_MAX;
        kernel_rows_add(rows, &sum, false, "maximum of %lldx1024 %s", (long long)lines, along[axis]);
        sdlf_operation largest = {.kind = SDLF_ARG_REDUCE, .in = {x}, .out = {indices(SDLF_INT64, shape)}};
        largest.arg_reduce.axis = axis;
        kernel_rows_add(rows, &largest, false, "%lldx1024 %s", (long long)lines, along[axis]);
    }
    sdlf_operation squares = {.kind = SDLF_REDUCE,
                              .in = {sdlf_tensor_reshape(x, sdlf_shape(lines * 1024))},
                              .out = {kernel_rows_tensor(rows, sdlf_shape(1))},
                              .reduce = {.function = SDLF_REDUCE_SUM_SQUARES}};
    kernel_rows_add(rows, &squares, false, "squares of %lld numbers to one", (long long)lines * 1024);
}

static void add_softmax(kernel_rows *rows, int64_t lines)
{
    static const sdlf_operation_kind kinds[][2] = {{SDLF_SOFTMAX_FORWARD, SDLF_SOFTMAX_BACKWARD},
                                                   {SDLF_LOG_SOFTMAX_FORWARD, SDLF_LOG_SOFTMAX_BACKWARD}};
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(lines, 1000)), image = kernel_rows_image(rows);
    for (int i = 0; i < 2; i++) {
        sdlf_operation forward = {.kind = kinds[i][0], .in = {x}, .out = {x}, .softmax = {.axis = 1}};
        kernel_rows_add(rows, &forward, false, "%lldx1000", (long long)lines);
        sdlf_operation backward = {.kind = kinds[i][1], .in = {x, x}, .out = {x}, .softmax = {.axis = 1}};
        kernel_rows_add(rows, &backward, false, "%lldx1000", (long long)lines);
        forward.in[0] = forward.out[0] = image;
        kernel_rows_add(rows, &forward, false, "over 128 channels of 64x64");
        backward.in[0] = backward.in[1] = backward.out[0] = image;
        kernel_rows_add(rows, &backward, false, "over 128 channels of 64x64");
    }
}

static void add_loss(kernel_rows *rows, int64_t lines, int64_t classes)
{
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(lines, classes)), one = kernel_rows_tensor(rows, sdlf_shape(1));
    sdlf_tensor labels = indices(SDLF_INT32, sdlf_shape(lines)), metrics = indices(SDLF_FLOAT64, sdlf_shape(3));
    sdlf_operation forward = {
        .kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD, .in = {x, labels, one}, .out = {x, one, metrics, x}};
    kernel_rows_add(rows, &forward, false, "%lldx%lld, with the gradient", (long long)lines, (long long)classes);
    sdlf_operation backward = {.kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD, .in = {x, labels, one}, .out = {x}};
    kernel_rows_add(rows, &backward, false, "%lldx%lld", (long long)lines, (long long)classes);
}

static void add_picking(kernel_rows *rows, int64_t lines)
{
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(lines, 1024)), index = indices(SDLF_INT32, sdlf_shape(lines));
    sdlf_operation gather = {.kind = SDLF_GATHER, .in = {x, index}, .out = {x}};
    kernel_rows_add(rows, &gather, false, "%lld lines of 1024", (long long)lines);
    int64_t some = lines < 32768 ? lines : 32768;
    sdlf_tensor part = kernel_rows_tensor(rows, sdlf_shape(some, 1024));
    sdlf_operation backward = {
        .kind = SDLF_GATHER_BACKWARD, .in = {part, indices(SDLF_INT32, sdlf_shape(some))}, .out = {part}};
    kernel_rows_add(rows, &backward, false, "%lld lines of 1024", (long long)some);
    sdlf_shape few = sdlf_shape(lines, 5);
    sdlf_operation top = {
        .kind = SDLF_TOP_K, .in = {x}, .out = {kernel_rows_tensor(rows, few), indices(SDLF_INT64, few)}};
    top.top_k.axis = 1;
    kernel_rows_add(rows, &top, false, "5 of each of %lldx1024", (long long)lines);
}

static void add_resampling(kernel_rows *rows)
{
    static const char *const names[] = {"nearest", "linear", "cubic"};
    sdlf_tensor y = kernel_rows_image(rows);
    for (int axis = 2; axis < 4; axis++) {
        sdlf_shape shape = y.shape;
        shape.dim[axis] /= 2;
        for (int mode = SDLF_RESAMPLE_NEAREST; mode <= SDLF_RESAMPLE_CUBIC; mode++) {
            sdlf_operation twice = {.kind = SDLF_RESAMPLE, .in = {kernel_rows_tensor(rows, shape)}, .out = {y}};
            twice.resample =
                (sdlf_resample_options){.axis = axis, .mode = (sdlf_resample_mode)mode, .scale = 2, .cubic = -0.75f};
            kernel_rows_add(rows, &twice, false, "%s, twice as %s", names[mode], axis == 2 ? "high" : "wide");
            sdlf_operation back = twice;
            back.kind = SDLF_RESAMPLE_BACKWARD;
            back.in[0] = y;
            back.out[0] = twice.in[0];
            kernel_rows_add(rows, &back, false, "%s, twice as %s", names[mode], axis == 2 ? "high" : "wide");
        }
    }
}

void kernel_rows_axes(kernel_rows *rows)
{
    int64_t lines = rows->elements / 1024;
    if (lines < 1) lines = 1;
    add_reductions(rows, lines);
    add_softmax(rows, lines);
    add_loss(rows, lines, 1000);
    add_loss(rows, 1024, 10);
    add_picking(rows, lines);
    add_resampling(rows);
}
