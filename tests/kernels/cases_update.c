/* SPDX-License-Identifier: MIT */
/* Cases of the optimizer updates and of clip_scale.
 *
 * Tolerance: each is a handful of operations on every element; 16 rounding errors, 32 where there is a root and a
 * quotient by it. The sum of squares in clip_scale: its n terms are positive, so its relative error grows slowly. */
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

static void clip_scale(kernel_sink *sink, sdlf_dtype t, int64_t count, float max_norm)
{
    kernel_case made = {.operation = {.kind = SDLF_CLIP_SCALE, .in = {kernel_tensor(t, sdlf_shape(count))}}};
    made.operation.out[0] = kernel_tensor(t, sdlf_shape(1));
    made.operation.clip.max_norm = max_norm;
    made.in[0].values = VALUES_POSITIVE;
    made.tolerance = 16;
    made.floor = 1e-3;
    kernel_emit(sink, &made, "%d to %g", (int)count, (double)max_norm);
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
        clip_scale(sink, t, counts[i], 0.25f);
        clip_scale(sink, t, counts[i], 1e6f);
    }
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
