/* SPDX-License-Identifier: MIT */
/* Every backward kind of reference against finite differences of its forward kind, except those with windows, which are
 * in test_gradients_windows.c. */
#include "calculators/fusions/gemm_backward_sgd.h"
#include "differences.h"

#include <string.h>

/* ---- element by element ---- */

static void activations(void)
{
    static const struct {
        sdlf_activation activation;
        double scale, shift; /* of x, to the interesting range of the function */
    } cases[] = {
        {{.function = SDLF_IDENTITY}, 1, 0},
        {{.function = SDLF_RELU}, 1, 0},
        {{.function = SDLF_CLIP, .low = -0.4f, .high = 0.3f}, 1, 0},
        {{.function = SDLF_LEAKY_RELU, .slope = 0.1f}, 1, 0},
        {{.function = SDLF_SIGMOID}, 3, 0},
        {{.function = SDLF_TANH}, 2, 0},
        {{.function = SDLF_SILU}, 5, 0},
        {{.function = SDLF_HARD_SWISH}, 5, 0},
        {{.function = SDLF_ELU, .alpha = 1.5f}, 3, 0},
        {{.function = SDLF_SELU, .alpha = 1.67f, .beta = 1.05f}, 3, 0},
        {{.function = SDLF_CELU, .alpha = 0.5f}, 3, 0},
        {{.function = SDLF_GELU}, 3, 0},
        {{.function = SDLF_GELU_TANH}, 3, 0},
        {{.function = SDLF_MISH}, 5, 0},
        {{.function = SDLF_SOFTPLUS}, 5, 0},
        {{.function = SDLF_SOFTSIGN}, 5, 0},
        {{.function = SDLF_HARD_SIGMOID, .alpha = 0.2f, .beta = 0.5f}, 4, 0},
        {{.function = SDLF_ERF}, 2, 0},
        {{.function = SDLF_SQRT}, 1, 1.5},
        {{.function = SDLF_EXP}, 2, 0},
        {{.function = SDLF_LOG}, 1, 1.5},
        {{.function = SDLF_ABS}, 1, 0},
        {{.function = SDLF_NEGATE}, 1, 0},
        {{.function = SDLF_RECIPROCAL}, 1, 2.5},
        {{.function = SDLF_FLOOR}, 3, 0},
        {{.function = SDLF_CEIL}, 3, 0},
        {{.function = SDLF_ROUND}, 3, 0},
        {{.function = SDLF_SIN}, 2, 0},
        {{.function = SDLF_COS}, 2, 0},
        {{.function = SDLF_TAN}, 1, 0},
        {{.function = SDLF_ASIN}, 0.9, 0},
        {{.function = SDLF_ACOS}, 0.9, 0},
        {{.function = SDLF_ATAN}, 2, 0},
        {{.function = SDLF_SINH}, 2, 0},
        {{.function = SDLF_COSH}, 2, 0},
        {{.function = SDLF_ASINH}, 2, 0},
        {{.function = SDLF_ACOSH}, 1, 2.5},
        {{.function = SDLF_ATANH}, 0.9, 0},
        {{.function = SDLF_SIGN}, 3, 0},
    };
    CHECK_EQUAL(sizeof cases / sizeof cases[0], SDLF_ACTIVATION_FUNCTION_COUNT);
    for (uint64_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start(50 + i);
        sdlf_tensor x = make(sdlf_shape(50)), y = make(x.shape), dy = make(x.shape), dx = make(x.shape);
        for (int e = 0; e < 50; e++) ((double *)x.data)[e] = ((double *)x.data)[e] * cases[i].scale + cases[i].shift;
        bool reads_input = sdlf_activation_reads_input(cases[i].activation.function);
        sdlf_operation forward = {.kind = SDLF_ACTIVATION_FORWARD, .in = {x}, .out = {y}};
        sdlf_operation backward = {.kind = SDLF_ACTIVATION_BACKWARD, .in = {reads_input ? x : y, dy}, .out = {dx}};
        forward.activation = backward.activation = cases[i].activation;
        compute(&forward);
        compute(&backward);
        check_gradient("activation", &forward, dy, x, dx);
    }
}

static void dropout(void)
{
    start(60);
    int64_t number = 12;
    sdlf_tensor x = make(sdlf_shape(6, 7)), y = make(x.shape), dy = make(x.shape), dx = make(x.shape);
    sdlf_tensor step = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), &number);
    sdlf_operation forward = {.kind = SDLF_DROPOUT_FORWARD, .in = {x, step}, .out = {y}};
    forward.dropout.probability = 0.4f;
    forward.dropout.seed = 5;
    sdlf_operation backward = forward;
    backward.kind = SDLF_DROPOUT_BACKWARD;
    backward.in[0] = dy;
    backward.out[0] = dx;
    compute(&backward);
    check_gradient("dropout", &forward, dy, x, dx);
}

/* ---- normalisation, softmax, loss ---- */

static void batch_norm2d(void)
{
    const sdlf_shape shapes[] = {sdlf_shape(3, 2, 2, 3), sdlf_shape(5, 4)};
    for (int i = 0; i < 2; i++) {
        start(70 + (uint64_t)i);
        sdlf_tensor x = make(shapes[i]), y = make(x.shape), dy = make(x.shape), dx = make(x.shape);
        sdlf_shape channels = sdlf_shape(shapes[i].dim[1]);
        sdlf_tensor scale = make(channels), shift = make(channels), mean = make(channels), inverse = make(channels);
        sdlf_tensor running_mean = make(channels), running_variance = make(channels);
        sdlf_tensor dscale = make(channels), dshift = make(channels);
        sdlf_operation forward = {.kind = SDLF_BATCH_NORM2D_FORWARD,
                                  .in = {x, scale, shift},
                                  .out = {y, mean, inverse, running_mean, running_variance},
                                  .batch_norm = {.epsilon = 1e-3f, .momentum = 0.1f}};
        sdlf_operation backward = {
            .kind = SDLF_BATCH_NORM2D_BACKWARD, .in = {x, scale, mean, inverse, dy}, .out = {dx, dscale, dshift}};
        compute(&forward);
        compute(&backward);
        check_gradient("batch_norm2d dx", &forward, dy, x, dx);
        check_gradient("batch_norm2d dscale", &forward, dy, scale, dscale);
        check_gradient("batch_norm2d dshift", &forward, dy, shift, dshift);
    }
}

static void softmax(void)
{
    for (int i = 0; i < 6; i++) {
        start(80 + (uint64_t)i);
        sdlf_tensor x = make(sdlf_shape(3, 4, 5)), y = make(x.shape), dy = make(x.shape), dx = make(x.shape);
        bool logarithm = i >= 3;
        sdlf_operation forward = {
            .kind = logarithm ? SDLF_LOG_SOFTMAX_FORWARD : SDLF_SOFTMAX_FORWARD, .in = {x}, .out = {y}};
        sdlf_operation backward = {.kind = logarithm ? SDLF_LOG_SOFTMAX_BACKWARD : SDLF_SOFTMAX_BACKWARD};
        backward.in[0] = y, backward.in[1] = dy, backward.out[0] = dx;
        forward.softmax.axis = backward.softmax.axis = i % 3;
        compute(&forward);
        compute(&backward);
        check_gradient(logarithm ? "log_softmax" : "softmax", &forward, dy, x, dx);
    }
}

static void attention(void)
{
    for (int i = 0; i < 4; i++) {
        start(84 + (uint64_t)i);
        sdlf_tensor q = make(sdlf_shape(2, 4, 3, 2)), k = make(sdlf_shape(2, 2, 5, 2)),
                    v = make(sdlf_shape(2, 2, 5, 3));
        sdlf_tensor mask = make(sdlf_shape(2, 4, 3, 5)), y = make(sdlf_shape(2, 4, 3, 3)), dy = make(y.shape);
        sdlf_tensor max = make(sdlf_shape(2, 4, 3)), sum = make(max.shape), dq = make(q.shape), dk = make(k.shape),
                    dv = make(v.shape);
        sdlf_operation forward = {.kind = SDLF_ATTENTION_FORWARD,
                                  .in = {q, k, v},
                                  .out = {y, max, sum},
                                  .attention = {.scale = 0.7f, .causal = i & 1}};
        if (i & 2) forward.in[3] = mask;
        sdlf_operation backward = forward;
        backward.kind = SDLF_ATTENTION_BACKWARD;
        backward.in[4] = y, backward.in[5] = max, backward.in[6] = sum, backward.in[7] = dy;
        backward.out[0] = dq, backward.out[1] = dk, backward.out[2] = dv;
        compute(&forward);
        compute(&backward);
        check_gradient("attention dq", &forward, dy, q, dq);
        check_gradient("attention dk", &forward, dy, k, dk);
        check_gradient("attention dv", &forward, dy, v, dv);
    }
}

/* Gradients with respect to a and the states; a network computes the weight gradient with a gemm. */
static void lstm(void)
{
    for (int i = 0; i < 2; i++) {
        start(92 + (uint64_t)i);
        sdlf_tensor a = make(sdlf_shape(4, 2, 12)), weight = make(sdlf_shape(12, 3)), bias = make(sdlf_shape(12));
        sdlf_tensor y = make(sdlf_shape(4, 2, 3)), dy = make(y.shape), cells = make(y.shape), gates = make(a.shape);
        sdlf_tensor h0 = make(sdlf_shape(2, 3)), c0 = make(h0.shape), da = make(a.shape), dh0 = make(h0.shape),
                    dc0 = make(h0.shape);
        sdlf_operation forward = {.kind = SDLF_LSTM_FORWARD,
                                  .in = {a, weight, bias, h0, c0},
                                  .out = {y, gates, cells},
                                  .recurrence = {.reverse = i > 0}};
        sdlf_operation backward = {.kind = SDLF_LSTM_BACKWARD,
                                   .in = {gates, weight, cells, c0, dy},
                                   .out = {da, dh0, dc0},
                                   .recurrence = forward.recurrence};
        compute(&forward);
        compute(&backward);
        check_gradient("lstm da", &forward, dy, a, da);
        check_gradient("lstm dh0", &forward, dy, h0, dh0);
        check_gradient("lstm dc0", &forward, dy, c0, dc0);
    }
}

static void gru(void)
{
    for (int i = 0; i < 2; i++) {
        start(94 + (uint64_t)i);
        sdlf_tensor a = make(sdlf_shape(4, 2, 9)), weight = make(sdlf_shape(9, 3)), bias = make(sdlf_shape(9));
        sdlf_tensor y = make(sdlf_shape(4, 2, 3)), dy = make(y.shape), products = make(y.shape), gates = make(a.shape);
        sdlf_tensor h0 = make(sdlf_shape(2, 3)), da = make(a.shape), db = make(a.shape), dh0 = make(h0.shape);
        sdlf_operation forward = {.kind = SDLF_GRU_FORWARD,
                                  .in = {a, weight, bias, h0},
                                  .out = {y, gates, products},
                                  .recurrence = {.reverse = i > 0}};
        sdlf_operation backward = {.kind = SDLF_GRU_BACKWARD,
                                   .in = {gates, weight, products, y, h0, dy},
                                   .out = {da, db, dh0},
                                   .recurrence = forward.recurrence};
        compute(&forward);
        compute(&backward);
        check_gradient("gru da", &forward, dy, a, da);
        check_gradient("gru dh0", &forward, dy, h0, dh0);
    }
}

/* The loss is out[1] of the forward kind; dloss takes the place of dy. */
static void softmax_cross_entropy(void)
{
    static const float smoothings[] = {0, 0.2f};
    for (int i = 0; i < 2; i++) {
        start(90 + (uint64_t)i);
        int32_t label[4] = {2, 0, 4, 1};
        sdlf_tensor logits = make(sdlf_shape(4, 5)), p = make(logits.shape), value = make(sdlf_shape(1));
        sdlf_tensor dloss = make(sdlf_shape(1)), dlogits = make(logits.shape);
        sdlf_tensor labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(4), label);
        sdlf_operation forward = {
            .kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD, .in = {logits, labels}, .out = {p, value}};
        sdlf_operation backward = {
            .kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD, .in = {p, labels, dloss}, .out = {dlogits}};
        forward.cross_entropy.smoothing = backward.cross_entropy.smoothing = smoothings[i];
        compute(&forward);
        compute(&backward);
        double *x = logits.data, *found = dlogits.data;
        for (int e = 0; e < 20; e++) {
            double kept = x[e], h = 1e-6, around[2];
            for (int side = 0; side < 2; side++) {
                x[e] = side ? kept + h : kept - h;
                compute(&forward);
                around[side] = *(double *)value.data * *(double *)dloss.data;
            }
            x[e] = kept;
            CHECK_CLOSE(found[e], (around[1] - around[0]) / (2 * h), 1e-7);
        }
    }
}

/* ---- a fully connected layer: y = x w^T ---- */

static void gemm_backward_sgd(void)
{
    start(100);
    sdlf_tensor x = make(sdlf_shape(3, 4)), w = make(sdlf_shape(5, 4)), y = make(sdlf_shape(3, 5)), dy = make(y.shape);
    sdlf_tensor dx = make(x.shape), rate = make(sdlf_shape(1)), kept = make(w.shape), gradient = make(w.shape);
    sdlf_operation forward = {.kind = SDLF_GEMM, .in = {x, w}, .out = {y}, .gemm = {.transpose_b = true, .alpha = 1}};
    sdlf_operation backward = {.kind = SDLF_FUSED,
                               .in = {x, dy, rate},
                               .out = {w, {.dtype = SDLF_NONE}, dx},
                               .fused = {.fusion = &sdlf_gemm_backward_sgd_fusion}};
    memcpy(kept.data, w.data, sizeof(double) * 20);
    compute(&backward);
    for (int e = 0; e < 20; e++) { /* recover the gradient from the update */
        double *before = kept.data, *after = w.data;
        ((double *)gradient.data)[e] = (before[e] - after[e]) / *(double *)rate.data;
    }
    memcpy(w.data, kept.data, sizeof(double) * 20);
    check_gradient("gemm_backward_sgd dx", &forward, dy, x, dx);
    check_gradient("gemm_backward_sgd dw", &forward, dy, w, gradient);
}

int main(void)
{
    static double numbers[POOL];
    test.number = numbers;
    CHECK_OK(sdlf_calculator_open(&test.reference, "reference", NULL));
    RUN(activations);
    RUN(dropout);
    RUN(batch_norm2d);
    RUN(softmax);
    RUN(attention);
    RUN(lstm);
    RUN(gru);
    RUN(softmax_cross_entropy);
    RUN(gemm_backward_sgd);
    sdlf_calculator_close(test.reference);
    return test_summary();
}
