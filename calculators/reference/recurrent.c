/* SPDX-License-Identifier: MIT */
/* lstm and gru: step by step, element by element. Contracts: <sdlf/operations/recurrent.h>. */
#include "calculators/reference/reference.h"

#include <math.h>

typedef struct sequence {
    const sdlf_operation *operation;
    const sdlf_tensor *weight;
    int64_t steps, samples, units;
    double *cells; /* (N,H): current c; backward: dc */
    double *other; /* (N,H): backward: dh */
} sequence;

static sequence sequence_of(const sdlf_operation *operation)
{
    const int64_t *rows = operation->in[0].shape.dim, *weight = operation->in[1].shape.dim;
    sequence s = {.operation = operation, .weight = &operation->in[1]};
    s.steps = rows[0], s.samples = rows[1], s.units = weight[1];
    return s;
}

static sequence begin(const sdlf_operation *operation)
{
    sequence s = sequence_of(operation);
    s.cells = operation->workspace.data;
    s.other = s.cells + s.samples * s.units;
    return s;
}

int64_t recurrent_workspace_reference(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    sequence s = sequence_of(operation);
    return 2 * s.samples * s.units * (int64_t)sizeof(double);
}

/* The position of step t in the sequence. */
static int64_t place(const sequence *s, int64_t t)
{
    return s->operation->recurrence.reverse ? s->steps - 1 - t : t;
}

static int64_t at3(const sdlf_tensor *x, int64_t t, int64_t n, int64_t j)
{
    return t * x->stride[0] + n * x->stride[1] + j * x->stride[2];
}

static double load(const sdlf_tensor *x, int64_t t, int64_t n, int64_t j)
{
    return get(x, at3(x, t, n, j));
}

static void keep(const sdlf_tensor *x, int64_t t, int64_t n, int64_t j, double value)
{
    if (sdlf_tensor_present(x)) put(x, at3(x, t, n, j), value);
}

/* An element of an initial state (N,H); 0 if it is absent. */
static double initial(const sdlf_tensor *x, int64_t n, int64_t j)
{
    return sdlf_tensor_present(x) ? get(x, n * x->stride[0] + j * x->stride[1]) : 0;
}

/* The state before step t. */
static double state_before(const sequence *s, const sdlf_tensor *y, const sdlf_tensor *h0, int64_t t, int64_t n,
                           int64_t j)
{
    return t > 0 ? load(y, place(s, t - 1), n, j) : initial(h0, n, j);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* b of gate `gate`, unit j. */
static double product(const sequence *s, int64_t t, int64_t n, int64_t gate, int64_t j)
{
    const sdlf_operation *operation = s->operation;
    const sdlf_tensor *bias = &operation->in[2], *h0 = &operation->in[3], *y = &operation->out[0];
    int64_t row = gate * s->units + j;
    double sum = sdlf_tensor_present(bias) ? get(bias, row) : 0;
    for (int64_t k = 0; k < s->units; k++) sum += get(s->weight, row * s->units + k) * state_before(s, y, h0, t, n, k);
    return sum;
}

/* a + b of the gate. */
static double gate_sum(const sequence *s, int64_t t, int64_t n, int64_t gate, int64_t j)
{
    return load(&s->operation->in[0], place(s, t), n, gate * s->units + j) + product(s, t, n, gate, j);
}

static void step_lstm(const sequence *s, int64_t t, int64_t n, int64_t j)
{
    const sdlf_tensor *out = s->operation->out;
    double *cell = &s->cells[n * s->units + j], gate[4], before = t > 0 ? *cell : initial(&s->operation->in[4], n, j);
    int64_t at = place(s, t);
    for (int g = 0; g < 4; g++) {
        double sum = gate_sum(s, t, n, g, j);
        gate[g] = g == 2 ? tanh(sum) : sigmoid(sum);
        keep(&out[1], at, n, g * s->units + j, gate[g]);
    }
    *cell = gate[1] * before + gate[0] * gate[2];
    keep(&out[2], at, n, j, *cell);
    keep(&out[0], at, n, j, gate[3] * tanh(*cell));
}

static void step_gru(const sequence *s, int64_t t, int64_t n, int64_t j)
{
    const sdlf_tensor *out = s->operation->out;
    int64_t at = place(s, t);
    double reset = sigmoid(gate_sum(s, t, n, 0, j)), update = sigmoid(gate_sum(s, t, n, 1, j));
    double own = product(s, t, n, 2, j);
    double fresh = tanh(load(&s->operation->in[0], at, n, 2 * s->units + j) + reset * own);
    double before = state_before(s, &out[0], &s->operation->in[3], t, n, j);
    const double gate[] = {reset, update, fresh};
    for (int g = 0; g < 3; g++) keep(&out[1], at, n, g * s->units + j, gate[g]);
    keep(&out[2], at, n, j, own);
    keep(&out[0], at, n, j, fresh + update * (before - fresh));
}

static sdlf_status forward(const sdlf_operation *operation,
                           void (*step)(const sequence *s, int64_t t, int64_t n, int64_t j))
{
    sequence s = begin(operation);
    for (int64_t t = 0; t < s.steps; t++)
        for (int64_t n = 0; n < s.samples; n++)
            for (int64_t j = 0; j < s.units; j++) step(&s, t, n, j);
    return SDLF_OK;
}

sdlf_status lstm_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return forward(operation, step_lstm);
}

sdlf_status gru_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return forward(operation, step_gru);
}

/* ---- backward ---- */

/* dh of step t: dy plus what the following step passed back. */
static double take_gradient(const sequence *s, const sdlf_tensor *dy, int64_t t, int64_t n, int64_t j)
{
    double left = t < s->steps - 1 ? s->other[n * s->units + j] : 0;
    bool last_only = dy->shape.dim[0] == 1 && t < s->steps - 1;
    return last_only ? left : left + load(dy, dy->shape.dim[0] == 1 ? 0 : place(s, t), n, j);
}

/* The gradient passed to the previous step: dh = rows weight + kept. */
static void leave(const sequence *s, const sdlf_tensor *rows, int64_t t, int64_t n, int64_t gates)
{
    for (int64_t k = 0; k < s->units; k++) {
        double sum = 0;
        for (int64_t row = 0; row < gates * s->units; row++)
            sum += load(rows, place(s, t), n, row) * get(s->weight, row * s->units + k);
        s->other[n * s->units + k] = sum;
    }
}

static void step_back_lstm(const sequence *s, int64_t t, int64_t n, int64_t j)
{
    const sdlf_tensor *in = s->operation->in, *cells = &in[2], *da = &s->operation->out[0];
    int64_t at = place(s, t), h = s->units;
    double i = load(&in[0], at, n, j), f = load(&in[0], at, n, h + j), g = load(&in[0], at, n, 2 * h + j);
    double o = load(&in[0], at, n, 3 * h + j), squashed = tanh(load(cells, at, n, j));
    double before = t > 0 ? load(cells, place(s, t - 1), n, j) : initial(&in[3], n, j);
    double dh = take_gradient(s, &in[4], t, n, j);
    double left = t < s->steps - 1 ? s->cells[n * h + j] : initial(&in[5], n, j);
    double dc = left + dh * o * (1 - squashed * squashed);
    keep(da, at, n, j, dc * g * i * (1 - i));
    keep(da, at, n, h + j, dc * before * f * (1 - f));
    keep(da, at, n, 2 * h + j, dc * i * (1 - g * g));
    keep(da, at, n, 3 * h + j, dh * squashed * o * (1 - o));
    s->cells[n * h + j] = dc * f;
}

/* `cells` gets dh z, which is passed to the previous step in addition to the product. */
static void step_back_gru(const sequence *s, int64_t t, int64_t n, int64_t j)
{
    const sdlf_tensor *in = s->operation->in, *da = &s->operation->out[0], *db = &s->operation->out[1];
    int64_t at = place(s, t), h = s->units;
    double r = load(&in[0], at, n, j), z = load(&in[0], at, n, h + j), fresh = load(&in[0], at, n, 2 * h + j);
    double before = state_before(s, &in[3], &in[4], t, n, j), own = load(&in[2], at, n, j);
    double dh = take_gradient(s, &in[5], t, n, j), dn = dh * (1 - z) * (1 - fresh * fresh);
    const double gradient[] = {dn * own * r * (1 - r), dh * (before - fresh) * z * (1 - z), dn, dn * r};
    for (int g = 0; g < 3; g++) {
        keep(da, at, n, g * h + j, gradient[g]);
        keep(db, at, n, g * h + j, gradient[g == 2 ? 3 : g]);
    }
    s->cells[n * h + j] = dh * z;
}

static void store_state(const sdlf_tensor *to, const double *from)
{
    int64_t count = sdlf_tensor_present(to) ? sdlf_tensor_count(to) : 0;
    for (int64_t e = 0; e < count; e++) put(to, e, from[e]);
}

sdlf_status lstm_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    sequence s = begin(operation);
    for (int64_t t = s.steps - 1; t >= 0; t--)
        for (int64_t n = 0; n < s.samples; n++) {
            for (int64_t j = 0; j < s.units; j++) step_back_lstm(&s, t, n, j);
            leave(&s, &operation->out[0], t, n, 4);
        }
    store_state(&operation->out[1], s.other);
    store_state(&operation->out[2], s.cells);
    return SDLF_OK;
}

sdlf_status gru_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    sequence s = begin(operation);
    for (int64_t t = s.steps - 1; t >= 0; t--)
        for (int64_t n = 0; n < s.samples; n++) {
            for (int64_t j = 0; j < s.units; j++) step_back_gru(&s, t, n, j);
            leave(&s, &operation->out[1], t, n, 3);
            for (int64_t j = 0; j < s.units; j++) s.other[n * s.units + j] += s.cells[n * s.units + j];
        }
    store_state(&operation->out[2], s.other);
    return SDLF_OK;
}
