/* SPDX-License-Identifier: MIT */
/* lstm and gru, forward: a tile's product, then its cells. See recurrent.c. */
#include "calculators/cpu/kernels/recurrent.h"

/* LANES units of a sample at a step, of which `lanes` are valid. */
typedef struct units {
    const element *a;                  /* the first gate */
    int64_t column, lanes, gate;       /* gate: elements from one gate to the next */
    element *y, *gates, *other, *cell; /* other: cells or products; NULL: not kept */
    const element *before;
    element *behind; /* h */
} units;

static inline units units_of(const recurrent *r, int64_t s, int64_t row, int64_t panel)
{
    int64_t place = recurrent_place(r, s), column = panel * LANES, at = row * r->padded + column;
    int64_t number = place * r->samples + row;
    return (units){
        .a = r->a + place * r->a_step + row * r->a_row + column,
        .column = column,
        .lanes = cpu_min(LANES, r->units - column),
        .gate = r->units,
        .y = r->y + place * r->y_step + row * r->y_row + column,
        .gates = r->gates_kept != NULL ? r->gates_kept + number * r->gates * r->units + column : NULL,
        .other = r->other_kept != NULL ? r->other_kept + number * r->units + column : NULL,
        .cell = r->cells + at,
        .before = r->state[s % 2] + at,
        .behind = r->state[(s + 1) % 2] + at,
    };
}

static inline vector load_a(const units *u, int64_t gate)
{
    return load_some(u->a + gate * u->gate, u->lanes);
}

/* b of the gate. */
static inline vector with_bias(const recurrent *r, const units *u, int64_t gate, const element *sums)
{
    vector b = load(sums + gate * LANES);
    return r->bias == NULL ? b : b + load_some(r->bias + gate * u->gate + u->column, u->lanes);
}

static inline void keep_gates(const units *u, const vector *gate, int count)
{
    for (int i = 0; i < count && u->gates != NULL; i++) store_some(u->gates + i * u->gate, gate[i], u->lanes);
}

static void finish_lstm(const recurrent *r, const units *u, const element *sums)
{
    vector in = sigmoid_lanes(load_a(u, 0) + with_bias(r, u, 0, sums));
    vector forget = sigmoid_lanes(load_a(u, 1) + with_bias(r, u, 1, sums));
    vector fresh = tangent_lanes(load_a(u, 2) + with_bias(r, u, 2, sums));
    vector out = sigmoid_lanes(load_a(u, 3) + with_bias(r, u, 3, sums));
    vector next = forget * load(u->cell) + in * fresh, h = out * tangent_lanes(next);
    store(u->cell, next);
    store(u->behind, h);
    store_some(u->y, h, u->lanes);
    if (u->other != NULL) store_some(u->other, next, u->lanes);
    keep_gates(u, (const vector[]){in, forget, fresh, out}, 4);
}

static void finish_gru(const recurrent *r, const units *u, const element *sums)
{
    vector before = load(u->before), own = with_bias(r, u, 2, sums);
    vector reset = sigmoid_lanes(load_a(u, 0) + with_bias(r, u, 0, sums));
    vector update = sigmoid_lanes(load_a(u, 1) + with_bias(r, u, 1, sums));
    vector fresh = tangent_lanes(load_a(u, 2) + reset * own), h = fresh + update * (before - fresh);
    store(u->behind, h);
    store_some(u->y, h, u->lanes);
    if (u->other != NULL) store_some(u->other, own, u->lanes);
    keep_gates(u, (const vector[]){reset, update, fresh}, 3);
}

static void finish_units(const recurrent *r, int64_t s, int64_t row, int64_t panel, const element *sums)
{
    units u = units_of(r, s, row, panel);
    if (r->is_lstm)
        finish_lstm(r, &u, sums);
    else
        finish_gru(r, &u, sums);
}

/* Prefetches the part of a that the tile's cells will read, during the tile's product: gates and rows are far apart. */
static inline void fetch_a(const recurrent *r, int64_t s, int64_t row, int64_t rows, int64_t panel)
{
    for (int64_t i = 0; i < rows; i++) {
        const element *a = r->a + recurrent_place(r, s) * r->a_step + (row + i) * r->a_row + panel * LANES;
        for (int64_t gate = 0; gate < r->gates; gate++) __builtin_prefetch(a + gate * r->units);
    }
}

/* What to prefetch while a panel is used: a part of the next panel for each tile of rows. */
static inline const element *ahead_of(const recurrent *r, int64_t panel, int64_t tile)
{
    int64_t next = panel + 1 < r->panel_count ? panel + 1 : 0;
    return r->panels + (next * r->gates + cpu_min(tile, r->gates - 1)) * r->depth * LANES;
}

void recurrent_step_forward_cpu(const recurrent *r, const recurrent_share *share, int64_t s)
{
    element sums[RECURRENT_ROWS * RECURRENT_VECTORS * LANES + 2 * RECURRENT_VECTORS * LANES];
    bool starts = s == 0 && !sdlf_tensor_present(&r->operation->in[3]); /* the states are zeros */
    bool one = share->end_row - share->first_row == 1 && !starts;
    int64_t width = r->gates * LANES;
    recurrent_tile tile = {.vectors = r->gates, .depth = starts ? 0 : r->depth, .x_row = r->padded};
    for (int64_t panel = share->first_panel; panel < share->end_panel; panel++) {
        tile.panel = r->panels + panel * r->depth * width;
        tile.x = r->state[s % 2] + share->first_row * r->padded;
        if (one && panel + 1 < share->end_panel) {
            recurrent_product_of_two_cpu(sums, &tile);
            finish_units(r, s, share->first_row, panel++, sums);
            finish_units(r, s, share->first_row, panel, sums + width);
            continue;
        }
        for (int64_t row = share->first_row, number = 0; row < share->end_row; row += tile.rows, number++) {
            tile.rows = recurrent_tile_rows(share->end_row - row);
            tile.x = r->state[s % 2] + row * r->padded;
            tile.ahead = ahead_of(r, panel, number);
            fetch_a(r, s, row, tile.rows, panel);
            recurrent_product_cpu(sums, &tile);
            for (int64_t i = 0; i < tile.rows; i++) finish_units(r, s, row + i, panel, sums + i * width);
        }
    }
}
