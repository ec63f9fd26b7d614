/* SPDX-License-Identifier: MIT */
/* Views of samples: mirrored, shifted by one pixel. */
#include "framework/test_time_augmentation.h"

int sample_view_count(sdlf_views views)
{
    static const int counts[SDLF_VIEWS_COUNT] = {1, 2, 6};
    return counts[views];
}

sample_view sample_view_at(sdlf_views views, int index)
{
    int moved = index / 2;
    float weight = views == SDLF_VIEWS_ONE ? 1 : views == SDLF_VIEWS_FLIP ? 0.5f : moved == 0 ? 0.25f : 0.125f;
    int by = moved == 0 ? 0 : moved == 1 ? -1 : 1;
    return (sample_view){.flip = index % 2 == 1, .down = by, .right = by, .weight = weight};
}

/* Reflection: -1 becomes 1, `side` becomes side - 2. */
static int64_t mirrored(int64_t at, int64_t side)
{
    if (at < 0) return -at;
    return at < side ? at : 2 * side - 2 - at;
}

void sample_view_make(float *to, const float *samples, int64_t count, sdlf_shape sample, sample_view view)
{
    int64_t height = sample.dim[1], width = sample.dim[2];
    for (int64_t plane = 0; plane < count * sample.dim[0]; plane++) {
        const float *from = samples + plane * height * width;
        for (int64_t h = 0; h < height; h++) {
            const float *row = from + mirrored(h - view.down, height) * width;
            for (int64_t w = 0; w < width; w++)
                *to++ = row[mirrored((view.flip ? width - 1 - w : w) - view.right, width)];
        }
    }
}
