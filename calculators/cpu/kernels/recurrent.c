/* SPDX-License-Identifier: MIT */
/* lstm and gru over a sequence. Contract: <sdlf/operations/recurrent.h>.
 *
 * A step multiplies the states of all samples with the weight, then computes the cells. The weight is packed in panels,
 * once for all steps or, in inference, for all runs: forward a panel has the gates of LANES units, so that a tile's
 * accumulators are all that these units' cells need; backward it has columns of the weight.
 * If steps are long or samples few, a task is some panels' part of a step, which the same thread gets in every step
 * (cpu_parallel_steps), so that they stay in its cache, and all samples use a panel while it is there. Otherwise a task
 * is all steps of some samples, which are independent of the others.
 * 2 T N G H H FLOPs. Each step reads G H H weights from the second-level cache: with one sample, that is the floor. No
 * sum depends on the partition of the work. */
#include "calculators/cpu/kernels/recurrent.h"

/* The shortest step, in nanoseconds, worth a barrier, and a step for which the barrier is negligible; the samples of a
 * thread that amortise reading the weight. */
enum { WORTH_WAITING = 2500, LONG_STEP = 40000, ENOUGH_ROWS = 4 };

static recurrent recurrent_of(const sdlf_operation *operation)
{
    const int64_t *rows = operation->in[0].shape.dim, *weight = operation->in[1].shape.dim;
    sdlf_operation_kind kind = operation->kind;
    recurrent r = {.operation = operation, .steps = rows[0], .samples = rows[1], .units = weight[1]};
    r.is_lstm = kind == SDLF_LSTM_FORWARD || kind == SDLF_LSTM_BACKWARD;
    r.is_backward = kind == SDLF_LSTM_BACKWARD || kind == SDLF_GRU_BACKWARD;
    r.gates = r.is_lstm ? 4 : 3;
    r.padded = cpu_round_up(r.units, LANES);
    r.depth = r.is_backward ? r.gates * r.units : r.units;
    r.task_panels = r.is_backward ? 1 : 2; /* with one sample, two are multiplied at once */
    r.panel_count = cpu_divide_up(r.padded, r.is_backward ? RECURRENT_VECTORS * LANES : LANES);
    if (r.is_backward) return r;
    const sdlf_tensor *a = &operation->in[0], *y = &operation->out[0];
    r.a = a->data, r.a_step = a->stride[0], r.a_row = a->stride[1];
    r.y = y->data, r.y_step = y->stride[0], r.y_row = y->stride[1];
    r.bias = input(operation, 2); /* NULL if absent, as are these: */
    r.gates_kept = output(operation, 1), r.other_kept = output(operation, 2);
    return r;
}

static int64_t panels_size(const recurrent *r)
{
    return r->gates * r->units * r->padded;
}

/* ---- packing ---- */

typedef struct packing {
    const recurrent *r;
    element *panels;
} packing;

/* Packs the gates of LANES units: panel[p][gate][lane] = weight[gate H + unit][p]. */
static void pack_gates(void *context, int64_t index, int thread)
{
    const packing *p = context;
    const recurrent *r = p->r;
    const element *weight = input(r->operation, 1);
    int64_t first = index * LANES, step = r->gates * LANES, lanes = cpu_min(LANES, r->units - first);
    element *panel = p->panels + index * r->depth * step;
    (void)thread;
    for (int64_t gate = 0; gate < r->gates; gate++) {
        const element *rows = weight + (gate * r->units + first) * r->units;
        for (int64_t i = 0; i < r->depth; i++) {
            element *to = panel + i * step + gate * LANES;
            for (int64_t lane = 0; lane < lanes; lane++) to[lane] = rows[lane * r->units + i];
            for (int64_t lane = lanes; lane < LANES; lane++) to[lane] = 0;
        }
    }
}

/* Packs columns: panel[p][vector][lane] = weight[p][column]. */
static void pack_columns(void *context, int64_t index, int thread)
{
    const packing *p = context;
    const recurrent *r = p->r;
    int64_t first = index * RECURRENT_VECTORS * LANES, width = cpu_min(RECURRENT_VECTORS * LANES, r->padded - first);
    int64_t there = cpu_min(width, r->units - first);
    element *to = p->panels + first * r->depth;
    (void)thread;
    for (int64_t i = 0; i < r->depth; i++, to += width) {
        memcpy(to, input(r->operation, 1) + i * r->units + first, (size_t)there * sizeof *to);
        for (int64_t j = there; j < width; j++) to[j] = 0;
    }
}

static void pack(const cpu_calculator *cpu, const recurrent *r, element *panels)
{
    packing p = {r, panels};
    cpu_parallel_exact(cpu, r->panel_count, cpu_time_of_elements(2 * panels_size(r)),
                       r->is_backward ? pack_columns : pack_gates, &p);
}

int64_t recurrent_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    recurrent r = recurrent_of(operation);
    return panels_size(&r) * (int64_t)sizeof(element);
}

sdlf_status recurrent_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    recurrent r = recurrent_of(operation);
    pack(cpu_from(calculator), &r, operation->prepared.data);
    return SDLF_OK;
}

/* ---- states ---- */

static int64_t state_size(const recurrent *r)
{
    return r->samples * r->padded;
}

int64_t recurrent_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    recurrent r = recurrent_of(operation);
    int64_t panels = sdlf_tensor_present(&operation->prepared) ? 0 : panels_size(&r);
    return (3 * state_size(&r) + panels) * (int64_t)sizeof(element);
}

/* (N,padded) from (N,H) of any strides; zeros if it is absent. */
static void take_state(const recurrent *r, const sdlf_tensor *from, element *to)
{
    memset(to, 0, (size_t)state_size(r) * sizeof *to);
    for (int64_t n = 0; n < r->samples && sdlf_tensor_present(from); n++)
        memcpy(to + n * r->padded, (const element *)from->data + n * from->stride[0], (size_t)r->units * sizeof *to);
}

static void give_state(const recurrent *r, const element *from, const sdlf_tensor *to)
{
    for (int64_t n = 0; n < r->samples && sdlf_tensor_present(to); n++)
        memcpy((element *)to->data + n * r->units, from + n * r->padded, (size_t)r->units * sizeof *from);
}

/* Sets up the workspace and the packed panels. */
static recurrent begin(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    recurrent r = recurrent_of(operation);
    element *room = operation->workspace.data;
    for (int i = 0; i < 2; i++) r.state[i] = room + i * state_size(&r);
    r.cells = room + 2 * state_size(&r);
    /* the k loop reads only `units` elements of a row; the padding stays 0 */
    memset(r.state[1], 0, (size_t)state_size(&r) * sizeof(element));
    r.panels = operation->prepared.data;
    if (sdlf_tensor_present(&operation->prepared)) return r;
    pack(cpu, &r, room + 3 * state_size(&r));
    r.panels = room + 3 * state_size(&r);
    return r;
}

/* ---- sharing ---- */

typedef struct sharing {
    const recurrent *r;
    int64_t groups; /* number of row groups */
    bool to_state;  /* whether the gradient of the initial states is wanted */
} sharing;

/* One part of the recurrence: forward a step; backward the recurrent product of the step after, then the gate gradients
 * of a step, which need only their own units of that product. */
static void advance(const sharing *all, const recurrent_share *share, int64_t number)
{
    const recurrent *r = all->r;
    int64_t s = r->steps - number; /* backward: the step whose recurrent product is next */
    if (!r->is_backward) {
        recurrent_step_forward_cpu(r, share, number);
        return;
    }
    if (s < r->steps && (s > 0 || all->to_state)) recurrent_step_back_cpu(r, share, s);
    if (s > 0) recurrent_step_gradient_cpu(r, share, s - 1);
}

static void do_panels(void *context, int64_t step, int64_t index)
{
    const sharing *all = context;
    int64_t first = index * all->r->task_panels, end = cpu_min(first + all->r->task_panels, all->r->panel_count);
    advance(all, &(recurrent_share){0, all->r->samples, first, end}, step);
}

static int64_t count_parts(const recurrent *r)
{
    return r->steps + (r->is_backward ? 1 : 0);
}

static void do_rows(void *context, int64_t index, int thread)
{
    const sharing *all = context;
    int64_t rows = all->r->samples;
    recurrent_share share = {index * rows / all->groups, (index + 1) * rows / all->groups, 0, all->r->panel_count};
    (void)thread;
    for (int64_t i = 0; i < count_parts(all->r); i++) advance(all, &share, i);
}

static void run_steps(const cpu_calculator *cpu, const recurrent *r)
{
    const sdlf_tensor *out = r->operation->out;
    int64_t products = r->gates * r->units * r->units, threads = cpu->threads;
    int64_t step =
        cpu_time_of_flops(2 * r->samples * products) + cpu_time_of_elements(r->samples * r->gates * r->units);
    sharing all = {.r = r, .to_state = sdlf_tensor_present(&out[r->is_lstm ? 1 : 2])};
    bool many = r->samples >= threads * ENOUGH_ROWS;
    if (threads > 1 && (step < WORTH_WAITING || (step < LONG_STEP && many))) {
        all.groups = cpu_min(r->samples, cpu_round_up(cpu_divide_up(r->samples, RECURRENT_ROWS), threads));
        cpu_parallel(cpu, all.groups, step * r->steps, do_rows, &all);
    } else {
        cpu_parallel_steps(cpu, count_parts(r), cpu_divide_up(r->panel_count, r->task_panels), step * r->steps,
                           do_panels, &all);
    }
}

sdlf_status recurrent_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    recurrent r = begin(cpu, operation);
    take_state(&r, &operation->in[3], r.state[0]);
    take_state(&r, r.is_lstm ? &operation->in[4] : &none, r.cells);
    run_steps(cpu, &r);
    return SDLF_OK;
}

sdlf_status recurrent_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    recurrent r = begin(cpu, operation);
    take_state(&r, &none, r.state[0]);
    take_state(&r, r.is_lstm ? &operation->in[5] : &none, r.cells);
    run_steps(cpu, &r);
    give_state(&r, r.state[0], &operation->out[r.is_lstm ? 1 : 2]);
    if (r.is_lstm) give_state(&r, r.cells, &operation->out[2]);
    return SDLF_OK;
}
