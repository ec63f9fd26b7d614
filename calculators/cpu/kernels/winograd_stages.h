/* The stages of a Winograd convolution, and the arrays between them. See winograd.h.
 *
 * Tiles (m x m outputs each) of all images are counted through, row by row, and taken in chunks whose transformed patches and
 * products stay in the caches together. Within a chunk its tiles are the columns of (m + 2)^2 matrices, cut into panels of
 * TILE_COLUMNS columns, as the innermost product reads them:
 *     filters   U[g][t][k][c]            t counts the points of a transformed patch; rows are padded to whole vectors
 *     patches   V[t][panel][c][column]   the last panel is as wide as it needs to be, in whole vectors
 *     products  M[t][panel][k][column] */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_STAGES_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_STAGES_H

#include "calculators/cpu/kernels/winograd.h"
#include "calculators/cpu/kernels/winograd_transform.h"

typedef struct winograd {
    const convolution_forward *forward;
    int m, side, points;               /* outputs of a tile along an axis; m + 2; (m + 2)^2 */
    int64_t rows, row, tiles;          /* rows of tiles of an image, tiles of a row, all tiles of a group */
    int64_t channels;                  /* v.c padded to whole vectors */
    int64_t chunk;                     /* tiles of a chunk, at most */
    int64_t group, first, count, wide; /* the chunk at hand: its group and tiles; its columns, in whole vectors */
    const element *filters;
    element *patches, *products;
} winograd;

/* Tiles that a stage takes at a time: a piece of a row of tiles. */
enum { WINOGRAD_PIECE = 64, WINOGRAD_LINE = WINOGRAD_PIECE + 16 };

/* The piece that begins with tile `index` of a group: image, row and column of the tile, and how many follow, itself included. */
typedef struct winograd_piece {
    int64_t image, p, q, count;
} winograd_piece;

static inline winograd_piece winograd_piece_at(const winograd *all, int64_t index, int64_t end)
{
    int64_t each = all->rows * all->row;
    winograd_piece piece = {.image = index / each, .p = index % each / all->row, .q = index % all->row};
    piece.count = cpu_min(cpu_min(all->row - piece.q, end - index), WINOGRAD_PIECE);
    return piece;
}

/* Columns of the panel that holds column `column`, from there to its end. */
static inline int64_t winograd_run(const winograd *all, int64_t column)
{
    return cpu_min(TILE_COLUMNS - column % TILE_COLUMNS, all->wide - column);
}

/* Where column `column` of row `row` of matrix `t` lies, in patches or products with `height` rows. */
static inline element *winograd_place(const winograd *all, element *matrices, int64_t height, int64_t t, int64_t row,
                                      int64_t column)
{
    int64_t panel = column / TILE_COLUMNS * TILE_COLUMNS, width = cpu_min(TILE_COLUMNS, all->wide - panel);
    return matrices + t * height * all->wide + panel * height + row * width + column - panel;
}

/* The patches of channel `index` of the chunk; the products of filter `index` into outputs. */
void winograd_patches_cpu(void *context, int64_t index, int thread);
void winograd_outputs_cpu(void *context, int64_t index, int thread);

#endif
