/* SPDX-License-Identifier: MIT */
/* The reference calculator against small examples worked out by hand: activations, normalisation, loss, random
 * numbers. */
#include "by_hand.h"

#include <math.h>

#include <sdlf/random.h>

/* Options are float32: 0.1f is not 0.1. */
#define CHECK_VALUES(found, ...) BY_HAND(1e-7, found, __VA_ARGS__)

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
    o.dropout.first = 1001;           /* a part draws the same as that range of the whole */
    o.in[0] = d(sdlf_shape(50), x + 1001), o.out[0] = d(sdlf_shape(50), dx);
    compute(o);
    for (int e = 0; e < 50; e++) wrong += dx[e] != y[1001 + e];
    CHECK_EQUAL(wrong, 0);
    o.dropout.first = 0, o.in[0] = d(shape, x);
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
    compute(o); /* -log 3/4 and -log 1/2; of the two fives the first is predicted, which is wrong */
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

int main(void)
{
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    RUN(activations);
    RUN(dropout);
    RUN(batch_norm2d);
    RUN(softmax);
    RUN(softmax_cross_entropy);
    RUN(random_numbers);
    sdlf_calculator_close(reference);
    return test_summary();
}
