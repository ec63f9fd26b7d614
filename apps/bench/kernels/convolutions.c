/* SPDX-License-Identifier: MIT */
/* Rows of `sdlf bench kernels`: convolutions, and convolutions fused with each other, or with ReLU and max-pool. */
#include <sdlf/fusion.h>

#include "apps/bench/kernels/kernels.h"

static int64_t shrunk(const kernel_rows *rows, int64_t batch)
{
    int64_t n = batch * rows->elements >> 25;
    return n < 1 ? 1 : n;
}

typedef struct geometry {
    int64_t n, c, side, k;
    int window, stride, groups;
} geometry;

static sdlf_window2d window_of(int size, int stride)
{
    int pad = size / 2;
    return (sdlf_window2d){.size = {size, size},
                           .stride = {stride, stride},
                           .dilation = {1, 1},
                           .padding_before = {pad, pad},
                           .padding_after = {pad, pad}};
}

/* Adds fprop, dgrad and wgrad. */
static void add_conv2d(kernel_rows *rows, geometry g)
{
    sdlf_operation forward = {.kind = SDLF_CONV2D_FORWARD}, input, weights;
    forward.conv2d.window = window_of(g.window, g.stride);
    forward.conv2d.groups = g.groups;
    int64_t n = shrunk(rows, g.n), out = sdlf_window2d_output(&forward.conv2d.window, 0, g.side);
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(n, g.c, g.side, g.side));
    sdlf_tensor w = kernel_rows_tensor(rows, sdlf_shape(g.k, g.c / g.groups, g.window, g.window));
    sdlf_tensor y = kernel_rows_tensor(rows, sdlf_shape(n, g.k, out, out));
    forward.in[0] = x;
    forward.in[1] = w;
    forward.out[0] = y;
    input = weights = forward;
    input.kind = SDLF_CONV2D_BACKWARD_INPUT;
    input.in[0] = y;
    input.out[0] = x;
    weights.kind = SDLF_CONV2D_BACKWARD_WEIGHTS;
    weights.in[1] = y;
    weights.out[0] = w;
    weights.out[1] = kernel_rows_tensor(rows, sdlf_shape(g.k));
    const sdlf_operation *all[] = {&forward, &input, &weights};
    for (int i = 0; i < 3; i++)
        kernel_rows_add(rows, all[i], true, "%lldx%lldx%lldx%lld, %lld of %dx%d%s%s", (long long)n, (long long)g.c,
                        (long long)g.side, (long long)g.side, (long long)g.k, g.window, g.window,
                        g.stride > 1 ? ", stride 2" : "", g.groups > 1 ? ", depthwise" : "");
}

/* A fusion of 5x5 convolutions of x. */
static void add_fused(kernel_rows *rows, const char *name, const sdlf_operation *const *members, sdlf_tensor x,
                      int64_t k, const char *text)
{
    const int64_t *dim = x.shape.dim;
    sdlf_operation fused;
    if (sdlf_fusion_join(sdlf_fusion_find(name), members, &fused))
        kernel_rows_add(rows, &fused, true, "%lldx%lldx%lldx%lld, %lld of 5x5%s", (long long)dim[0], (long long)dim[1],
                        (long long)dim[2], (long long)dim[3], (long long)k, text);
}

/* The layers of fast_cnn and simple_cnn. */
static void add_conv2d_pool(kernel_rows *rows, int64_t batch, int64_t c, int64_t side, int64_t k, bool dx)
{
    const int64_t n = shrunk(rows, batch);
    const sdlf_window2d window = window_of(5, 1), halve = {.size = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}};
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(n, c, side, side));
    sdlf_tensor w = kernel_rows_tensor(rows, sdlf_shape(k, c, 5, 5)), b = kernel_rows_tensor(rows, sdlf_shape(k));
    sdlf_tensor r = kernel_rows_tensor(rows, sdlf_shape(n, k, side, side));
    sdlf_tensor y = kernel_rows_tensor(rows, sdlf_shape(n, k, side / 2, side / 2));
    sdlf_tensor mask = sdlf_tensor_view(SDLF_UINT8, y.shape, NULL), rate = kernel_rows_tensor(rows, sdlf_shape(1));
    const sdlf_operation conv = {
        .kind = SDLF_CONV2D_FORWARD, .in = {x, w, b}, .out = {r}, .conv2d = {.window = window, .groups = 1}};
    const sdlf_operation pool = {.kind = SDLF_MAX_POOL2D_FORWARD,
                                 .in = {r},
                                 .out = {y, mask},
                                 .pool2d = {.window = halve, .activation = {.function = SDLF_RELU}}};
    const sdlf_operation pool_back = {
        .kind = SDLF_MAX_POOL2D_BACKWARD, .in = {[2] = y, [3] = mask}, .out = {r}, .pool2d = {.window = halve}};
    const sdlf_operation input = {
        .kind = SDLF_CONV2D_BACKWARD_INPUT, .in = {r, w}, .out = {x}, .conv2d = {.window = window, .groups = 1}};
    const sdlf_operation weights = {
        .kind = SDLF_CONV2D_BACKWARD_WEIGHTS, .in = {x, r}, .out = {w, b}, .conv2d = {.window = window, .groups = 1}};
    const sdlf_operation update = {.kind = SDLF_SGD_UPDATE, .in = {w, rate}, .out = {w, w}, .sgd = {.momentum = 0.9f}};
    const sdlf_operation of_bias = {.kind = SDLF_SGD_UPDATE, .in = {b, rate}, .out = {b, b}, .sgd = {.momentum = 0.9f}};
    const sdlf_operation *const forward[] = {&conv, &pool, NULL};
    const sdlf_operation *const backward[] = {&pool_back, dx ? &input : NULL, &weights, &update, &of_bias};
    add_fused(rows, "conv2d_relu_max_pool_forward", forward, x, k, "");
    add_fused(rows, "conv2d_relu_max_pool_backward", backward, x, k, dx ? ", dx" : "");
    add_fused(rows, "conv2d_relu_max_pool_backward_sgd", backward, x, k, dx ? ", dx" : "");
}

/* A convolution without a bias, of x into y. */
static sdlf_operation convolve(const kernel_rows *rows, sdlf_tensor x, sdlf_tensor y, sdlf_window2d window, int groups)
{
    sdlf_shape w =
        sdlf_shape(y.shape.dim[1], x.shape.dim[1] / groups, (int64_t)window.size[0], (int64_t)window.size[1]);
    return (sdlf_operation){.kind = SDLF_CONV2D_FORWARD,
                            .in = {x, kernel_rows_tensor(rows, w)},
                            .out = {y},
                            .conv2d = {.window = window, .groups = groups}};
}

/* Blocks of MobileNetV2, with the sum where they add their input. The batch is one image: the fusion's use
 * case. */
static void add_conv2d_inverted(kernel_rows *rows, int64_t c, int64_t side, int64_t m, int64_t k, int stride)
{
    const sdlf_window2d window = window_of(3, stride);
    const int64_t out = sdlf_window2d_output(&window, 0, side);
    sdlf_tensor x = kernel_rows_tensor(rows, sdlf_shape(1, c, side, side));
    sdlf_tensor h = kernel_rows_tensor(rows, sdlf_shape(1, m, side, side));
    sdlf_tensor z = kernel_rows_tensor(rows, sdlf_shape(1, m, out, out));
    sdlf_operation expand = convolve(rows, x, h, window_of(1, 1), 1), filter = convolve(rows, h, z, window, (int)m);
    sdlf_operation project =
        convolve(rows, z, kernel_rows_tensor(rows, sdlf_shape(1, k, out, out)), window_of(1, 1), 1);
    if (c == k && stride == 1) project.in[3] = x;
    const sdlf_operation *const members[] = {&expand, &filter, &project};
    sdlf_operation block;
    const sdlf_fusion *fusion = sdlf_fusion_find("conv2d_inverted_residual_forward");
    if (sdlf_fusion_join(fusion, members, &block))
        kernel_rows_add(rows, &block, true, "1x%lldx%lldx%lld, %lld of 1x1, 3x3%s, %lld of 1x1", (long long)c,
                        (long long)side, (long long)side, (long long)m, stride > 1 ? ", stride 2" : "", (long long)k);
}

void kernel_rows_convolutions(kernel_rows *rows)
{
    add_conv2d(rows, (geometry){32, 64, 56, 64, 3, 1, 1});     /* ResNet's first stage */
    add_conv2d(rows, (geometry){32, 256, 14, 1024, 1, 1, 1});  /* ResNet-50's third, pointwise */
    add_conv2d(rows, (geometry){32, 144, 56, 144, 3, 1, 144}); /* MobileNetV2 */
    add_conv2d_inverted(rows, 16, 112, 96, 24, 2);
    add_conv2d_inverted(rows, 64, 14, 384, 64, 1);
    add_conv2d_inverted(rows, 160, 7, 960, 160, 1);
    add_conv2d_pool(rows, 1024, 1, 28, 32, false);
    add_conv2d_pool(rows, 1024, 16, 14, 32, true);
}
