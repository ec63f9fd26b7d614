/* SPDX-License-Identifier: MIT */
/* The reference calculator against small examples worked out by hand: convolution and pooling. */
#include "by_hand.h"

#include "calculators/fusions/conv2d_pool.h"

#include <math.h>

#define CHECK_VALUES(found, ...) BY_HAND(1e-12, found, __VA_ARGS__)

/* ---- convolution ---- */

static sdlf_window2d square(int size, int stride, int padding)
{
    sdlf_window2d window = {{size, size}, {stride, stride}, {1, 1}, {padding, padding}, {padding, padding}};
    return window;
}

static void conv2d_forward(void)
{
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4}, y[4], bias[] = {10};
    sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD, .conv2d = {.window = square(2, 1, 0), .groups = 1}};
    o.in[0] = d(sdlf_shape(1, 1, 3, 3), x), o.in[1] = d(sdlf_shape(1, 1, 2, 2), w);
    o.out[0] = d(sdlf_shape(1, 1, 2, 2), y);
    compute(o); /* 1*1 + 2*2 + 3*4 + 4*5 = 37 */
    CHECK_VALUES(y, 37, 47, 67, 77);
    o.in[2] = d(sdlf_shape(1), bias), o.in[3] = d(sdlf_shape(1, 1, 2, 2), (double[]){-50, 0, 0, 1});
    o.conv2d.activation.function = SDLF_RELU;
    compute(o);
    CHECK_VALUES(y, 0, 57, 77, 88);

    sdlf_operation padded = {.kind = SDLF_CONV2D_FORWARD, .conv2d = {.window = square(2, 2, 0), .groups = 1}};
    padded.conv2d.window.padding_before[0] = 1; /* a row of zeros on top, a column at the left */
    padded.conv2d.window.padding_before[1] = 1;
    padded.in[0] = o.in[0], padded.in[1] = o.in[1], padded.out[0] = o.out[0];
    compute(padded); /* (0 0; 0 1), (0 0; 2 3), (0 4; 0 7), (5 6; 8 9) */
    CHECK_VALUES(y, 4, 18, 36, 77);

    double spread[1]; /* dilation 2: the corners */
    sdlf_operation dilated = padded;
    dilated.conv2d.window = square(2, 1, 0);
    dilated.conv2d.window.dilation[0] = dilated.conv2d.window.dilation[1] = 2;
    dilated.out[0] = d(sdlf_shape(1, 1, 1, 1), spread);
    compute(dilated); /* 1*1 + 2*3 + 3*7 + 4*9 */
    CHECK_VALUES(spread, 64);
}

/* Two groups of two channels, three filters each, 1x1: every filter sees only its own group. */
static void conv2d_groups(void)
{
    double x[] = {1, 10, 100, 1000}, w[] = {1, 1, 2, 0, 0, 3, 1, 1, 2, 0, 0, 3}, y[6];
    sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD, .conv2d = {.window = square(1, 1, 0), .groups = 2}};
    o.in[0] = d(sdlf_shape(1, 4, 1, 1), x), o.in[1] = d(sdlf_shape(6, 2, 1, 1), w),
    o.out[0] = d(sdlf_shape(1, 6, 1, 1), y);
    compute(o);
    CHECK_VALUES(y, 11, 2, 30, 1100, 200, 3000);
}

static void conv2d_backward(void)
{
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4}, dy[] = {1, 0, 0, -1}, dx[9], dw[4], db[1];
    sdlf_operation o = {.kind = SDLF_CONV2D_BACKWARD_INPUT, .conv2d = {.window = square(2, 1, 0), .groups = 1}};
    o.in[0] = d(sdlf_shape(1, 1, 2, 2), dy), o.in[1] = d(sdlf_shape(1, 1, 2, 2), w);
    o.out[0] = d(sdlf_shape(1, 1, 3, 3), dx);
    compute(o); /* w at the upper left, minus w at the lower right */
    CHECK_VALUES(dx, 1, 2, 0, 3, 3, -2, 0, -3, -4);
    o.kind = SDLF_CONV2D_BACKWARD_WEIGHTS;
    o.in[0] = d(sdlf_shape(1, 1, 3, 3), x), o.in[1] = d(sdlf_shape(1, 1, 2, 2), dy);
    o.out[0] = d(sdlf_shape(1, 1, 2, 2), dw), o.out[1] = d(sdlf_shape(1), db);
    compute(o); /* 1 - 5, 2 - 6, 4 - 8, 5 - 9 */
    CHECK_VALUES(dw, -4, -4, -4, -4);
    CHECK_VALUES(db, 0);
}

/* A 1x1 convolution by 2 and a pool of 2x2 over two windows of an image of 2x5: a column is left over. */
static void conv2d_relu_max_pool(void)
{
    double x[] = {1, 3, -1, -2, 9, 3, 2, -3, -1, 9}, w[] = {2}, bias[] = {1}, y[2], dy[] = {8, 5}, dw[1], db[1], dx[10];
    uint8_t mask[2];
    sdlf_operation o = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_conv2d_pool_forward_fusion}};
    *conv2d_pool_options_in(&o) =
        (conv2d_pool_options){.window = square(1, 1, 0), .groups = 1, .pool = square(2, 2, 0)};
    o.in[0] = d(sdlf_shape(1, 1, 2, 5), x), o.in[1] = d(sdlf_shape(1, 1, 1, 1), w), o.in[2] = d(sdlf_shape(1), bias);
    o.out[0] = d(sdlf_shape(1, 1, 1, 2), y), o.out[1] = of(SDLF_UINT8, sdlf_shape(1, 1, 1, 2), mask);
    compute(o); /* 3 7 / 7 5: two positions attain 7; the other window is nowhere positive */
    CHECK_VALUES(y, 7, 0);
    CHECK_EQUAL(mask[0], 1 << 1 | 1 << 2);
    CHECK_EQUAL(mask[1], 0);

    sdlf_operation back = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_conv2d_pool_backward_fusion}};
    *conv2d_pool_options_in(&back) = *conv2d_pool_options_of(&o);
    back.in[0] = o.in[0], back.in[1] = o.in[1], back.in[2] = d(sdlf_shape(1, 1, 1, 2), dy), back.in[3] = o.out[1];
    back.out[0] = d(sdlf_shape(1, 1, 1, 1), dw), back.out[1] = d(sdlf_shape(1), db), back.out[2] = d(o.in[0].shape, dx);
    compute(back); /* 4 to each of the two threes */
    CHECK_VALUES(dw, 24);
    CHECK_VALUES(db, 8);
    CHECK_VALUES(dx, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0);

    conv2d_pool_options_in(&o)->ties = conv2d_pool_options_in(&back)->ties = SDLF_TIES_FIRST;
    compute(o);
    CHECK_EQUAL(mask[0], 1 << 1);
    compute(back);
    CHECK_VALUES(dx, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* ---- pools ---- */

/* Three windows of 2x2: with two equal maxima, without positive values, and with a NaN. */
static void max_pool2d_with_mask(void)
{
    double x[] = {1, 3, -1, -2, 4, NAN, 3, 0, -1, -3, 4, 4}, y[3], dy[] = {8, 5, 7}, dx[12];
    uint8_t mask[3];
    sdlf_operation o = {.kind = SDLF_MAX_POOL2D_FORWARD, .pool2d = {.window = square(2, 2, 0)}};
    o.in[0] = d(sdlf_shape(1, 1, 2, 6), x), o.out[0] = d(sdlf_shape(1, 1, 1, 3), y);
    o.out[1] = of(SDLF_UINT8, sdlf_shape(1, 1, 1, 3), mask);
    sdlf_operation back = {.kind = SDLF_MAX_POOL2D_BACKWARD, .pool2d = o.pool2d};
    back.in[2] = d(sdlf_shape(1, 1, 1, 3), dy), back.in[3] = o.out[1], back.out[0] = d(sdlf_shape(1, 1, 2, 6), dx);
    compute(o);
    CHECK(y[0] == 3 && y[1] == -1 && isnan(y[2]));
    CHECK(mask[0] == (1 << 1 | 1 << 2) && mask[1] == (1 << 0 | 1 << 2) && mask[2] == 0);
    compute(back);
    CHECK_VALUES(dx, 0, 4, 2.5, 0, 0, 0, 4, 0, 2.5, 0, 0, 0);
    o.pool2d.activation.function = SDLF_RELU, o.pool2d.ties = SDLF_TIES_FIRST;
    compute(o);
    CHECK(y[0] == 3 && y[1] == 0 && isnan(y[2]));
    CHECK(mask[0] == 1 << 1 && mask[1] == 0 && mask[2] == 0);
    compute(back);
    CHECK_VALUES(dx, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void max_pool2d(void)
{
    double x[] = {1, 3, 3, 0, 3, 2}, y[2], dy[] = {6, 10}, dx[6];
    sdlf_operation o = {.kind = SDLF_MAX_POOL2D_FORWARD, .pool2d = {.window = square(2, 1, 0)}};
    o.in[0] = d(sdlf_shape(1, 1, 2, 3), x), o.out[0] = d(sdlf_shape(1, 1, 1, 2), y);
    compute(o); /* windows (1 3; 0 3) and (3 3; 3 2) */
    CHECK_VALUES(y, 3, 3);
    o.kind = SDLF_MAX_POOL2D_BACKWARD;
    o.in[1] = o.out[0], o.in[2] = d(sdlf_shape(1, 1, 1, 2), dy), o.out[0] = d(o.in[0].shape, dx);
    compute(o); /* the first gives 3 to each of two, the second 10/3 to each of three */
    CHECK_VALUES(dx, 0, 3 + 10.0 / 3, 10.0 / 3, 0, 3 + 10.0 / 3, 0);
    o.pool2d.ties = SDLF_TIES_FIRST;
    compute(o);
    CHECK_VALUES(dx, 0, 16, 0, 0, 0, 0);

    double low[] = {-5, -7}, padded[3]; /* padding never wins, even over negative numbers; NaN does */
    sdlf_operation pad = {.kind = SDLF_MAX_POOL2D_FORWARD,
                          .pool2d = {.window = {{1, 2}, {1, 1}, {1, 1}, {0, 1}, {0, 1}}}};
    pad.in[0] = d(sdlf_shape(1, 1, 1, 2), low), pad.out[0] = d(sdlf_shape(1, 1, 1, 3), padded);
    compute(pad);
    CHECK_VALUES(padded, -5, -5, -7);
    low[0] = (double)NAN;
    compute(pad);
    CHECK(isnan(padded[0]) && isnan(padded[1]) && padded[2] == -7);
}

static void avg_pool2d(void)
{
    double x[] = {2, 4, 6}, y[2], dy[] = {4, 8}, dx[3];
    sdlf_operation o = {.kind = SDLF_AVG_POOL2D_FORWARD,
                        .pool2d = {.window = {{1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 1}}}};
    o.in[0] = d(sdlf_shape(1, 1, 1, 3), x), o.out[0] = d(sdlf_shape(1, 1, 1, 2), y);
    compute(o);
    CHECK_VALUES(y, 3, 6);
    o.pool2d.count_padding = true;
    compute(o);
    CHECK_VALUES(y, 3, 3);
    o.kind = SDLF_AVG_POOL2D_BACKWARD, o.in[0] = d(sdlf_shape(1, 1, 1, 2), dy),
    o.out[0] = d(sdlf_shape(1, 1, 1, 3), dx);
    compute(o);
    CHECK_VALUES(dx, 2, 2, 4);
    o.pool2d.count_padding = false;
    compute(o);
    CHECK_VALUES(dx, 2, 2, 8);
}

static void global_avg_pool2d(void)
{
    double x[] = {1, 2, 3, 6, -4, -4, -4, 0}, y[2], dx[8];
    sdlf_operation o = {.kind = SDLF_GLOBAL_AVG_POOL2D_FORWARD};
    o.in[0] = d(sdlf_shape(1, 2, 2, 2), x), o.out[0] = d(sdlf_shape(1, 2, 1, 1), y);
    compute(o);
    CHECK_VALUES(y, 3, -3);
    o.kind = SDLF_GLOBAL_AVG_POOL2D_BACKWARD, o.in[0] = d(sdlf_shape(1, 2, 1, 1), y),
    o.out[0] = d(sdlf_shape(1, 2, 2, 2), dx);
    compute(o);
    CHECK_VALUES(dx, 0.75, 0.75, 0.75, 0.75, -0.75, -0.75, -0.75, -0.75);
}

int main(void)
{
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    RUN(conv2d_forward);
    RUN(conv2d_groups);
    RUN(conv2d_backward);
    RUN(conv2d_relu_max_pool);
    RUN(max_pool2d_with_mask);
    RUN(max_pool2d);
    RUN(avg_pool2d);
    RUN(global_avg_pool2d);
    sdlf_calculator_close(reference);
    return test_summary();
}
