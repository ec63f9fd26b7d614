/* The reference calculator against small examples worked out by hand, one or more for every kind of operation. Gradients
 * are held against finite differences as well, in test_gradients.c; augmentation in test_augmentation.c. */
#include "testing.h"

#include <sdlf/calculator.h>
#include <sdlf/random.h>

#include <math.h>

static sdlf_calculator *reference;

static sdlf_tensor d(sdlf_shape shape, double *data)
{
    return sdlf_tensor_view(SDLF_FLOAT64, shape, data);
}

static sdlf_tensor of(sdlf_dtype dtype, sdlf_shape shape, void *data)
{
    return sdlf_tensor_view(dtype, shape, data);
}

static void compute(sdlf_operation operation)
{
    CHECK_OK(sdlf_calculator_run(reference, &operation));
}

#define CHECK_VALUES(found, ...)                                                                                       \
    check_values((found), (double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), __LINE__)

static void check_values(const double *found, const double *expected, int count, int line)
{
    for (int i = 0; i < count; i++) test_check_close(found[i], expected[i], 1e-12, __FILE__, line, "an element");
}

/* ---- memory ---- */

static void fill(void)
{
    int32_t whole[3] = {9, 9, 9};
    uint16_t half[2];
    compute((sdlf_operation){.kind = SDLF_FILL, .out = {of(SDLF_INT32, sdlf_shape(3), whole)}, .fill = {-3.75}});
    compute((sdlf_operation){.kind = SDLF_FILL, .out = {of(SDLF_FLOAT16, sdlf_shape(2), half)}, .fill = {1}});
    CHECK_EQUAL(whole[0], -3);
    CHECK_EQUAL(whole[2], -3);
    CHECK_EQUAL(half[1], 0x3C00);
}

static void copy(void)
{
    double x[] = {1, 2, 3, 4, 5, 6}, turned[6], wide[] = {0, 0, 0, 0, 0, 0, 0, 0};
    sdlf_tensor rows = d(sdlf_shape(2, 3), x);
    compute((sdlf_operation){
        .kind = SDLF_COPY, .in = {sdlf_tensor_transpose(rows, 0, 1)}, .out = {d(sdlf_shape(3, 2), turned)}});
    CHECK_VALUES(turned, 1, 4, 2, 5, 3, 6);
    compute((sdlf_operation){.kind = SDLF_COPY,
                             .in = {sdlf_tensor_narrow(rows, 1, 1, 2)},
                             .out = {sdlf_tensor_narrow(d(sdlf_shape(2, 4), wide), 1, 2, 2)}});
    CHECK_VALUES(wide, 0, 0, 2, 3, 0, 0, 5, 6);
    uint8_t bytes[6];
    compute((sdlf_operation){.kind = SDLF_COPY, .in = {rows}, .out = {of(SDLF_UINT8, sdlf_shape(2, 3), bytes)}});
    CHECK_EQUAL(bytes[5], 6);
}

static void gather_batch(void)
{
    uint8_t x[] = {10, 20, 30, 40, 50, 60};
    int32_t index[] = {2, 0, 2}, labels[] = {7, 8, 9}, picked[3];
    double y[6];
    sdlf_tensor rows = of(SDLF_INT32, sdlf_shape(3), index);
    compute((sdlf_operation){.kind = SDLF_GATHER_BATCH,
                             .in = {of(SDLF_UINT8, sdlf_shape(3, 2), x), rows},
                             .out = {d(sdlf_shape(3, 2), y)},
                             .gather = {.mean = 10, .scale = 0.5f}});
    CHECK_VALUES(y, 20, 25, 0, 5, 20, 25);
    compute((sdlf_operation){.kind = SDLF_GATHER_BATCH,
                             .in = {of(SDLF_INT32, sdlf_shape(3), labels), rows},
                             .out = {of(SDLF_INT32, sdlf_shape(3), picked)}});
    CHECK_EQUAL(picked[0], 9);
    CHECK_EQUAL(picked[1], 7);
}

/* ---- products and sums ---- */

static void gemm(void)
{
    double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, -1, 3, 1}, c[4], bias[] = {1, -100}, residual[] = {1, 2, 3, 4};
    sdlf_operation plain = {.kind = SDLF_GEMM, .gemm = {.alpha = 1}};
    plain.in[0] = d(sdlf_shape(2, 3), a), plain.in[1] = d(sdlf_shape(3, 2), b), plain.out[0] = d(sdlf_shape(2, 2), c);
    compute(plain); /* (1 2 3; 4 5 6) (1 0; 2 -1; 3 1) */
    CHECK_VALUES(c, 14, 1, 32, 1);
    sdlf_operation turned = plain; /* (1 3 5; 2 4 6) (1 2 3; 0 -1 1)^T */
    turned.in[0] = d(sdlf_shape(3, 2), a), turned.in[1] = d(sdlf_shape(2, 3), (double[]){1, 2, 3, 0, -1, 1});
    turned.gemm.transpose_a = turned.gemm.transpose_b = true;
    compute(turned);
    CHECK_VALUES(c, 22, 2, 28, 2);
    sdlf_operation full = plain;
    full.in[2] = d(sdlf_shape(2), bias), full.in[3] = d(sdlf_shape(2, 2), residual);
    full.gemm.alpha = 0.5f;
    full.gemm.activation.function = SDLF_RELU;
    compute(full); /* 7 + 1 + 1, 0.5 - 100 + 2, 16 + 1 + 3, 0.5 - 100 + 4 */
    CHECK_VALUES(c, 9, 0, 20, 0);
    sdlf_operation empty = plain;
    empty.in[0] = d(sdlf_shape(2, 0), a), empty.in[1] = d(sdlf_shape(0, 2), b), empty.in[2] = full.in[2];
    compute(empty);
    CHECK_VALUES(c, 1, -100, 1, -100);
}

static void reduce(void)
{
    double x[] = {1, 2, 3, -4, 5, 6}, y[3];
    sdlf_operation o = {.kind = SDLF_REDUCE, .in = {d(sdlf_shape(2, 3), x)}};
    o.out[0] = d(sdlf_shape(3), y), o.reduce.axis = 0;
    compute(o);
    CHECK_VALUES(y, -3, 7, 9);
    o.out[0] = d(sdlf_shape(2, 1), y), o.reduce.axis = 1, o.reduce.function = SDLF_REDUCE_MEAN;
    compute(o);
    CHECK_VALUES(y, 2, 7.0 / 3);
    o.reduce.function = SDLF_REDUCE_MAX;
    compute(o);
    CHECK_VALUES(y, 3, 6);
    o.reduce.function = SDLF_REDUCE_SUM_SQUARES;
    compute(o);
    CHECK_VALUES(y, 14, 77);
}

static void add(void)
{
    double a[] = {1, -2, 5}, b[] = {2, -3, 4}, y[3];
    sdlf_shape shape = sdlf_shape(3);
    sdlf_operation o = {.kind = SDLF_ADD, .in = {d(shape, a), d(shape, b)}, .out = {d(shape, y)}};
    compute(o);
    CHECK_VALUES(y, 3, -5, 9);
    o.add.activation = (sdlf_activation){.function = SDLF_CLIP, .low = 0, .high = 6};
    compute(o);
    CHECK_VALUES(y, 3, 0, 6);
}

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

/* Two groups of two channels, three filters each, 1x1: every filter sees its own group alone. */
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
    sdlf_operation o = {.kind = SDLF_CONV2D_RELU_MAX_POOL_FORWARD};
    o.conv2d_pool.window = square(1, 1, 0), o.conv2d_pool.groups = 1, o.conv2d_pool.pool = square(2, 2, 0);
    o.in[0] = d(sdlf_shape(1, 1, 2, 5), x), o.in[1] = d(sdlf_shape(1, 1, 1, 1), w), o.in[2] = d(sdlf_shape(1), bias);
    o.out[0] = d(sdlf_shape(1, 1, 1, 2), y), o.out[1] = of(SDLF_UINT8, sdlf_shape(1, 1, 1, 2), mask);
    compute(o); /* 3 7 / 7 5: two positions attain 7; the other window is nowhere positive */
    CHECK_VALUES(y, 7, 0);
    CHECK_EQUAL(mask[0], 1 << 1 | 1 << 2);
    CHECK_EQUAL(mask[1], 0);

    sdlf_operation back = {.kind = SDLF_CONV2D_RELU_MAX_POOL_BACKWARD, .conv2d_pool = o.conv2d_pool};
    back.in[0] = o.in[0], back.in[1] = o.in[1], back.in[2] = d(sdlf_shape(1, 1, 1, 2), dy), back.in[3] = o.out[1];
    back.out[0] = d(sdlf_shape(1, 1, 1, 1), dw), back.out[1] = d(sdlf_shape(1), db), back.out[2] = d(o.in[0].shape, dx);
    compute(back); /* 4 to each of the two threes */
    CHECK_VALUES(dw, 24);
    CHECK_VALUES(db, 8);
    CHECK_VALUES(dx, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0);

    o.conv2d_pool.ties = back.conv2d_pool.ties = SDLF_TIES_FIRST;
    compute(o);
    CHECK_EQUAL(mask[0], 1 << 1);
    compute(back);
    CHECK_VALUES(dx, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* ---- pools ---- */

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
    RUN(fill);
    RUN(copy);
    RUN(gather_batch);
    RUN(gemm);
    RUN(reduce);
    RUN(add);
    RUN(conv2d_forward);
    RUN(conv2d_groups);
    RUN(conv2d_backward);
    RUN(conv2d_relu_max_pool);
    RUN(max_pool2d);
    RUN(avg_pool2d);
    RUN(global_avg_pool2d);
    sdlf_calculator_close(reference);
    return test_summary();
}
