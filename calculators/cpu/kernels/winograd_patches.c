/* Winograd: patches of the image, transformed. See winograd_stages.h.
 *
 * Vectors run over the tiles of a row. Tile j needs columns m j .. m j + m + 1, so that the lines of the image are first dealt
 * out to m lines of every m-th column each: column m j + s is number j + s / m of line s % m, and what a vector of tiles reads
 * lies side by side. Reads each number of the image (m + 2)^2 / m^2 times, from the caches, and writes (m + 2)^2 / m^2 numbers
 * for it. */
#include "calculators/cpu/kernels/winograd_stages.h"

/* Columns [first, first + count) of line h of plane x, zeros outside of the image. */
static void read_line(element *to, const convolution *v, const element *x, int64_t h, int64_t first, int64_t count)
{
    int64_t from = cpu_min(cpu_max(-first, 0), count), end = cpu_max(cpu_min(v->w - first, count), from);
    if (h < 0 || h >= v->h) from = end = count;
    memset(to, 0, (size_t)from * sizeof *to);
    if (from < end) memcpy(to + from, x + h * v->w + first + from, (size_t)(end - from) * sizeof *to);
    memset(to + end, 0, (size_t)(count - end) * sizeof *to);
}

/* B^T d B of a piece: result[t][j] for the piece's tiles j, in whole vectors. */
static inline __attribute__((always_inline)) void transform_piece(const int m, element result[][WINOGRAD_LINE],
                                                                  const convolution *v, const element *x,
                                                                  const winograd_piece *piece)
{
    enum { SIDE = WINOGRAD_SIDE, MOST = WINOGRAD_OUTPUTS };
    element line[MOST * WINOGRAD_LINE], dealt[SIDE][MOST][WINOGRAD_LINE];
    int64_t wide = cpu_round_up(piece->count + 1, LANES); /* a patch reaches one number further */
    for (int r = 0; r < m + 2; r++) {
        read_line(line, v, x, piece->p * m + r - v->before[0], piece->q * m - v->before[1], m * wide);
        for (int64_t j = 0; j < wide; j += LANES) {
            vector part[MOST];
            winograd_deal(m, part, line + m * j);
            for (int i = 0; i < m; i++) store(&dealt[r][i][j], part[i]);
        }
    }
    for (int i = 0; i < m; i++) { /* columns: in place */
        for (int64_t j = 0; j < wide; j += LANES) {
            vector d[SIDE], to[SIDE];
            for (int r = 0; r < m + 2; r++) d[r] = load(&dealt[r][i][j]);
            winograd_input(m, to, d);
            for (int r = 0; r < m + 2; r++) store(&dealt[r][i][j], to[r]);
        }
    }
    for (int r = 0; r < m + 2; r++) { /* rows */
        for (int64_t j = 0; j < piece->count; j += LANES) {
            vector d[SIDE], to[SIDE];
            for (int s = 0; s < m + 2; s++) d[s] = load(&dealt[r][s % m][j + s / m]);
            winograd_input(m, to, d);
            for (int s = 0; s < m + 2; s++) store(&result[r * (m + 2) + s][j], to[s]);
        }
    }
}

void winograd_patches_cpu(void *context, int64_t index, int thread)
{
    const winograd *all = context;
    const convolution *v = &all->forward->v;
    element result[WINOGRAD_SIDE * WINOGRAD_SIDE][WINOGRAD_LINE];
    int64_t end = all->first + all->count;
    (void)thread;
    for (int64_t tile = all->first; tile < end;) {
        winograd_piece piece = winograd_piece_at(all, tile, end);
        const element *x = all->forward->x + ((piece.image * v->groups + all->group) * v->c + index) * v->h * v->w;
        if (all->m == 2) {
            transform_piece(2, result, v, x, &piece);
        } else {
            transform_piece(4, result, v, x, &piece);
        }
        for (int64_t done = 0, run; done < piece.count; done += run) {
            int64_t column = tile - all->first + done;
            run = cpu_min(winograd_run(all, column), piece.count - done);
            for (int t = 0; t < all->points; t++) {
                element *to = winograd_place(all, all->patches, v->c, t, index, column);
                memcpy(to, &result[t][done], (size_t)run * sizeof *to);
            }
        }
        tile += piece.count;
    }
}
