/* SPDX-License-Identifier: MIT */
/* The reference calculator against small examples worked out by hand, one or more for every kind of operation; here
 * data movement, products and sums. Windows are in test_reference_windows.c, training operations in
 * test_reference_training.c, updates in test_reference_updates.c. Gradients are also compared with finite differences,
 * in test_gradients.c; augmentation is in test_augmentation.c. */
#include "by_hand.h"

#define CHECK_VALUES(found, ...) BY_HAND(1e-12, found, __VA_ARGS__)

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

int main(void)
{
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    RUN(fill);
    RUN(copy);
    RUN(gather_batch);
    RUN(gemm);
    RUN(reduce);
    RUN(add);
    sdlf_calculator_close(reference);
    return test_summary();
}
