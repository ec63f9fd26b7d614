/* SPDX-License-Identifier: MIT */
/* The ways to a convolution: names, notes and work. The kernels are kernels/conv2d*.c, im2col*.c, direct*.c, winograd*.c.
 *
 * "auto" takes a depthwise kernel (a part of "direct") where each filter reads one channel, else "direct" where images are
 * small and filters fill vectors, else "im2col". Activations that are channels last, as most plans have them, go to "winograd-2x2" where
 * that takes them and pays, else to "implicit-gemm"; their gradients likewise, under no name but "auto". It never takes what runs on request: the naive one is there to be compared with, and the
 * rounding errors of "winograd-4x4" are larger than those of the others (docs/guides/convolution-algorithms.md). */
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
    [CPU_CONV2D_AUTO] = {.summary = "what a plan takes by itself"},
    [CPU_CONV2D_NAIVE] = {.summary = "the formula in plain loops", .on_request = true},
    [CPU_CONV2D_IM2COL] = {.summary = "patches as a matrix, piece by piece in the cache, and a matrix product"},
    [CPU_CONV2D_DIRECT] =
        {.summary = "images laid out by channels, vectors over filters; planes where filters read one channel",
         .takes = "small images, stride 1, one group; or filters of one channel"},
    [CPU_CONV2D_IMPLICIT] = {.summary = "a product of rows read where they lie; all channels where filters read one",
                             .takes = "activations that are channels last, as plans lay them out"},
    [CPU_CONV2D_WINOGRAD_2] = {.summary = "tiles of 2x2 outputs, 16 multiplications for 36", .takes = winograd_takes},
    [CPU_CONV2D_WINOGRAD_4] = {.summary = "tiles of 4x4 outputs, 36 multiplications for 144",
                               .takes = winograd_takes,
                               .on_request = true},
};

/* Additions and multiplications of a transform of two axes, as kernels/winograd_transform.h writes them: of a filter, a patch
 * and a tile of outputs. */
typedef struct winograd_flops {
    int64_t filter, patch, output;
} winograd_flops;

/* Filters, patches and products are written, and read again. With groups, w[1] counts the channels of one: patches of all
 * channels are transformed, products are of a group each. */
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

/* The matrix of patches, written and read; windows of one element need none. */
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
