/* SPDX-License-Identifier: MIT */
/* Cases of lstm and gru over a sequence.
 *
 * Tolerance: a gate is a function of slope at most 1 of a dot product of H terms up to 1; the error of a time step carries over to the
 * next ones, so that errors add up over the steps. Weights are up to 1, which makes many units unstable: errors grow with the steps, and
 * so do gradients, sums of G H products per step. Such cases have few steps and a larger tolerance. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>

enum { MANY_UNITS = 100 };

typedef struct sizes {
    int64_t t, n, h;
} sizes;

typedef enum form {
    PLAIN = 0,
    STATES = 1, /* h0 and c0 */
    BIASED = 2,
    REVERSE = 4,
    STRIDED = 8, /* a and y as (N,T,.) in memory */
    KEPT = 16,   /* outputs that the backward pass needs */
    LAST = 32,   /* dy of the last step only */
} form;

static const sdlf_tensor none = {.dtype = SDLF_NONE};

/* (T,N,C), optionally (N,T,C) in memory. */
static sdlf_tensor sequence(sdlf_dtype t, const sizes *z, int64_t channels, bool strided)
{
    sdlf_tensor x = kernel_tensor(t, sdlf_shape(z->t, z->n, channels));
    if (strided) x.stride[0] = channels, x.stride[1] = z->t * channels;
    return x;
}

static void name_case(char *text, size_t size, const sizes *z, int has)
{
    snprintf(text, size, "%d steps of %dx%d%s%s%s%s%s%s", (int)z->t, (int)z->n, (int)z->h,
             has & STATES ? " states" : "", has & BIASED ? " bias" : "", has & REVERSE ? " reverse" : "",
             has & STRIDED ? " strided" : "", has & KEPT ? " kept" : "", has & LAST ? " last" : "");
}

static sdlf_operation forward_of(sdlf_dtype t, const sizes *z, int gates, int has)
{
    sdlf_tensor state = kernel_tensor(t, sdlf_shape(z->n, z->h));
    sdlf_operation o = {.kind = gates == 4 ? SDLF_LSTM_FORWARD : SDLF_GRU_FORWARD};
    o.in[0] = sequence(t, z, gates * z->h, has & STRIDED);
    o.in[1] = kernel_tensor(t, sdlf_shape(gates * z->h, z->h));
    o.in[2] = has & BIASED ? kernel_tensor(t, sdlf_shape(gates * z->h)) : none;
    if (has & STATES) o.in[3] = state;
    if ((has & STATES) && gates == 4) o.in[4] = sdlf_tensor_broadcast(kernel_tensor(t, sdlf_shape(z->h)), state.shape);
    o.out[0] = sequence(t, z, z->h, has & STRIDED);
    if (has & KEPT) o.out[1] = sequence(t, z, gates * z->h, false), o.out[2] = sequence(t, z, z->h, false);
    o.recurrence.reverse = has & REVERSE;
    return o;
}

/* gates, cells or products and y of a forward pass, whose inputs are gates' own memory and zeros. */
static void run_forward(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    bool is_lstm = operation->kind == SDLF_LSTM_BACKWARD;
    sdlf_operation forward = {.kind = is_lstm ? SDLF_LSTM_FORWARD : SDLF_GRU_FORWARD,
                              .recurrence = operation->recurrence};
    sdlf_tensor y = is_lstm ? operation->in[2] : operation->in[3];
    forward.in[0] = operation->in[0], forward.in[1] = operation->in[1];
    if (is_lstm)
        forward.in[4] = operation->in[3];
    else
        forward.in[3] = operation->in[4];
    forward.out[0] = y, forward.out[1] = operation->in[0];
    if (!is_lstm) forward.out[2] = operation->in[2];
    kernel_prepare(calculator, &forward);
}

static void emit_forward(kernel_sink *sink, sdlf_dtype t, sizes z, int gates, int has)
{
    char text[120];
    kernel_case made = {.operation = forward_of(t, &z, gates, has)};
    made.tolerance = (8 + 2 * sqrt((double)z.h)) * (double)(z.t + 3) * (z.h > MANY_UNITS ? 6 : 1);
    name_case(text, sizeof text, &z, has);
    kernel_emit(sink, &made, "%s", text);
}

static void emit_backward(kernel_sink *sink, sdlf_dtype t, sizes z, int gates, int has)
{
    char text[120];
    sdlf_tensor state = kernel_tensor(t, sdlf_shape(z.n, z.h)), rows = sequence(t, &z, gates * z.h, false);
    sdlf_tensor kept = sequence(t, &z, z.h, false), dy = sequence(t, &z, z.h, has & STRIDED);
    kernel_case made = {.operation = {.kind = gates == 4 ? SDLF_LSTM_BACKWARD : SDLF_GRU_BACKWARD},
                        .prepare = run_forward};
    sdlf_operation *o = &made.operation;
    if (has & LAST) dy = kernel_tensor(t, sdlf_shape(1, z.n, z.h));
    o->in[0] = rows, o->in[1] = kernel_tensor(t, sdlf_shape(gates * z.h, z.h)), o->in[2] = kept;
    o->out[0] = rows;
    o->recurrence.reverse = has & REVERSE;
    if (gates == 4) {
        o->in[4] = dy;
        if (has & STATES) o->in[3] = o->in[5] = o->out[1] = o->out[2] = state;
    } else {
        o->in[3] = kept, o->in[5] = dy, o->out[1] = rows;
        if (has & STATES) o->in[4] = o->out[2] = state;
    }
    made.tolerance = (16 + 4 * sqrt((double)(gates * z.h))) * (double)(z.t + 3) * (z.h > MANY_UNITS ? 6 : 1);
    name_case(text, sizeof text, &z, has);
    kernel_emit(sink, &made, "%s", text);
}

/* A sink that marks the cases that it passes on as large. */
typedef struct device_sink {
    kernel_sink sink;
    kernel_sink *to;
} device_sink;

static void pass_on(kernel_sink *sink, const kernel_case *made)
{
    kernel_sink *to = ((device_sink *)sink)->to;
    kernel_case marked = *made;
    marked.fills_device = true;
    to->take(to, &marked);
}

/* For devices, whose tiling depends on units and samples, and differs if the weight does not fit in shared memory. */
static void large_cases(kernel_sink *sink)
{
    static const struct {
        sizes z;
        int forward, backward;
    } all[] = {{{3, 40, 256}, BIASED | STRIDED, STATES},
               {{3, 1, 512}, STATES | KEPT, STATES | LAST},
               {{2, 1, 1700}, BIASED | REVERSE, STATES | REVERSE}};
    device_sink devices = {{pass_on}, sink};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int gates = 3; gates <= 4; gates++) {
            emit_forward(&devices.sink, SDLF_FLOAT32, all[i].z, gates, all[i].forward);
            emit_backward(&devices.sink, SDLF_FLOAT32, all[i].z, gates, all[i].backward);
        }
}

void recurrent_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const sizes all[] = {
        {1, 1, 1},   {3, 2, 1},  {2, 1, 5},   {7, 3, 16},  {4, 5, 17},  {3, 1, 48},
        {3, 13, 31}, {2, 2, 70}, {3, 32, 33}, {6, 40, 33}, {4, 1, 300}, {2, 150, 20},
    };
    static const int forms[] = {PLAIN, STATES | BIASED, BIASED | REVERSE | STRIDED, STATES | STRIDED | KEPT,
                                BIASED | REVERSE | KEPT};
    static const int backward[] = {PLAIN, STATES, STATES | LAST, REVERSE | STRIDED, STATES | REVERSE};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int gates = 3; gates <= 4; gates++) {
            for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) emit_forward(sink, t, all[i], gates, forms[f]);
            for (size_t f = 0; f < sizeof backward / sizeof backward[0] && all[i].t < 10; f++)
                emit_backward(sink, t, all[i], gates, backward[f]);
        }
    }
    if (t == SDLF_FLOAT32) large_cases(sink);
    for (int gates = 3; gates <= 4; gates++) {
        kernel_case wide = {.operation = forward_of(t, &(sizes){5, 3, 19}, gates, STATES | KEPT)};
        wide.in[0].values = VALUES_WIDE; /* gates saturate at 0 and 1, without NaN */
        wide.tolerance = 400;
        kernel_emit(sink, &wide, "wide");
    }
}

void recurrent_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const sizes all[] = {{200, 1, 48}, {100, 1, 256}, {40, 32, 256}, {40, 32, 512}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int gates = 3; gates <= 4; gates++) {
            emit_forward(sink, t, all[i], gates, BIASED | STRIDED);
            emit_backward(sink, t, all[i], gates, PLAIN);
        }
}
