/* SPDX-License-Identifier: MIT */
/* lstm and gru, backward: the gate gradients, unit by unit, then their product with the weight. See recurrent.c. */
#include "calculators/cpu/kernels/recurrent.h"

/* LANES units of a sample, of which `lanes` are valid. */
typedef struct units {
    int64_t step, row, column, lanes;
} units;

/* The address of gate `gate` of these units at step `step`, in an operand (T,N,...). */
static inline element *at_step(const recurrent *r, const sdlf_tensor *x, const units *at, int64_t step, int64_t gate)
{
    return recurrent_row(r, x, step, at->row) + gate * r->units + at->column;
}

static inline vector load_in(const recurrent *r, int in, const units *at, int64_t gate)
{
    return load_some(at_step(r, &r->operation->in[in], at, at->step, gate), at->lanes);
}

/* The value before the step: at the previous step, or for the first step an initial state (N,H), zeros if absent. */
static inline vector load_before(const recurrent *r, int in, int first, const units *at)
{
    const sdlf_tensor *x = &r->operation->in[in], *state = &r->operation->in[first];
    if (at->step > 0) return load_some(at_step(r, x, at, at->step - 1, 0), at->lanes);
    if (!sdlf_tensor_present(state)) return (vector){0};
    return load_some((const element *)state->data + at->row * state->stride[0] + at->column, at->lanes);
}

/* dh of the step, dy included. */
static inline vector load_gradient(const recurrent *r, int in, const units *at)
{
    const sdlf_tensor *dy = &r->operation->in[in];
    vector dh = load(r->state[0] + at->row * r->padded + at->column);
    if (dy->shape.dim[0] == r->steps) return dh + load_in(r, in, at, 0);
    if (at->step < r->steps - 1) return dh;
    return load_some((const element *)dy->data + at->row * dy->stride[1] + at->column, at->lanes);
}

static inline void keep(const recurrent *r, int output, const units *at, int64_t gate, vector value)
{
    store_some(at_step(r, &r->operation->out[output], at, at->step, gate), value, at->lanes);
}

static void gradient_of_lstm(const recurrent *r, const units *at)
{
    element *cell = r->cells + at->row * r->padded + at->column;
    vector i = load_in(r, 0, at, 0), f = load_in(r, 0, at, 1), g = load_in(r, 0, at, 2), o = load_in(r, 0, at, 3);
    vector squashed = tangent_lanes(load_in(r, 2, at, 0)), dh = load_gradient(r, 4, at);
    vector dc = load(cell) + dh * o * (1 - squashed * squashed);
    keep(r, 0, at, 0, dc * g * (i * (1 - i)));
    keep(r, 0, at, 1, dc * load_before(r, 2, 3, at) * (f * (1 - f)));
    keep(r, 0, at, 2, dc * i * (1 - g * g));
    keep(r, 0, at, 3, dh * squashed * (o * (1 - o)));
    store(cell, dc * f);
}

static void gradient_of_gru(const recurrent *r, const units *at)
{
    vector reset = load_in(r, 0, at, 0), update = load_in(r, 0, at, 1), fresh = load_in(r, 0, at, 2);
    vector dh = load_gradient(r, 5, at), dn = dh * (1 - update) * (1 - fresh * fresh);
    vector dr = dn * load_in(r, 2, at, 0) * (reset * (1 - reset));
    vector dz = dh * (load_before(r, 3, 4, at) - fresh) * (update * (1 - update));
    const vector gradient[] = {dr, dz, dn, dn * reset};
    for (int gate = 0; gate < 3; gate++) {
        keep(r, 0, at, gate, gradient[gate]);
        keep(r, 1, at, gate, gradient[gate == 2 ? 3 : gate]);
    }
    store(r->cells + at->row * r->padded + at->column, dh * update);
}

void recurrent_step_gradient_cpu(const recurrent *r, const recurrent_share *share, int64_t s)
{
    int64_t width = RECURRENT_VECTORS * LANES, end = cpu_min(r->padded, share->end_panel * width);
    for (int64_t row = share->first_row; row < share->end_row; row++) {
        for (int64_t column = share->first_panel * width; column < end; column += LANES) {
            units at = {s, row, column, cpu_min(LANES, r->units - column)};
            if (r->is_lstm)
                gradient_of_lstm(r, &at);
            else
                gradient_of_gru(r, &at);
        }
    }
}

/* Stores dh of a row, computed from its sums. */
static inline void put_row(const recurrent *r, int64_t row, int64_t column, int64_t width, const element *sums)
{
    element *to = r->state[0] + row * r->padded + column;
    const element *kept = r->cells + row * r->padded + column;
    for (int64_t j = 0; j < width; j += LANES)
        store(to + j, r->is_lstm ? load(sums + j) : load(sums + j) + load(kept + j));
}

void recurrent_step_back_cpu(const recurrent *r, const recurrent_share *share, int64_t s)
{
    element sums[RECURRENT_ROWS * RECURRENT_VECTORS * LANES];
    const sdlf_tensor *rows = &r->operation->out[r->is_lstm ? 0 : 1];
    recurrent_tile tile = {.depth = r->depth, .x_row = rows->stride[1]};
    for (int64_t panel = share->first_panel; panel < share->end_panel; panel++) {
        int64_t column = panel * RECURRENT_VECTORS * LANES, number = 0;
        tile.vectors = cpu_min(RECURRENT_VECTORS, (r->padded - column) / LANES);
        tile.panel = r->panels + column * r->depth;
        int64_t next = panel + 1 < r->panel_count ? column + tile.vectors * LANES : 0;
        for (int64_t row = share->first_row; row < share->end_row; row += tile.rows, number++) {
            tile.rows = recurrent_tile_rows(share->end_row - row);
            tile.x = recurrent_row(r, rows, s, row);
            tile.ahead = r->panels + cpu_min(next + number * LANES, r->padded - LANES) * r->depth;
            recurrent_product_cpu(sums, &tile);
            for (int64_t i = 0; i < tile.rows; i++)
                put_row(r, row + i, column, tile.vectors * LANES, sums + i * tile.vectors * LANES);
        }
    }
}
