/* SPDX-License-Identifier: MIT */
/* The part of an image that its augmented version needs. See warp_part.h. */
#include "framework/warp_part.h"

#include "framework/operations/warp.h"

static int within(int64_t at, int64_t least, int64_t most)
{
    return (int)(at < least ? least : at > most ? most : at);
}

/* Without elastic displacement, source positions are monotonic along rows and columns: the corners bound them. */
bool sdlf_warp_part(sdlf_sample_part *part, sdlf_shape shape, const sdlf_augmentation *augment, int64_t image,
                    int64_t epoch)
{
    if (shape.rank != 3 || augment->elastic != 0 || augment->reflect || !sdlf_augmentation_moves(augment)) return false;
    int64_t height = shape.dim[1], width = shape.dim[2], least[2] = {INT64_MAX, INT64_MAX},
            most[2] = {INT64_MIN, INT64_MIN};
    if (height > INT32_MAX || width > INT32_MAX) return false;
    sdlf_warp warp = sdlf_warp_make(augment, image, epoch, height, width);
    for (int corner = 0; corner < 4; corner++) {
        sdlf_warp_point from = sdlf_warp_at(&warp, corner / 2 * (height - 1), corner % 2 * (width - 1));
        const int64_t at[2] = {from.h, from.w};
        for (int i = 0; i < 2; i++) {
            if (at[i] < least[i]) least[i] = at[i];
            if (at[i] > most[i]) most[i] = at[i];
        }
    }
    *part = (sdlf_sample_part){.rows = {within(least[0], 0, height - 1)}, .columns = {within(least[1], 0, width - 1)}};
    part->rows[1] = within(most[0] + 2, part->rows[0] + 1, height); /* including the neighbour after the last */
    part->columns[1] = within(most[1] + 2, part->columns[0] + 1, width);
    return true;
}
