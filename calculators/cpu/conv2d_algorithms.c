/* SPDX-License-Identifier: MIT */
/* The convolution algorithms: names, descriptions and costs. The kernels are kernels/conv2d*.c, im2col*.c, direct*.c, winograd*.c.
 *
 * "auto" selects a depthwise kernel (a part of "direct") for depthwise convolutions, else "direct" for small images whose filters fill
 * vectors, else "im2col". NHWC activations, which most plans have, go to "winograd-2x2" where it applies and pays, else to
 * "implicit-gemm"; their gradients likewise, under no name but "auto". It never selects the algorithms that run on request: "naive" is
 * a baseline to compare with, and "winograd-4x4" has larger rounding errors than the others (docs/guides/convolution-algorithms.md). */
#include "calculators/cpu/conv2d_algorithms.h"

const char *const cpu_conv2d_algorithms[] = {
    [CPU_CONV2D_AUTO] = "auto",
    [CPU_CONV2D_NAIVE] = "naive",
    [CPU_CONV2D_IM2COL] = "im2col",
    [CPU_CONV2D_DIRECT] = "direct",
    [CPU_CONV2D_IMPLICIT] = "implicit-gemm",
    [CPU_CONV2D_WINOGRAD_2] = "winograd-2x2",
    [CPU_CONV2D_WINOGRAD_4] = "winograd-4x4",
    [CPU_CONV2D_ALGORITHMS] = NULL,
};

static const char winograd_takes[] =
    "3x3 windows, stride 1, no dilation, not depthwise; activations that are channels last";

const sdlf_algorithm_note cpu_conv2d_notes[CPU_CONV2D_ALGORITHMS] = {
    [CPU_CONV2D_AUTO] = {.summary = "the plan's own choice"},
    [CPU_CONV2D_NAIVE] = {.summary = "the formula in plain loops", .on_request = true},
    [CPU_CONV2D_IM2COL] = {.summary = "patches as a matrix, piece by piece in the cache, and a matrix product"},
    [CPU_CONV2D_DIRECT] =
        {.summary = "images laid out by channels, vectors over filters; planes where filters read one channel",
         .takes = "small images, stride 1, one group; or filters of one channel"},
    [CPU_CONV2D_IMPLICIT] = {.summary = "a product of rows read in place; all channels where filters read one",
                             .takes = "activations that are channels last, as plans lay them out"},
    [CPU_CONV2D_WINOGRAD_2] = {.summary = "tiles of 2x2 outputs, 16 multiplications for 36", .takes = winograd_takes},
    [CPU_CONV2D_WINOGRAD_4] = {.summary = "tiles of 4x4 outputs, 36 multiplications for 144",
                               .takes = winograd_takes,
                               .on_request = true},
};

/* FLOPs of a two-axis transform, as written in kernels/winograd_transform.h: of a filter, of a tile of the input, and
 * of a tile of the output. */
typedef struct winograd_flops {
    int64_t filter, patch, output;
} winograd_flops;

/* Transformed filters, input tiles and products are written and read again. With groups, w[1] is the channel count of
 * one: the input tiles of all channels are transformed, but each product belongs to one group. */
static sdlf_cost winograd_work(const sdlf_operation *operation, int m)
{
    static const winograd_flops two = {.filter = 3 * 5 + 4 * 5, .patch = 4 * 4 + 4 * 4, .output = 4 * 4 + 2 * 4};
    static const winograd_flops four = {.filter = 3 * 12 + 6 * 12, .patch = 6 * 19 + 6 * 19, .output = 6 * 13 + 4 * 13};
    const winograd_flops *each = m == 2 ? &two : &four;
    const int64_t *x = operation->in[0].shape.dim, *w = operation->in[1].shape.dim, *y = operation->out[0].shape.dim;
    int64_t tiles = x[0] * cpu_divide_up(y[2], m) * cpu_divide_up(y[3], m), points = (m + 2) * (m + 2);
    int64_t size = (int64_t)sdlf_dtype_size(operation->in[0].dtype), filters = w[0] * w[1];
    bool ready = sdlf_tensor_present(&operation->prepared); /* then the transformed filters are read, and w is not */
    sdlf_cost cost = sdlf_operation_cost(operation);
    cost.flops = tiles * (x[1] * each->patch + w[0] * each->output) + 2 * points * tiles * filters;
    if (!ready) cost.flops += filters * each->filter;
    cost.bytes += 2 * points * tiles * (x[1] + w[0]) * size;
    cost.bytes += (ready ? points - 9 : 2 * points) * filters * size;
    return cost;
}

/* The im2col matrix is written and read; 1x1 windows need none. */
static sdlf_cost im2col_work(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim, *y = operation->out[0].shape.dim;
    const sdlf_window2d *window = &operation->conv2d.window;
    sdlf_cost cost = sdlf_operation_cost(operation);
    bool plain = window->size[0] == 1 && window->size[1] == 1 && y[2] == x[2] && y[3] == x[3];
    int64_t patches = x[0] * x[1] * window->size[0] * window->size[1] * y[2] * y[3];
    if (!plain) cost.bytes += 2 * patches * (int64_t)sdlf_dtype_size(operation->in[0].dtype);
    return cost;
}

sdlf_cost cpu_conv2d_work(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    int algorithm = operation->algorithm;
    if (algorithm == CPU_CONV2D_AUTO)
        algorithm = sdlf_calculator_slot(calculator, operation)->automatic(calculator, operation);
    int m = cpu_conv2d_winograd(algorithm);
    if (m > 0) return winograd_work(operation, m);
    return algorithm == CPU_CONV2D_IM2COL ? im2col_work(operation) : sdlf_operation_cost(operation);
}
