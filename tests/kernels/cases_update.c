/* SPDX-License-Identifier: MIT */
/* Cases of the optimizer updates, of clip_scale and of loss scaling.
 *
 * Tolerance: each update is a handful of operations per element; 16 rounding errors, or 32 with a division by a square
 * root. The sum of squares in clip_scale has n positive terms, so its relative error grows slowly. */
#include "kernels.h"

static kernel_case update(sdlf_operation_kind kind, sdlf_dtype t, int64_t count, bool scaled)
{
    sdlf_tensor w = kernel_tensor(t, sdlf_shape(count)), one = kernel_tensor(t, sdlf_shape(1));
    kernel_case made = {.operation = {.kind = kind, .in = {w, one}, .out = {w}}};
    if (scaled) made.operation.in[2] = one;
    made.in[1].values = made.in[2].values = VALUES_POSITIVE;
    return made;
}

static const char *flag(bool set, const char *text)
{
    return set ? text : "";
}

static void sgd(kernel_sink *sink, sdlf_dtype t, int64_t count, int combination)
{
    bool scaled = combination & 1, momentum = combination & 2, nesterov = combination & 4, decay = combination & 8;
    kernel_case made = update(SDLF_SGD_UPDATE, t, count, scaled);
    if (momentum) made.operation.out[1] = made.operation.out[0];
    made.operation.sgd.momentum = momentum ? 0.9f : 0;
    made.operation.sgd.nesterov = nesterov;
    made.operation.sgd.decay = decay ? 0.02f : 0;
    made.tolerance = 16;
    kernel_emit(sink, &made, "%d%s%s%s%s", (int)count, flag(scaled, " scaled"), flag(momentum, " momentum"),
                flag(nesterov, " nesterov"), flag(decay, " decay"));
}

static void adam(kernel_sink *sink, sdlf_dtype t, int64_t count, int combination)
{
    bool scaled = combination & 1, decay = combination & 2, decoupled = combination & 4;
    kernel_case made = update(SDLF_ADAM_UPDATE, t, count, scaled);
    made.operation.in[3] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
    made.operation.out[1] = made.operation.out[2] = made.operation.out[0];
    made.in[3] = (kernel_fill){VALUES_INTEGERS, count % 2 ? 1 : 5000};
    made.out[2].values = VALUES_POSITIVE;
    made.operation.adam.beta1 = 0.9f;
    made.operation.adam.beta2 = 0.999f;
    made.operation.adam.epsilon = 1e-8f;
    made.operation.adam.decay = decay ? 0.02f : 0;
    made.operation.adam.decoupled = decoupled;
    made.tolerance = 32;
    kernel_emit(sink, &made, "%d%s%s%s", (int)count, flag(scaled, " scaled"), flag(decay, " decay"),
                flag(decoupled, " decoupled"));
}

static void rmsprop(kernel_sink *sink, sdlf_dtype t, int64_t count, int combination)
{
    bool scaled = combination & 1, decay = combination & 2, momentum = combination & 4;
    kernel_case made = update(SDLF_RMSPROP_UPDATE, t, count, scaled);
    made.operation.out[1] = made.operation.out[0];
    if (momentum) made.operation.out[2] = made.operation.out[0];
    made.out[1].values = VALUES_POSITIVE;
    made.operation.rmsprop.rho = 0.99f;
    made.operation.rmsprop.epsilon = 1e-8f;
    made.operation.rmsprop.decay = decay ? 0.02f : 0;
    made.operation.rmsprop.momentum = momentum ? 0.5f : 0;
    made.tolerance = 32;
    kernel_emit(sink, &made, "%d%s%s%s", (int)count, flag(scaled, " scaled"), flag(decay, " decay"),
                flag(momentum, " momentum"));
}

/* A scale of 0: nothing changes, for any gradient. */
static void skipped(kernel_sink *sink, sdlf_operation_kind kind, sdlf_dtype t, int64_t count)
{
    kernel_case made = update(kind, t, count, true);
    made.in[0].values = VALUES_ANYTHING;
    made.in[2] = (kernel_fill){VALUES_INTEGERS, 1};
    made.operation.out[1] = made.operation.out[0];
    if (kind != SDLF_SGD_UPDATE) made.operation.out[2] = made.operation.out[0];
    if (kind == SDLF_SGD_UPDATE) made.operation.sgd.momentum = 0.5f;
    if (kind == SDLF_RMSPROP_UPDATE) made.operation.rmsprop.momentum = made.operation.rmsprop.rho = 0.5;
    if (kind == SDLF_ADAM_UPDATE) {
        made.operation.in[3] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
        made.in[3] = (kernel_fill){VALUES_INTEGERS, 5};
        made.operation.adam.beta1 = made.operation.adam.beta2 = 0.5;
    }
    kernel_emit(sink, &made, "%d skipped", (int)count);
}

static void clip_scale(kernel_sink *sink, sdlf_dtype t, int64_t count, float max_norm, bool scaled)
{
    kernel_case made = {.operation = {.kind = SDLF_CLIP_SCALE, .in = {kernel_tensor(t, sdlf_shape(count))}}};
    made.operation.out[0] = kernel_tensor(t, sdlf_shape(1));
    if (scaled) made.operation.in[1] = made.operation.out[0];
    made.operation.clip.max_norm = max_norm;
    made.in[0].values = made.in[1].values = VALUES_POSITIVE;
    made.tolerance = 16;
    made.floor = 1e-3;
    kernel_emit(sink, &made, "%d to %g%s", (int)count, (double)max_norm, flag(scaled, " scaled"));
    if (!scaled) return;
    made.in[0].values = VALUES_ANYTHING;
    made.in[1] = (kernel_fill){VALUES_INTEGERS, 1};
    made.tolerance = 0;
    kernel_emit(sink, &made, "%d to %g skipped", (int)count, (double)max_norm);
}

static void check_finite(kernel_sink *sink, sdlf_dtype t, int64_t count, kernel_values values)
{
    kernel_case made = {.operation = {.kind = SDLF_CHECK_FINITE, .in = {kernel_tensor(t, sdlf_shape(count))}}};
    made.operation.out[0] = kernel_tensor(t, sdlf_shape(1));
    made.in[0] = (kernel_fill){values, 10};
    made.out[0] = (kernel_fill){VALUES_INTEGERS, 1};
    kernel_emit(sink, &made, "%d, values %d", (int)count, (int)values);
}

static void set_state(const sdlf_operation *operation, double scale, double good)
{
    const sdlf_tensor *state = &operation->out[0];
    const double values[3] = {scale, good, 5};
    sdlf_convert(state->dtype, state->data, SDLF_FLOAT64, values, 3);
}

static void usual(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    set_state(operation, 1000, 3);
}

static void largest(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    set_state(operation, 0x1p64, 3);
}

static void smallest(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    set_state(operation, 0x1p-64, 0);
}

/* After four good steps, or a bad one. */
static void loss_scale_update(kernel_sink *sink, sdlf_dtype t, bool found, int interval, const char *name,
                              void (*prepare)(sdlf_calculator *, const sdlf_operation *))
{
    const sdlf_tensor one = kernel_tensor(t, sdlf_shape(1)), whole = kernel_tensor(SDLF_INT64, sdlf_shape(1));
    kernel_case made = {.operation = {.kind = SDLF_LOSS_SCALE_UPDATE,
                                      .in = {one, whole},
                                      .out = {kernel_tensor(t, sdlf_shape(3)), one, whole},
                                      .loss_scale = {.growth = 2, .backoff = 0.7f, .interval = interval}}};
    made.in[0] = found ? (kernel_fill){VALUES_POSITIVE, 0} : (kernel_fill){VALUES_INTEGERS, 1};
    made.in[1] = (kernel_fill){VALUES_INTEGERS, 1000};
    made.prepare = prepare;
    kernel_emit(sink, &made, "%s, %s, interval %d", name, found ? "found" : "good", interval);
}

static void loss_scale_updates(kernel_sink *sink, sdlf_dtype t)
{
    for (int found = 0; found < 2; found++) {
        for (int interval = 0; interval < 10; interval += 4) {
            loss_scale_update(sink, t, found, interval, "usual", usual);
            loss_scale_update(sink, t, found, interval, "largest", largest);
            loss_scale_update(sink, t, found, interval, "smallest", smallest);
        }
    }
}

void update_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const int64_t counts[] = {1, 7, 64, 1027};
    for (int i = 0; i < 4; i++) {
        for (int combination = 0; combination < 16; combination++) sgd(sink, t, counts[i], combination);
        for (int combination = 0; combination < 8; combination++) {
            adam(sink, t, counts[i], combination);
            rmsprop(sink, t, counts[i], combination);
        }
        for (int scaled = 0; scaled < 2; scaled++) {
            clip_scale(sink, t, counts[i], 0.25f, scaled);
            clip_scale(sink, t, counts[i], 1e6f, scaled);
        }
        skipped(sink, SDLF_SGD_UPDATE, t, counts[i]);
        skipped(sink, SDLF_ADAM_UPDATE, t, counts[i]);
        skipped(sink, SDLF_RMSPROP_UPDATE, t, counts[i]);
        check_finite(sink, t, counts[i], VALUES_UNIFORM);
        check_finite(sink, t, counts[i], VALUES_HUGE);
        check_finite(sink, t, counts[i], VALUES_GRID_NAN);
        check_finite(sink, t, counts[i], VALUES_ANYTHING);
    }
    check_finite(sink, t, 100003, VALUES_GRID_NAN);
    check_finite(sink, t, 100003, VALUES_WIDE);
    loss_scale_updates(sink, t);
}

/* The parameters of simple_cnn's first fully connected layer. */
void update_bench(kernel_sink *sink, sdlf_dtype t)
{
    enum { COUNT = 1024 * 6272 };
    sgd(sink, t, COUNT, 0);
    sgd(sink, t, COUNT, 2);
    adam(sink, t, COUNT, 0);
    rmsprop(sink, t, COUNT, 0);
}
