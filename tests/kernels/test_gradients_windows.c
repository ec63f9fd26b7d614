/* SPDX-License-Identifier: MIT */
/* Backward kinds with windows, convolution and pooling, of reference against finite differences of their forward
 * kinds. */
#include "differences.h"

#include "calculators/fusions/conv2d_pool.h"

/* ---- convolution ---- */

typedef struct geometry {
    int64_t n, c, h, w, k;
    int groups;
    sdlf_window2d window;
} geometry;

static const geometry geometries[] = {
    {2, 2, 5, 4, 3, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {1, 4, 7, 6, 6, 2, {{2, 3}, {2, 1}, {1, 2}, {0, 1}, {2, 0}}},
    {2, 3, 6, 6, 3, 3, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}},
    {1, 2, 3, 3, 2, 1, {{2, 2}, {3, 3}, {1, 1}, {0, 0}, {2, 2}}},
};

static sdlf_shape output_of(const geometry *g)
{
    return sdlf_shape(g->n, g->k, sdlf_window2d_output(&g->window, 0, g->h), sdlf_window2d_output(&g->window, 1, g->w));
}

static void conv2d(void)
{
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        const geometry *g = &geometries[i];
        start(i + 1);
        sdlf_tensor x = make(sdlf_shape(g->n, g->c, g->h, g->w));
        sdlf_tensor w = make(sdlf_shape(g->k, g->c / g->groups, g->window.size[0], g->window.size[1]));
        sdlf_tensor bias = make(sdlf_shape(g->k)), y = make(output_of(g)), dy = make(y.shape);
        sdlf_tensor dx = make(x.shape), dw = make(w.shape), db = make(bias.shape);
        sdlf_operation forward = {.kind = SDLF_CONV2D_FORWARD, .in = {x, w, bias}, .out = {y}};
        sdlf_operation input = {.kind = SDLF_CONV2D_BACKWARD_INPUT, .in = {dy, w}, .out = {dx}};
        sdlf_operation weights = {.kind = SDLF_CONV2D_BACKWARD_WEIGHTS, .in = {x, dy}, .out = {dw, db}};
        forward.conv2d.window = input.conv2d.window = weights.conv2d.window = g->window;
        forward.conv2d.groups = input.conv2d.groups = weights.conv2d.groups = g->groups;
        compute(&input);
        compute(&weights);
        check_gradient("conv2d dx", &forward, dy, x, dx);
        check_gradient("conv2d dw", &forward, dy, w, dw);
        check_gradient("conv2d db", &forward, dy, bias, db);
    }
}

static void conv2d_relu_max_pool(void)
{
    static const sdlf_window2d pools[] = {{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
                                          {{3, 1}, {3, 1}, {1, 1}, {0, 0}, {0, 0}}};
    for (int i = 0; i < 4; i++) {
        const geometry *g = &geometries[i / 2];
        const sdlf_window2d *pool = &pools[i % 2];
        start(10 + (uint64_t)i);
        sdlf_shape convolved = output_of(g);
        sdlf_tensor x = make(sdlf_shape(g->n, g->c, g->h, g->w));
        sdlf_tensor w = make(sdlf_shape(g->k, g->c / g->groups, g->window.size[0], g->window.size[1]));
        sdlf_tensor bias = make(sdlf_shape(g->k));
        sdlf_tensor y =
            make(sdlf_shape(g->n, g->k, convolved.dim[2] / pool->size[0], convolved.dim[3] / pool->size[1]));
        sdlf_tensor dy = make(y.shape), dx = make(x.shape), dw = make(w.shape), db = make(bias.shape);
        uint8_t marks[1024];
        sdlf_tensor mask = sdlf_tensor_view(SDLF_UINT8, y.shape, marks);
        sdlf_operation forward = {.kind = SDLF_FUSED,
                                  .in = {x, w, bias},
                                  .out = {y, mask},
                                  .fused = {.fusion = &sdlf_conv2d_pool_forward_fusion}};
        sdlf_operation backward = {.kind = SDLF_FUSED,
                                   .in = {x, w, dy, mask},
                                   .out = {dw, db, dx},
                                   .fused = {.fusion = &sdlf_conv2d_pool_backward_fusion}};
        *conv2d_pool_options_in(&forward) = *conv2d_pool_options_in(&backward) =
            (conv2d_pool_options){.window = g->window, .groups = g->groups, .pool = *pool};
        compute(&forward);
        compute(&backward);
        check_gradient("conv2d_relu_max_pool dw", &forward, dy, w, dw);
        check_gradient("conv2d_relu_max_pool db", &forward, dy, bias, db);
        check_gradient("conv2d_relu_max_pool dx", &forward, dy, x, dx);
    }
}

/* ---- pools ---- */

static void pool2d(void)
{
    static const sdlf_window2d windows[] = {{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
                                            {{3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}},
                                            {{2, 3}, {1, 2}, {2, 1}, {1, 2}, {0, 1}},
                                            {{2, 2}, {3, 3}, {1, 1}, {0, 0}, {0, 0}}};
    for (size_t i = 0; i < 4 * 4; i++) {
        const sdlf_window2d *window = &windows[i / 4];
        bool average = i % 4 >= 2;
        start(20 + i);
        sdlf_tensor x = make(sdlf_shape(2, 2, 6, 7));
        sdlf_tensor y = make(sdlf_shape(2, 2, sdlf_window2d_output(window, 0, 6), sdlf_window2d_output(window, 1, 7)));
        sdlf_tensor dy = make(y.shape), dx = make(x.shape);
        sdlf_operation forward = {
            .kind = average ? SDLF_AVG_POOL2D_FORWARD : SDLF_MAX_POOL2D_FORWARD, .in = {x}, .out = {y}};
        forward.pool2d.window = *window;
        forward.pool2d.count_padding = i % 2;
        forward.pool2d.ties = (sdlf_ties)(i % 2);
        sdlf_operation backward = {.kind = average ? SDLF_AVG_POOL2D_BACKWARD : SDLF_MAX_POOL2D_BACKWARD, .out = {dx}};
        backward.pool2d = forward.pool2d;
        backward.in[0] = average ? dy : x;
        if (!average) backward.in[1] = y, backward.in[2] = dy;
        compute(&forward);
        compute(&backward);
        check_gradient(average ? "avg_pool2d" : "max_pool2d", &forward, dy, x, dx);
    }
    start(40);
    sdlf_tensor x = make(sdlf_shape(2, 3, 4, 5)), y = make(sdlf_shape(2, 3, 1, 1)), dy = make(y.shape),
                dx = make(x.shape);
    sdlf_operation forward = {.kind = SDLF_GLOBAL_AVG_POOL2D_FORWARD, .in = {x}, .out = {y}};
    sdlf_operation backward = {.kind = SDLF_GLOBAL_AVG_POOL2D_BACKWARD, .in = {dy}, .out = {dx}};
    compute(&backward);
    check_gradient("global_avg_pool2d", &forward, dy, x, dx);
}

int main(void)
{
    static double numbers[POOL];
    test.number = numbers;
    CHECK_OK(sdlf_calculator_open(&test.reference, "reference", NULL));
    RUN(conv2d);
    RUN(conv2d_relu_max_pool);
    RUN(pool2d);
    sdlf_calculator_close(test.reference);
    return test_summary();
}
