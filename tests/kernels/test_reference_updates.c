/* SPDX-License-Identifier: MIT */
/* The reference calculator against small examples worked out by hand: parameter updates, alone and fused with the
 * preceding backward pass. */
#include "by_hand.h"

#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/gemm_backward_sgd.h"

#include <math.h>

/* Options are float32: 0.1f is not 0.1. */
#define CHECK_VALUES(found, ...) BY_HAND(1e-7, found, __VA_ARGS__)

static void sgd_update(void)
{
    double w[] = {1, 2}, v[] = {4, 0}, g[] = {2, -2}, rate[] = {0.5}, scale[] = {0.5};
    sdlf_shape shape = sdlf_shape(2), one = sdlf_shape(1);
    sdlf_operation o = {.kind = SDLF_SGD_UPDATE, .in = {d(shape, g), d(one, rate)}, .out = {d(shape, w)}};
    compute(o);
    CHECK_VALUES(w, 0, 3);
    o.in[2] = d(one, scale), o.out[1] = d(shape, v), o.sgd.momentum = 0.5f, o.sgd.decay = 1;
    compute(o); /* g: 1 + 0, -1 + 3; v: 2 + 1, 0 + 2 */
    CHECK_VALUES(v, 3, 2);
    CHECK_VALUES(w, -1.5, 2);
    o.sgd.nesterov = true, o.sgd.decay = 0;
    compute(o); /* g: 1, -1; v: 2.5, 0; step: 1 + 1.25, -1 + 0 */
    CHECK_VALUES(v, 2.5, 0);
    CHECK_VALUES(w, -2.625, 2.5);
}

static void adam_update(void)
{
    double w[] = {1}, m[] = {0}, v[] = {0}, g[] = {4}, rate[] = {0.5};
    int64_t step = 0;
    sdlf_shape one = sdlf_shape(1);
    sdlf_operation o = {.kind = SDLF_ADAM_UPDATE, .in = {d(one, g), d(one, rate), {.dtype = SDLF_NONE}}};
    o.in[3] = of(SDLF_INT64, one, &step), o.out[0] = d(one, w), o.out[1] = d(one, m), o.out[2] = d(one, v);
    o.adam.beta1 = 0.5f, o.adam.beta2 = 0.75f;
    compute(o); /* m = 2, corrected 4; v = 4, corrected 16: the first step is the rate itself */
    CHECK_VALUES(m, 2);
    CHECK_VALUES(v, 4);
    CHECK_VALUES(w, 0.5);
    step = 1, g[0] = 0, o.adam.decay = 0.5f, o.adam.decoupled = true;
    compute(o); /* w 0.5 - 0.125; m 1 / 0.75; v 3 / 0.4375 */
    CHECK_VALUES(w, 0.375 - 0.5 * (1 / 0.75) / sqrt(3 / 0.4375));
    w[0] = 2, m[0] = v[0] = 0, step = 0, o.adam.decoupled = false, o.adam.epsilon = 1;
    compute(o); /* g = 0 + 0.5 * 2 */
    CHECK_VALUES(w, 2 - 0.5 * 1 / (1 + 1));
}

static void rmsprop_update(void)
{
    double w[] = {1}, v[] = {4}, b[] = {6}, g[] = {4}, rate[] = {0.5};
    sdlf_shape one = sdlf_shape(1);
    sdlf_operation o = {.kind = SDLF_RMSPROP_UPDATE, .in = {d(one, g), d(one, rate)}, .out = {d(one, w), d(one, v)}};
    o.rmsprop.rho = 0.5f, o.rmsprop.epsilon = 1;
    compute(o); /* v = 2 + 8 */
    CHECK_VALUES(v, 10);
    CHECK_VALUES(w, 1 - 0.5 * 4 / (sqrt(10) + 1));
    w[0] = 1, v[0] = 4, o.out[2] = d(one, b), o.rmsprop.momentum = 0.5f;
    compute(o);
    CHECK_VALUES(b, 3 + 4 / (sqrt(10) + 1));
    CHECK_VALUES(w, 1 - 0.5 * b[0]);
}

static void clip_scale(void)
{
    double squares[] = {9, 16}, scale[1];
    sdlf_operation o = {.kind = SDLF_CLIP_SCALE, .in = {d(sdlf_shape(2), squares)}, .out = {d(sdlf_shape(1), scale)}};
    o.clip.max_norm = 1;
    compute(o); /* the norm is 5 */
    CHECK_VALUES(scale, 1 / 5.000001);
    o.clip.max_norm = 10;
    compute(o);
    CHECK_VALUES(scale, 1);
    squares[0] = (double)NAN;
    compute(o);
    CHECK(isnan(scale[0]));
}

static void skipped_updates(void)
{
    double w[] = {1}, v[] = {4}, m[] = {3}, g[] = {(double)NAN}, rate[] = {0.5}, scale[] = {0};
    int64_t step = 0;
    sdlf_shape one = sdlf_shape(1);
    sdlf_operation o = {.in = {d(one, g), d(one, rate), d(one, scale)}, .out = {d(one, w), d(one, v)}};
    o.kind = SDLF_SGD_UPDATE, o.sgd.momentum = 0.5f, o.sgd.decay = 1;
    compute(o);
    o.kind = SDLF_RMSPROP_UPDATE, o.rmsprop.rho = 0.5, o.rmsprop.momentum = 0, o.rmsprop.decay = 1;
    o.rmsprop.epsilon = 0;
    compute(o);
    o.kind = SDLF_ADAM_UPDATE, o.adam.beta1 = o.adam.beta2 = 0.5, o.adam.epsilon = 0, o.adam.decay = 1;
    o.adam.decoupled = true, o.in[3] = of(SDLF_INT64, one, &step), o.out[2] = d(one, m);
    compute(o);
    CHECK(w[0] == 1 && v[0] == 4 && m[0] == 3);
}

static void clip_scale_of_scaled_gradients(void)
{
    double squares[] = {9, 16}, scale[1], factor[] = {0.5};
    sdlf_operation o = {.kind = SDLF_CLIP_SCALE, .out = {d(sdlf_shape(1), scale)}};
    o.in[0] = d(sdlf_shape(2), squares), o.in[1] = d(sdlf_shape(1), factor);
    o.clip.max_norm = 1;
    compute(o); /* the norm is 2.5 */
    CHECK_VALUES(scale, 0.5 / 2.500001);
    o.clip.max_norm = 3;
    compute(o);
    CHECK_VALUES(scale, 0.5);
    factor[0] = 0, squares[0] = (double)INFINITY;
    compute(o);
    CHECK_VALUES(scale, 0);
}

static void check_finite(void)
{
    double x[] = {1, -1e300, 0}, found[] = {0};
    sdlf_operation o = {.kind = SDLF_CHECK_FINITE, .in = {d(sdlf_shape(3), x)}, .out = {d(sdlf_shape(1), found)}};
    compute(o);
    CHECK(found[0] == 0);
    x[1] = -(double)INFINITY;
    compute(o);
    CHECK(found[0] == 1);
    x[1] = 2, found[0] = 0, x[2] = (double)NAN;
    compute(o);
    CHECK(found[0] == 1);
    x[2] = 0;
    compute(o);
    CHECK(found[0] == 1); /* an earlier tensor's flag stays */
}

static void loss_scale_update(void)
{
    double found[] = {0}, state[] = {8, 0, 2}, factor[1];
    int64_t step = 10, done;
    sdlf_operation o = {.kind = SDLF_LOSS_SCALE_UPDATE, .in = {d(sdlf_shape(1), found)}};
    o.in[1] = of(SDLF_INT64, sdlf_shape(1), &step), o.out[2] = of(SDLF_INT64, sdlf_shape(1), &done);
    o.out[0] = d(sdlf_shape(3), state), o.out[1] = d(sdlf_shape(1), factor);
    o.loss_scale = (sdlf_loss_scale_rule){.growth = 2, .backoff = 0.25f, .interval = 2};
    compute(o);
    CHECK_VALUES(state, 8, 1, 2);
    CHECK(factor[0] == 0.125 && done == 8);
    compute(o); /* the second good step: the next one's scale is 16, this one's was 8 */
    CHECK_VALUES(state, 16, 0, 2);
    CHECK(factor[0] == 0.125);
    state[1] = 1, found[0] = 1;
    compute(o);
    CHECK_VALUES(state, 4, 0, 3);
    CHECK(factor[0] == 0 && done == 7);
    o.loss_scale.interval = 0; /* fixed */
    compute(o);
    CHECK_VALUES(state, 4, 0, 4);
    found[0] = 0;
    compute(o);
    CHECK_VALUES(state, 4, 1, 4);
    state[0] = 0x1p64, o.loss_scale.interval = 1;
    compute(o);
    CHECK(state[0] == 0x1p64);
}

static void gemm_backward_sgd(void)
{
    double x[] = {1, 2, 3, 4}, dy[] = {1, -1}, w[] = {10, 20}, v[] = {2, 2}, rate[] = {0.5}, dx[4];
    /* two rows, two inputs, one unit */
    sdlf_operation o = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_gemm_backward_sgd_fusion}};
    gemm_backward_sgd_options *options = gemm_backward_sgd_options_in(&o);
    o.in[0] = d(sdlf_shape(2, 2), x), o.in[1] = d(sdlf_shape(2, 1), dy), o.in[2] = d(sdlf_shape(1), rate);
    o.out[0] = d(sdlf_shape(1, 2), w), o.out[1] = d(sdlf_shape(1, 2), v), o.out[2] = d(sdlf_shape(2, 2), dx);
    options->sgd.momentum = 0.5f;
    compute(o); /* g = (1 - 3, 2 - 4); v = 1 + g */
    CHECK_VALUES(dx, 10, 20, -10, -20);
    CHECK_VALUES(v, -1, -1);
    CHECK_VALUES(w, 10.5, 20.5);

    double b[] = {5}, bv[] = {6}; /* the same again with a bias, its decay, and clip to [1, 3] before x */
    w[0] = 10, w[1] = 20, v[0] = v[1] = 2, dy[1] = 3;
    o.out[3] = d(sdlf_shape(1), b), o.out[4] = d(sdlf_shape(1), bv);
    options->sgd.bias_decay = 2;
    options->activation = (sdlf_activation){.function = SDLF_CLIP, .low = 1, .high = 3};
    compute(o); /* only x = 2 lies within; b's g = 1 + 3 + 2 5; bv = 3 + g */
    CHECK_VALUES(dx, 0, 20, 0, 0);
    CHECK_VALUES(v, 11, 15);
    CHECK_VALUES(w, 4.5, 12.5);
    CHECK_VALUES(bv, 17);
    CHECK_VALUES(b, -3.5);
}

/* The backward pass and each update separately, and all fused. */
static void conv2d_relu_max_pool_backward_sgd(void)
{
    enum { X = 2 * 2 * 4 * 4, W = 3 * 2 * 3 * 3, Y = 2 * 3 * 2 * 2 };
    double x[X], dy[Y], w[W], v[W], b[3], bv[3], dw[W], db[3], dx[X], rate[] = {0.25};
    double w2[W], v2[W], b2[3], bv2[3], dx2[X];
    uint8_t mask[Y];
    for (int i = 0; i < X; i++) x[i] = (i * 7 % 11 - 5) / 8.0;
    for (int i = 0; i < W; i++) w[i] = w2[i] = (i * 5 % 9 - 4) / 4.0, v[i] = v2[i] = i / 16.0;
    for (int i = 0; i < Y; i++) dy[i] = (i * 3 % 7 - 3) / 2.0, mask[i] = (uint8_t)(i * 5 % 16);
    for (int i = 0; i < 3; i++) b[i] = b2[i] = i, bv[i] = bv2[i] = 1 - i;
    sdlf_operation back = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_conv2d_pool_backward_fusion}};
    *conv2d_pool_options_in(&back) = (conv2d_pool_options){.window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                                                           .groups = 1,
                                                           .pool = {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}};
    sdlf_operation both = back;
    sdlf_shape image = sdlf_shape(2, 2, 4, 4), kernel = sdlf_shape(3, 2, 3, 3), pooled = sdlf_shape(2, 3, 2, 2);
    sdlf_shape filters = sdlf_shape(3), one = sdlf_shape(1);
    back.in[0] = d(image, x), back.in[1] = d(kernel, w), back.in[2] = d(pooled, dy);
    back.in[3] = sdlf_tensor_view(SDLF_UINT8, pooled, mask);
    back.out[0] = d(kernel, dw), back.out[1] = d(filters, db), back.out[2] = d(image, dx);
    compute(back);
    sdlf_operation update = {.kind = SDLF_SGD_UPDATE, .in = {d(kernel, dw), d(one, rate)}};
    update.out[0] = d(kernel, w), update.out[1] = d(kernel, v);
    update.sgd = (sdlf_sgd_rule){.momentum = 0.5f, .decay = 0.25f, .nesterov = true};
    compute(update);
    update.in[0] = d(filters, db), update.out[0] = d(filters, b), update.out[1] = d(filters, bv);
    update.sgd.decay = 0.125f;
    compute(update);

    both.fused.fusion = &sdlf_conv2d_pool_backward_sgd_fusion;
    conv2d_pool_options_in(&both)->sgd =
        (sdlf_sgd_rule){.momentum = 0.5f, .decay = 0.25f, .bias_decay = 0.125f, .nesterov = true};
    both.in[0] = back.in[0], both.in[1] = back.in[2], both.in[2] = back.in[3], both.in[3] = d(one, rate);
    both.out[0] = d(kernel, w2), both.out[1] = d(kernel, v2), both.out[2] = d(filters, b2);
    both.out[3] = d(filters, bv2), both.out[4] = d(image, dx2);
    compute(both);
    for (int i = 0; i < W; i++) CHECK(w2[i] == w[i] && v2[i] == v[i]);
    for (int i = 0; i < 3; i++) CHECK(b2[i] == b[i] && bv2[i] == bv[i]);
    for (int i = 0; i < X; i++) CHECK(dx2[i] == dx[i]);
}

int main(void)
{
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    RUN(sgd_update);
    RUN(adam_update);
    RUN(rmsprop_update);
    RUN(clip_scale);
    RUN(skipped_updates);
    RUN(clip_scale_of_scaled_gradients);
    RUN(check_finite);
    RUN(loss_scale_update);
    RUN(gemm_backward_sgd);
    RUN(conv2d_relu_max_pool_backward_sgd);
    sdlf_calculator_close(reference);
    return test_summary();
}
