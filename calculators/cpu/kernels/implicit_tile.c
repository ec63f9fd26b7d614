/* One tile of an implicit product. See implicit_tile.h. */
#include "calculators/cpu/kernels/implicit_tile.h"

#include <math.h>

#include "calculators/cpu/kernels/activate.h"

/* Functions that only clamp are applied to vectors before they are written; the others to what was written. */
static bool clamps(const sdlf_activation *activation, element *low, element *high)
{
    *low = activation->function == SDLF_RELU ? 0 : -(element)INFINITY;
    *high = (element)INFINITY;
    if (activation->function == SDLF_CLIP) {
        *low = (element)activation->low;
        *high = (element)activation->high;
    }
    return activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU ||
           activation->function == SDLF_CLIP;
}

typedef vector tile_sums[MOST_PIXELS][PANEL_VECTORS];

/* Where the last vector has lanes too many, or pixels are missing. */
static void finish_part(const implicit_tile *t, int vectors, tile_sums sum)
{
    for (int64_t i = 0; i < t->pixels; i++) {
        element values[PANEL_VECTORS * LANES] = {0}, *y = t->y[i];
        for (int j = 0; j < vectors; j++) store(values + j * LANES, sum[i][j]);
        for (int64_t k = 0; k < t->filters; k++) y[k] = values[k] + (t->residual[0] != NULL ? t->residual[i][k] : 0);
        activate_cpu(y, y, t->filters, t->activation);
    }
}

/* pixels and vectors are constants where this is used. */
static inline __attribute__((always_inline)) void compute_tile(const int pixels, const int vectors,
                                                               const implicit_tile *t)
{
    tile_sums sum;
    const element *w = t->w;
    int64_t run = t->run;
    for (int j = 0; j < vectors; j++) {
        vector start = load(t->bias + j * LANES);
        for (int i = 0; i < pixels; i++) sum[i][j] = start;
    }
    for (int64_t r = 0; r < t->run_count; r++) {
        const element *x[MOST_PIXELS];
        for (int i = 0; i < pixels; i++) x[i] = t->at[r][i];
        for (int64_t c = 0; c < run; c++, w += vectors * LANES) {
            vector row[PANEL_VECTORS];
            for (int j = 0; j < vectors; j++) {
                row[j] = load(w + j * LANES);
                __builtin_prefetch(w + (PREFETCH_STEPS * vectors + j) * LANES);
            }
            for (int i = 0; i < pixels; i++) {
                for (int j = 0; j < vectors; j++) sum[i][j] += x[i][c] * row[j];
            }
        }
    }
    if (t->pixels < pixels || t->filters < vectors * LANES) {
        finish_part(t, vectors, sum);
        return;
    }
    element low, high;
    bool clamped = clamps(t->activation, &low, &high);
    for (int i = 0; i < pixels; i++) {
        for (int j = 0; j < vectors; j++) {
            vector value = sum[i][j];
            if (t->residual[0] != NULL) value += load(t->residual[i] + j * LANES);
            value = choose(value < broadcast(low), broadcast(low), value); /* NaN passes */
            store(t->y[i] + j * LANES, choose(value > broadcast(high), broadcast(high), value));
        }
    }
    for (int i = 0; i < pixels && !clamped; i++) activate_cpu(t->y[i], t->y[i], vectors * LANES, t->activation);
}

/* Functions of their own, so that each has all registers. */
static __attribute__((noinline)) void compute_1(const implicit_tile *t)
{
    compute_tile(PIXELS_1, 1, t);
}

static __attribute__((noinline)) void compute_2(const implicit_tile *t)
{
    compute_tile(PIXELS_2, 2, t);
}

static __attribute__((noinline)) void compute_3(const implicit_tile *t)
{
    compute_tile(PIXELS_3, 3, t);
}

#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
static __attribute__((noinline)) void compute_4(const implicit_tile *t)
{
    compute_tile(PIXELS_4, 4, t);
}
#endif

void implicit_tile_cpu(int vectors, const implicit_tile *tile)
{
    switch (vectors) {
    case 1: compute_1(tile); break;
    case 2: compute_2(tile); break;
    case 3: compute_3(tile); break;
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
    default: compute_4(tile); break;
#endif
    }
}
