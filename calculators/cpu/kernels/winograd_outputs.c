/* Winograd: products of a chunk become outputs, with bias, residual and activation. See winograd_stages.h.
 *
 * The way of winograd_patches.c back: vectors run over the tiles of a row, and m lines of every m-th column are collected into
 * one. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/winograd_stages.h"

/* A^T d A of a piece: line[i] is row i of the tiles, m columns for each. */
static inline __attribute__((always_inline)) void transform_piece(const int m,
                                                                  element line[][WINOGRAD_OUTPUTS * WINOGRAD_LINE],
                                                                  element products[][WINOGRAD_LINE], int64_t count)
{
    for (int64_t j = 0; j < count; j += LANES) {
        vector half[WINOGRAD_SIDE][WINOGRAD_OUTPUTS], out[WINOGRAD_OUTPUTS][WINOGRAD_OUTPUTS];
        for (int r = 0; r < m + 2; r++) {
            vector d[WINOGRAD_SIDE];
            for (int s = 0; s < m + 2; s++) d[s] = load(&products[r * (m + 2) + s][j]);
            winograd_output(m, half[r], d);
        }
        for (int s = 0; s < m; s++) {
            vector d[WINOGRAD_SIDE], to[WINOGRAD_OUTPUTS];
            for (int r = 0; r < m + 2; r++) d[r] = half[r][s];
            winograd_output(m, to, d);
            for (int i = 0; i < m; i++) out[i][s] = to[i];
        }
        for (int i = 0; i < m; i++) winograd_collect(m, &line[i][m * j], out[i]);
    }
}

/* Rows of outputs: those of the tiles that lie inside. */
static void write_rows(const winograd *all, element line[][WINOGRAD_OUTPUTS * WINOGRAD_LINE],
                       const winograd_piece *piece, int64_t k)
{
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    int64_t filter = all->group * v->k + k, rows = cpu_min(all->m, v->p - piece->p * all->m);
    int64_t q = piece->q * all->m, count = cpu_min(piece->count * all->m, v->q - q);
    element bias = forward->bias ? forward->bias[filter] : 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = ((piece->image * v->groups * v->k + filter) * v->p + piece->p * all->m + i) * v->q + q;
        element *y = forward->y + at;
        const element *from = line[i], *residual = forward->residual ? forward->residual + at : NULL;
        if (residual) {
            for (int64_t j = 0; j < count; j++) y[j] = from[j] + bias + residual[j];
        } else {
            for (int64_t j = 0; j < count; j++) y[j] = from[j] + bias;
        }
        activate_cpu(y, y, count, &forward->activation);
    }
}

void winograd_outputs_cpu(void *context, int64_t index, int thread)
{
    const winograd *all = context;
    element products[WINOGRAD_SIDE * WINOGRAD_SIDE][WINOGRAD_LINE];
    element line[WINOGRAD_OUTPUTS][WINOGRAD_OUTPUTS * WINOGRAD_LINE];
    int64_t end = all->first + all->count;
    (void)thread;
    memset(products, 0, sizeof products); /* whole vectors are read */
    for (int64_t tile = all->first; tile < end;) {
        winograd_piece piece = winograd_piece_at(all, tile, end);
        for (int64_t done = 0, run; done < piece.count; done += run) {
            int64_t column = tile - all->first + done;
            run = cpu_min(winograd_run(all, column), piece.count - done);
            for (int t = 0; t < all->points; t++) {
                const element *from = winograd_place(all, all->products, all->forward->v.k, t, index, column);
                memcpy(&products[t][done], from, (size_t)run * sizeof *from);
            }
        }
        if (all->m == 2) {
            transform_piece(2, line, products, piece.count);
        } else {
            transform_piece(4, line, products, piece.count);
        }
        write_rows(all, line, &piece, index);
        tile += piece.count;
    }
}
