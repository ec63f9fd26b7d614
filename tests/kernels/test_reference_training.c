/* The reference calculator against small examples worked out by hand: activations, normalisation, loss, random numbers
 * and updates. The kinds that move, multiply and pool are in test_reference.c. */
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

/* Options are float32: 0.1f is not 0.1. */
#define CHECK_VALUES(found, ...)                                                                                       \
    check_values((found), (double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), __LINE__)

static void check_values(const double *found, const double *expected, int count, int line)
{
    for (int i = 0; i < count; i++) test_check_close(found[i], expected[i], 1e-7, __FILE__, line, "an element");
}

static void activations(void)
{
    double x[] = {-2, 0, 0.5, 3}, y[4], dy[] = {10, 10, 10, 10}, dx[4];
    sdlf_shape shape = sdlf_shape(4);
    sdlf_operation forward = {.kind = SDLF_ACTIVATION_FORWARD, .in = {d(shape, x)}, .out = {d(shape, y)}};
    sdlf_operation backward = {
        .kind = SDLF_ACTIVATION_BACKWARD, .in = {d(shape, y), d(shape, dy)}, .out = {d(shape, dx)}};
    forward.activation = backward.activation = (sdlf_activation){.function = SDLF_RELU};
    compute(forward), compute(backward);
    CHECK_VALUES(y, 0, 0, 0.5, 3);
    CHECK_VALUES(dx, 0, 0, 10, 10);
    forward.activation = backward.activation = (sdlf_activation){.function = SDLF_CLIP, .low = -1, .high = 2};
    compute(forward), compute(backward);
    CHECK_VALUES(y, -1, 0, 0.5, 2);
    CHECK_VALUES(dx, 0, 10, 10, 0);
    forward.activation = backward.activation = (sdlf_activation){.function = SDLF_LEAKY_RELU, .slope = 0.25f};
    compute(forward), compute(backward);
    CHECK_VALUES(y, -0.5, 0, 0.5, 3);
    CHECK_VALUES(dx, 2.5, 2.5, 10, 10);
    forward.activation = backward.activation = (sdlf_activation){.function = SDLF_SIGMOID};
    x[0] = -log(3); /* 1 / (1 + 3) */
    compute(forward), compute(backward);
    CHECK_VALUES(y, 0.25, 0.5);
    CHECK_VALUES(dx, 1.875, 2.5);
    forward.activation = backward.activation = (sdlf_activation){.function = SDLF_TANH};
    x[0] = log(2); /* (2 - 1/2) / (2 + 1/2) */
    compute(forward), compute(backward);
    CHECK_VALUES(y, 0.6, 0);
    CHECK_VALUES(dx, 6.4, 10);
    forward.activation = backward.activation = (sdlf_activation){.function = SDLF_IDENTITY};
    compute(forward), compute(backward);
    CHECK_VALUES(y, log(2), 0, 0.5, 3);
    CHECK_VALUES(dx, 10, 10, 10, 10);
}

static void dropout(void)
{
    enum { COUNT = 4000 };
    static double x[COUNT], y[COUNT], dx[COUNT];
    int64_t number = INT64_C(0x500000007); /* its low half counts */
    for (int e = 0; e < COUNT; e++) x[e] = e + 1;
    sdlf_shape shape = sdlf_shape(COUNT);
    sdlf_operation o = {.kind = SDLF_DROPOUT_FORWARD, .in = {d(shape, x), of(SDLF_INT64, sdlf_shape(1), &number)}};
    o.out[0] = d(shape, y);
    o.dropout.probability = 0.75f, o.dropout.seed = 42, o.dropout.stream = 3;
    compute(o);
    int wrong = 0, kept = 0;
    for (int e = 0; e < COUNT; e++) {
        float u = sdlf_uniform_from_word(sdlf_philox4x32(42, (uint64_t)e / 4, 3, 7).word[e % 4]);
        if (y[e] != (u < 0.75f ? 0 : 4 * x[e])) wrong++;
        kept += y[e] != 0;
    }
    CHECK_EQUAL(wrong, 0);
    CHECK(kept > 850 && kept < 1150); /* a quarter of 4000, give or take 5 deviations */
    o.kind = SDLF_DROPOUT_BACKWARD, o.out[0] = d(shape, dx);
    compute(o);
    for (int e = 0; e < COUNT; e++) wrong += dx[e] != y[e];
    CHECK_EQUAL(wrong, 0);
}

static void batch_norm2d(void)
{
    double x[] = {1, 5, 3, 5, 5, 5}, y[6]; /* (3,2): channels 1 3 5 and 5 5 5 */
    double scale[] = {3, 1}, shift[] = {10, 7}, mean[2], inverse[2], running_mean[] = {0, 1},
           running_variance[] = {1, 2};
    sdlf_shape c = sdlf_shape(2), shape = sdlf_shape(3, 2);
    sdlf_operation o = {.kind = SDLF_BATCH_NORM2D_FORWARD, .batch_norm = {.epsilon = 1.0f / 3, .momentum = 0.5f}};
    o.in[0] = d(shape, x), o.in[1] = d(c, scale), o.in[2] = d(c, shift);
    o.out[0] = d(shape, y), o.out[1] = d(c, mean), o.out[2] = d(c, inverse);
    o.out[3] = d(c, running_mean), o.out[4] = d(c, running_variance);
    compute(o); /* variance 8/3, plus 1/3 is 3 */
    double root = sqrt(3);
    CHECK_VALUES(mean, 3, 5);
    CHECK_VALUES(inverse, 1 / root, root);
    CHECK_VALUES(y, 10 - 2 * root, 7, 10, 7, 10 + 2 * root, 7);
    CHECK_VALUES(running_mean, 1.5, 3);
    CHECK_VALUES(running_variance, 2.5, 1); /* the unbiased variance is 4 */

    double one[] = {9}, out[1], m[1], s[1], rm[] = {0}, rv[] = {1}; /* a single value has variance 0 either way */
    sdlf_operation single = {.kind = SDLF_BATCH_NORM2D_FORWARD, .batch_norm = {.epsilon = 0.25f, .momentum = 1}};
    sdlf_shape unit = sdlf_shape(1);
    single.in[0] = d(sdlf_shape(1, 1), one), single.in[1] = d(unit, scale), single.in[2] = d(unit, shift);
    single.out[0] = d(sdlf_shape(1, 1), out), single.out[1] = d(unit, m), single.out[2] = d(unit, s);
    single.out[3] = d(unit, rm), single.out[4] = d(unit, rv);
    compute(single);
    CHECK_VALUES(out, 10);
    CHECK_VALUES(s, 2);
    CHECK_VALUES(rv, 0);

    double variance[] = {3.75, 0.75}; /* plus 1/4: deviations 2 and 1 */
    sdlf_operation infer = {.kind = SDLF_BATCH_NORM2D_INFER,
                            .in = {o.in[0], o.in[1], o.in[2], d(c, mean), d(c, variance)}};
    infer.out[0] = d(shape, y);
    infer.batch_norm.epsilon = 0.25f;
    infer.batch_norm.activation = (sdlf_activation){.function = SDLF_CLIP, .low = 0, .high = 12};
    compute(infer);
    CHECK_VALUES(y, 7, 7, 10, 7, 12, 7);

    double dy[] = {1, 0, 2, 0, 6, 3}, dx[6], dscale[2], dshift[2], unit_inverse[] = {0.5, 1};
    sdlf_operation back = {.kind = SDLF_BATCH_NORM2D_BACKWARD};
    back.in[0] = o.in[0], back.in[1] = o.in[1], back.in[2] = d(c, mean), back.in[3] = d(c, unit_inverse);
    back.in[4] = d(shape, dy), back.out[0] = d(shape, dx), back.out[1] = d(c, dscale), back.out[2] = d(c, dshift);
    compute(back); /* xhat -1 0 1 and 0 0 0 */
    CHECK_VALUES(dshift, 9, 3);
    CHECK_VALUES(dscale, 5, 0);
    CHECK_VALUES(dx, 1.5 * (1 - 3 + 5.0 / 3), -1, 1.5 * (2 - 3), -1, 1.5 * (6 - 3 - 5.0 / 3), 2);
}

static void softmax(void)
{
    double third = log(3), x[] = {0, third, 1000, 1000}, y[4], dy[] = {4, 8, 1, 1}, dx[4];
    sdlf_shape shape = sdlf_shape(2, 2);
    sdlf_operation o = {
        .kind = SDLF_SOFTMAX_FORWARD, .in = {d(shape, x)}, .out = {d(shape, y)}, .softmax = {.axis = 1}};
    compute(o);
    CHECK_VALUES(y, 0.25, 0.75, 0.5, 0.5);
    sdlf_operation back = {.kind = SDLF_SOFTMAX_BACKWARD, .in = {d(shape, y), d(shape, dy)}, .out = {d(shape, dx)}};
    back.softmax.axis = 1;
    compute(back); /* sum y dy = 7 and 1 */
    CHECK_VALUES(dx, -0.75, 0.75, 0, 0);
    o.kind = SDLF_LOG_SOFTMAX_FORWARD;
    compute(o);
    CHECK_VALUES(y, log(0.25), log(0.75), log(0.5), log(0.5));
    back.kind = SDLF_LOG_SOFTMAX_BACKWARD;
    compute(back); /* sums 12 and 2 */
    CHECK_VALUES(dx, 4 - 3, 8 - 9, 0, 0);
    double columns[] = {0, 1, third, 1}; /* the other axis */
    o.kind = SDLF_SOFTMAX_FORWARD, o.in[0] = d(shape, columns), o.softmax.axis = 0;
    compute(o);
    CHECK_VALUES(y, 0.25, 0.5, 0.75, 0.5);
}

static void softmax_cross_entropy(void)
{
    double third = log(3), logits[] = {0, third, 5, 5}, p[4], loss[1], metrics[] = {1, 2, 3}, dloss[] = {2}, dlogits[4];
    int32_t labels[] = {1, 1};
    sdlf_shape shape = sdlf_shape(2, 2);
    sdlf_operation o = {.kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD};
    o.in[0] = d(shape, logits), o.in[1] = of(SDLF_INT32, sdlf_shape(2), labels);
    o.out[0] = d(shape, p), o.out[1] = d(sdlf_shape(1), loss), o.out[2] = d(sdlf_shape(3), metrics);
    compute(o); /* -log 3/4 and -log 1/2; of the two fives the first is taken, which is wrong */
    double sum = -log(0.75) - log(0.5);
    CHECK_VALUES(p, 0.25, 0.75, 0.5, 0.5);
    CHECK_VALUES(loss, sum / 2);
    CHECK_VALUES(metrics, 1 + sum, 3, 5);
    sdlf_operation back = {.kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                           .in = {o.out[0], o.in[1], d(sdlf_shape(1), dloss)}};
    back.out[0] = d(shape, dlogits);
    compute(back);
    CHECK_VALUES(dlogits, 0.25, -0.25, 0.5, -0.5);

    o.cross_entropy.smoothing = back.cross_entropy.smoothing = 0.5f; /* targets 1/4 and 3/4 */
    compute(o);
    CHECK_VALUES(loss, (-0.25 * log(0.25) - 0.75 * log(0.75) - log(0.5)) / 2);
    compute(back);
    CHECK_VALUES(dlogits, 0, 0, 0.25, -0.25);
    double at_once[4];
    o.in[2] = back.in[2], o.out[3] = d(shape, at_once);
    compute(o);
    for (int e = 0; e < 4; e++) CHECK(at_once[e] == dlogits[e]);
    labels[0] = 2;
    compute(o);
    CHECK(isnan(loss[0]));
    CHECK_VALUES(p, 0.25, 0.75);
}

static void random_numbers(void)
{
    float u[7], n[2];
    sdlf_operation o = {.kind = SDLF_RANDOM_UNIFORM, .out = {of(SDLF_FLOAT32, sdlf_shape(7), u)}};
    o.random.seed = 11, o.random.stream = 5, o.random.a = -1, o.random.b = 1;
    compute(o);
    for (int e = 0; e < 7; e++) {
        float expected = -1 + 2 * sdlf_uniform_from_word(sdlf_philox4x32(11, (uint64_t)e / 4, 5, 0).word[e % 4]);
        CHECK_CLOSE((double)u[e], (double)expected, 0);
    }
    o.kind = SDLF_RANDOM_NORMAL, o.out[0] = of(SDLF_FLOAT32, sdlf_shape(2), n), o.random.a = 3, o.random.b = 2;
    compute(o);
    sdlf_philox group = sdlf_philox4x32(11, 0, 5, 0);
    double radius = 2 * sqrt(-2 * log(((double)group.word[0] + 1) / 0x1p32)),
           angle = 2 * acos(-1) * group.word[1] / 0x1p32;
    CHECK_CLOSE((double)n[0], 3 + radius * cos(angle), 1e-6);
    CHECK_CLOSE((double)n[1], 3 + radius * sin(angle), 1e-6);
}

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

static void gemm_backward_sgd(void)
{
    double x[] = {1, 2, 3, 4}, dy[] = {1, -1}, w[] = {10, 20}, v[] = {2, 2}, rate[] = {0.5}, dx[4];
    sdlf_operation o = {.kind = SDLF_GEMM_BACKWARD_SGD}; /* two rows, two inputs, one unit */
    o.in[0] = d(sdlf_shape(2, 2), x), o.in[1] = d(sdlf_shape(2, 1), dy), o.in[2] = d(sdlf_shape(1), rate);
    o.out[0] = d(sdlf_shape(1, 2), w), o.out[1] = d(sdlf_shape(1, 2), v), o.out[2] = d(sdlf_shape(2, 2), dx);
    o.gemm_backward.sgd.momentum = 0.5f;
    compute(o); /* g = (1 - 3, 2 - 4); v = 1 + g */
    CHECK_VALUES(dx, 10, 20, -10, -20);
    CHECK_VALUES(v, -1, -1);
    CHECK_VALUES(w, 10.5, 20.5);

    double b[] = {5}, bv[] = {6}; /* the same again with a bias, its decay, and clip to [1, 3] before x */
    w[0] = 10, w[1] = 20, v[0] = v[1] = 2, dy[1] = 3;
    o.out[3] = d(sdlf_shape(1), b), o.out[4] = d(sdlf_shape(1), bv);
    o.gemm_backward.sgd.bias_decay = 2;
    o.gemm_backward.activation = (sdlf_activation){.function = SDLF_CLIP, .low = 1, .high = 3};
    compute(o); /* only x = 2 lies within; b's g = 1 + 3 + 2 5; bv = 3 + g */
    CHECK_VALUES(dx, 0, 20, 0, 0);
    CHECK_VALUES(v, 11, 15);
    CHECK_VALUES(w, 4.5, 12.5);
    CHECK_VALUES(bv, 17);
    CHECK_VALUES(b, -3.5);
}

/* The backward pass and each update by itself, and all in one. */
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
    sdlf_operation back = {.kind = SDLF_CONV2D_RELU_MAX_POOL_BACKWARD};
    back.conv2d_pool.window = (sdlf_window2d){{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    back.conv2d_pool.pool = (sdlf_window2d){{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
    back.conv2d_pool.groups = 1;
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

    both.kind = SDLF_CONV2D_RELU_MAX_POOL_BACKWARD_SGD;
    both.conv2d_pool.sgd = (sdlf_sgd_rule){.momentum = 0.5f, .decay = 0.25f, .bias_decay = 0.125f, .nesterov = true};
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
    RUN(activations);
    RUN(dropout);
    RUN(batch_norm2d);
    RUN(softmax);
    RUN(softmax_cross_entropy);
    RUN(random_numbers);
    RUN(sgd_update);
    RUN(adam_update);
    RUN(rmsprop_update);
    RUN(clip_scale);
    RUN(gemm_backward_sgd);
    RUN(conv2d_relu_max_pool_backward_sgd);
    sdlf_calculator_close(reference);
    return test_summary();
}
