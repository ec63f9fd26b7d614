/* SPDX-License-Identifier: MIT */
/* lstm and gru: the slots' functions, and an operation's arguments. */
#include "calculators/cuda/recurrent/recurrent.h"

const char *const recurrent_algorithms_cuda[] = {
    [RECURRENT_AUTO] = "auto",   [RECURRENT_CLUSTER] = "cluster", [RECURRENT_GRID] = "grid",
    [RECURRENT_STEPS] = "steps", [RECURRENT_ALGORITHMS] = NULL,
};

static const cuda_calculator *known(const sdlf_calculator *calculator)
{
    return (const cuda_calculator *)calculator;
}

/* Kernels count steps, samples and units in int. */
bool recurrent_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const int64_t *rows = operation->in[0].shape.dim;
    for (int axis = 0; axis < 3; axis++)
        if (rows[axis] > INT32_MAX / 2) return false;
    return operation->algorithm == RECURRENT_AUTO || operation->algorithm == RECURRENT_STEPS ||
           recurrent_tiling_of(known(calculator), operation, operation->algorithm).algorithm != RECURRENT_AUTO;
}

int recurrent_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return recurrent_tiling_of(known(calculator), operation, RECURRENT_AUTO).algorithm;
}

int64_t recurrent_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    recurrent_tiling tiling = recurrent_tiling_of(known(calculator), operation, operation->algorithm);
    return tiling.algorithm == RECURRENT_STEPS ? recurrent_steps_workspace(calculator, operation) : 0;
}

static recurrent_rows rows_of(const sdlf_tensor *x)
{
    if (!sdlf_tensor_present(x)) return (recurrent_rows){.data = NULL};
    if (x->shape.rank == 2) return (recurrent_rows){.data = x->data, .sample = x->stride[0]};
    return (recurrent_rows){.data = x->data, .step = x->stride[0], .sample = x->stride[1]};
}

static void take_forward(recurrent_arguments *p, const sdlf_operation *operation)
{
    const sdlf_tensor *in = operation->in, *out = operation->out;
    p->a = rows_of(&in[0]);
    p->bias = sdlf_tensor_present(&in[2]) ? in[2].data : NULL;
    p->h0 = rows_of(&in[3]);
    if (operation->kind == SDLF_LSTM_FORWARD) p->c0 = rows_of(&in[4]);
    p->y = rows_of(&out[0]), p->gates = rows_of(&out[1]), p->kept = rows_of(&out[2]);
}

static void take_backward(recurrent_arguments *p, const sdlf_operation *operation)
{
    const sdlf_tensor *in = operation->in, *out = operation->out;
    bool is_lstm = operation->kind == SDLF_LSTM_BACKWARD;
    const sdlf_tensor *dy = &in[is_lstm ? 4 : 5];
    p->gates = rows_of(&in[0]), p->kept = rows_of(&in[2]);
    p->dy = rows_of(dy);
    p->last_only = dy->shape.dim[0] == 1;
    if (p->last_only) p->dy.step = 0;
    p->da = rows_of(&out[0]);
    if (is_lstm) {
        p->c0 = rows_of(&in[3]), p->dcn = rows_of(&in[5]);
        p->db = p->da, p->dh0 = rows_of(&out[1]), p->dc0 = rows_of(&out[2]);
    } else {
        p->y = rows_of(&in[3]), p->h0 = rows_of(&in[4]);
        p->db = rows_of(&out[1]), p->dh0 = rows_of(&out[2]);
    }
}

static recurrent_arguments arguments_of(const cuda_calculator *calculator, const sdlf_operation *operation)
{
    const int64_t *rows = operation->in[0].shape.dim;
    recurrent_arguments p = {.tiling = recurrent_tiling_of(calculator, operation, operation->algorithm)};
    p.steps = (int)rows[0], p.samples = (int)rows[1], p.units = (int)operation->in[1].shape.dim[1];
    p.reverse = operation->recurrence.reverse;
    p.weight = operation->in[1].data;
    p.tickets = calculator->tickets;
    bool backward = recurrent_is_backward(operation);
    if (backward)
        take_backward(&p, operation);
    else
        take_forward(&p, operation);
    const recurrent_rows *given = backward ? &p.db : &p.y; /* what blocks read of each other's outputs */
    int64_t together = 16 / (int64_t)sdlf_dtype_size(operation->in[0].dtype);
    p.aligned = (uintptr_t)given->data % 16 == 0 && given->step % together == 0 && given->sample % together == 0 &&
                (backward ? rows[2] : p.units) % together == 0;
    return p;
}

sdlf_status recurrent_cuda(sdlf_calculator *base, const sdlf_operation *operation)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (sdlf_tensor_count(&operation->out[0]) == 0) return SDLF_OK;
    const recurrent_arguments p = arguments_of(calculator, operation);
    const sdlf_dtype dtype = operation->in[0].dtype;
    if (p.tiling.algorithm == RECURRENT_STEPS) return recurrent_by_steps(base, operation, &p);
    return recurrent_is_backward(operation) ? recurrent_backward_cuda(calculator, &p, dtype, recurrent_gates(operation))
                                            : recurrent_forward_cuda(calculator, &p, dtype, recurrent_gates(operation));
}
