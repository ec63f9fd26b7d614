/* SPDX-License-Identifier: MIT */
/* Winograd input transform. See winograd.h.
 *
 * A step transforms a vector of channels of one tile: (m + 2)^2 loads and stores, 32 additions for m = 2. */
#include "calculators/cpu/kernels/winograd_stages.h"

enum { SIDE = WINOGRAD_SIDE };

/* B^T d B of a vector of channels: at[r * (m + 2) + s] + c is column s of row r. */
static inline __attribute__((always_inline)) void transform_patch(const int m, const element *const *at, int64_t c,
                                                                  element *to, int64_t step)
{
    vector half[SIDE][SIDE];
    UNROLLED
    for (int s = 0; s < SIDE; s++) {
        if (s >= m + 2) continue;
        vector d[SIDE], column[SIDE];
        UNROLLED
        for (int r = 0; r < SIDE; r++) {
            if (r < m + 2) d[r] = load(at[r * (m + 2) + s] + c);
        }
        winograd_input(m, column, d);
        UNROLLED
        for (int r = 0; r < SIDE; r++) {
            if (r < m + 2) half[r][s] = column[r];
        }
    }
    UNROLLED
    for (int r = 0; r < SIDE; r++) {
        if (r >= m + 2) continue;
        vector line[SIDE];
        winograd_input(m, line, half[r]);
        UNROLLED
        for (int s = 0; s < SIDE; s++) {
            if (s < m + 2) store(to + (r * (m + 2) + s) * step + c, line[s]);
        }
    }
}

/* All channels of a tile; the tail after the last whole vector through a copy. */
static inline __attribute__((always_inline)) void transform_tile(const int m, const winograd *all,
                                                                 const element *const *at, element *to)
{
    int64_t channels = all->forward->v.c, whole = channels / LANES * LANES;
    for (int64_t c = 0; c < whole; c += LANES) transform_patch(m, at, c, to, all->patch_step);
    if (whole == channels) return;
    element part[SIDE * SIDE][LANES] = {{0}};
    const element *from[SIDE * SIDE];
    for (int i = 0; i < all->points; i++) {
        memcpy(part[i], at[i] + whole, (size_t)(channels - whole) * sizeof *part[i]);
        from[i] = part[i];
    }
    transform_patch(m, from, 0, to + whole, all->patch_step);
}

/* Separate functions, so that each has all registers. */
static __attribute__((noinline)) void transform_2(const winograd *all, const element *const *at, element *to)
{
    transform_tile(2, all, at, to);
}

static __attribute__((noinline)) void transform_4(const winograd *all, const element *const *at, element *to)
{
    transform_tile(4, all, at, to);
}

void winograd_input_transform_cpu(const winograd *all, int64_t group, int64_t first, int64_t count,
                                  element *transformed)
{
    const convolution *v = &all->forward->v;
    int64_t pixel = v->groups * v->c, side = all->m + 2;
    const element *at[SIDE * SIDE];
    winograd_place place = winograd_at(all, first);
    winograd_place ahead =
        winograd_at(all, first + all->row + FETCH_TILES); /* its upper pixels were fetched with the row above */
    for (int64_t i = 0; i < count; i++, winograd_next(all, &place), winograd_next(all, &ahead)) {
        int64_t top = place.p - v->before[0], left = place.q - v->before[1];
        const element *x = all->forward->x + place.image * v->h * v->w * pixel + group * v->c;
        for (int64_t r = 0; r < side; r++) {
            bool inside = top + r >= 0 && top + r < v->h;
            for (int64_t s = 0; s < side; s++) {
                bool is_there = inside && left + s >= 0 && left + s < v->w;
                at[r * side + s] = is_there ? x + ((top + r) * v->w + left + s) * pixel : all->zeros;
            }
        }
        winograd_fetch(all, &ahead, all->forward->x + group * v->c, v->h, v->w, pixel, v->c, 0);
        if (all->m == 2)
            transform_2(all, at, transformed + i * all->channels);
        else
            transform_4(all, at, transformed + i * all->channels);
    }
}
