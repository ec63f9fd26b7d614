/* SPDX-License-Identifier: MIT */
/* The geometry of gather_batch, bit for bit the same on every calculator: how an image is warped, how a value between
 * pixels is interpolated, how it is normalised. The contract is at sdlf_augmentation in <sdlf/operation.h>. All
 * arithmetic is float32, each operation rounded, whatever the type of y (only a float64 x that is not warped is
 * normalised in float64).
 *
 *     sdlf_warp warp = sdlf_warp_make(&augment, image, epoch, height, width);
 *     for each output pixel (h, w):
 *         sdlf_warp_point from = sdlf_warp_at(&warp, h, w);
 *         value = sdlf_bilinear(...the four pixels around from, each by sdlf_warp_source...);
 *         if (warp.tinted, of three channels) sdlf_warp_turn(&warp, the three values), and grey from these;
 *         if (warp.tinted) value = sdlf_warp_tint(&warp, value, grey, mean);
 *         y = sdlf_warp_erases(&warp, h, w) ? 0 : sdlf_normalize(value, mean, scale); */
#ifndef SDLF_OPERATIONS_WARP_H
#define SDLF_OPERATIONS_WARP_H

#include <sdlf/operation.h>
#include <sdlf/random.h>

#include "framework/operations/augmented.h"
#include "framework/operations/exact.h"
#include "framework/operations/sincos.h"

#include <math.h>

/* Nodes of the displacement grid, in each direction. */
enum { SDLF_WARP_NODES = 4 };

typedef struct sdlf_warp {
    float centre[2];    /* vertical, horizontal */
    float matrix[2][2]; /* A */
    float shift[2];
    bool elastic;
    float cells[2]; /* grid cells per pixel */
    float node[SDLF_WARP_NODES][SDLF_WARP_NODES][2];
    bool reflect;       /* outside, the image is reflected, instead of the background */
    int64_t hole[2][2]; /* rows and columns of the output that are erased, [first, end) */
    bool tinted;        /* with these: */
    float brightness, contrast, saturation, hue;
} sdlf_warp;

/* Where an output pixel is read: pixel (h, w) and its right and lower neighbours, with `down` and `right` the offsets
 * towards them, in [0, 1). The position may be outside the image, where the background is 0. */
typedef struct sdlf_warp_point {
    int64_t h, w;
    float down, right;
} sdlf_warp_point;

/* The means and scales of a gather_batch: those of its channels, or one for all elements. */
SDLF_INLINE sdlf_channel_normalization sdlf_gather_channels(const sdlf_operation *gather)
{
    sdlf_channel_normalization channels = gather->gather.channels;
    if (channels.count > 0) return channels;
    channels.count = 1;
    channels.mean[0] = gather->gather.mean;
    channels.scale[0] = gather->gather.scale;
    return channels;
}

/* Uniform in [-range, range). */
SDLF_INLINE float sdlf_warp_draw(uint32_t word, float range)
{
    SDLF_EXACT
    return (2.0f * sdlf_uniform_from_word(word) - 1.0f) * range;
}

/* A random part of the image, enlarged to the whole: at least `resized_crop` of the area, slightly wider or higher.
 * Changes matrix and shift of a warp whose other members are set. */
SDLF_INLINE void sdlf_warp_resize(sdlf_warp *warp, const sdlf_augmentation *augment, uint64_t first, uint32_t step)
{
    SDLF_EXACT
    sdlf_philox draw = sdlf_philox4x32(augment->seed, first + 10, SDLF_STREAM_AUGMENT, step);
    float share = augment->resized_crop + sdlf_uniform_from_word(draw.word[0]) * (1.0f - augment->resized_crop);
    float ratio = 0.75f + sdlf_uniform_from_word(draw.word[1]) * (4.0f / 3.0f - 0.75f);
    float part[2] = {sqrtf(share / ratio), sqrtf(share * ratio)};
    for (int i = 0; i < 2; i++) {
        if (part[i] > 1.0f) part[i] = 1.0f;
        warp->matrix[0][i] *= part[i];
        warp->matrix[1][i] *= part[i];
        warp->shift[i] += sdlf_warp_draw(draw.word[2 + i], (1.0f - part[i]) * warp->centre[i]);
    }
}

/* Draws the hole, and the changes of colours. */
SDLF_INLINE void sdlf_warp_draw_colours(sdlf_warp *warp, const sdlf_augmentation *augment, uint64_t first,
                                        uint32_t step, const int64_t side[2])
{
    SDLF_EXACT
    sdlf_philox draw = sdlf_philox4x32(augment->seed, first + 11, SDLF_STREAM_AUGMENT, step);
    for (int i = 0; i < 2; i++) {
        int64_t centre = (int64_t)((uint64_t)draw.word[i] * (uint64_t)side[i] >> 32);
        warp->hole[i][0] = centre - augment->cutout / 2;
        warp->hole[i][1] = warp->hole[i][0] + augment->cutout;
    }
    draw = sdlf_philox4x32(augment->seed, first + 12, SDLF_STREAM_AUGMENT, step);
    warp->tinted = augment->brightness != 0 || augment->contrast != 0 || augment->saturation != 0 || augment->hue != 0;
    warp->brightness = 1.0f + sdlf_warp_draw(draw.word[0], augment->brightness);
    warp->contrast = 1.0f + sdlf_warp_draw(draw.word[1], augment->contrast);
    warp->saturation = 1.0f + sdlf_warp_draw(draw.word[2], augment->saturation);
    warp->hue = sdlf_warp_draw(draw.word[3], augment->hue);
}

/* The warp of image `image` of the data set in epoch `epoch`. */
SDLF_INLINE sdlf_warp sdlf_warp_make(const sdlf_augmentation *augment, int64_t image, int64_t epoch, int64_t height,
                                     int64_t width)
{
    SDLF_EXACT
    const int64_t side[2] = {height, width};
    uint64_t first = (uint64_t)image * 16;
    uint32_t step = (uint32_t)epoch;
    sdlf_philox draw = sdlf_philox4x32(augment->seed, first, SDLF_STREAM_AUGMENT, step);
    float degrees = sdlf_warp_draw(draw.word[0], augment->rotate);
    float scale = 1.0f + sdlf_warp_draw(draw.word[1], augment->scale);
    double cosine, sine;
    sdlf_cos_sin((double)degrees * 0x1.1df46a2529d39p-6, &cosine, &sine); /* pi / 180 */

    sdlf_warp warp = {.elastic = augment->elastic != 0, .reflect = augment->reflect};
    warp.matrix[0][0] = (float)cosine / scale;
    warp.matrix[0][1] = (float)sine / scale;
    warp.matrix[1][0] = -(float)sine / scale;
    warp.matrix[1][1] = (float)cosine / scale;
    for (int i = 0; i < 2; i++) {
        warp.centre[i] = (float)(side[i] - 1) * 0.5f;
        warp.shift[i] = sdlf_warp_draw(draw.word[2 + i], augment->shift);
        warp.cells[i] = side[i] > 1 ? (float)(SDLF_WARP_NODES - 1) / (float)(side[i] - 1) : 0.0f;
    }
    draw = sdlf_philox4x32(augment->seed, first + 9, SDLF_STREAM_AUGMENT, step);
    bool flip = augment->flip && draw.word[2] >> 31 != 0;
    if (augment->flip_alternate) { /* every second epoch; the first is drawn per image */
        sdlf_philox once = sdlf_philox4x32(augment->seed, first + 9, SDLF_STREAM_AUGMENT, 0);
        flip = (once.word[2] >> 31 ^ (step & 1)) != 0;
    }
    for (int i = 0; i < 2; i++) { /* exact: below 2^24, and added to shifts of 0 */
        int64_t places = 2 * (int64_t)augment->crop + 1,
                place = (int64_t)((uint64_t)draw.word[i] * (uint64_t)places >> 32);
        warp.shift[i] += (float)(place - augment->crop);
        if (flip) warp.matrix[i][1] = -warp.matrix[i][1];
    }
    if (augment->resized_crop != 0) sdlf_warp_resize(&warp, augment, first, step);
    sdlf_warp_draw_colours(&warp, augment, first, step, side);
    for (int node = 0; warp.elastic && node < SDLF_WARP_NODES * SDLF_WARP_NODES; node++) {
        if (node % 2 == 0)
            draw = sdlf_philox4x32(augment->seed, first + 1 + (uint64_t)node / 2, SDLF_STREAM_AUGMENT, step);
        float *displacement = warp.node[node / SDLF_WARP_NODES][node % SDLF_WARP_NODES];
        displacement[0] = sdlf_warp_draw(draw.word[node % 2 * 2], augment->elastic);
        displacement[1] = sdlf_warp_draw(draw.word[node % 2 * 2 + 1], augment->elastic);
    }
    return warp;
}

/* Interpolates: a at 0, b at 1. */
SDLF_INLINE float sdlf_mix(float a, float b, float along)
{
    SDLF_EXACT
    return a + (b - a) * along;
}

/* The displacement of output pixel (h, w) by the grid, along axis 0 or 1. */
SDLF_INLINE float sdlf_warp_displacement(const sdlf_warp *warp, int64_t h, int64_t w, int axis)
{
    SDLF_EXACT
    float down = (float)h * warp->cells[0], right = (float)w * warp->cells[1];
    int row = (int)down, column = (int)right;
    if (row > SDLF_WARP_NODES - 2) row = SDLF_WARP_NODES - 2;
    if (column > SDLF_WARP_NODES - 2) column = SDLF_WARP_NODES - 2;
    down -= (float)row;
    right -= (float)column;
    float above = sdlf_mix(warp->node[row][column][axis], warp->node[row][column + 1][axis], right);
    float below = sdlf_mix(warp->node[row + 1][column][axis], warp->node[row + 1][column + 1][axis], right);
    return sdlf_mix(above, below, down);
}

SDLF_INLINE sdlf_warp_point sdlf_warp_at(const sdlf_warp *warp, int64_t h, int64_t w)
{
    SDLF_EXACT
    float dh = (float)h - warp->centre[0], dw = (float)w - warp->centre[1];
    float from[2];
    for (int i = 0; i < 2; i++) {
        from[i] = warp->centre[i] + (warp->matrix[i][0] * dh + warp->matrix[i][1] * dw) - warp->shift[i];
        if (warp->elastic) from[i] += sdlf_warp_displacement(warp, h, w, i);
    }
    float top = floorf(from[0]), left = floorf(from[1]);
    sdlf_warp_point point = {(int64_t)top, (int64_t)left, from[0] - top, from[1] - left};
    return point;
}

/* Bilinear interpolation between four pixels; those outside the image are 0. */
SDLF_INLINE float sdlf_bilinear(float top_left, float top_right, float bottom_left, float bottom_right, float down,
                                float right)
{
    return sdlf_mix(sdlf_mix(top_left, top_right, right), sdlf_mix(bottom_left, bottom_right, right), down);
}

/* The row or column of the image for this index: itself; its reflection, if it is outside the image; or -1:
 * background. */
SDLF_INLINE int64_t sdlf_warp_source(int64_t at, int64_t side, bool reflect)
{
    if (at >= 0 && at < side) return at;
    if (!reflect) return -1;
    if (side == 1) return 0;
    int64_t period = 2 * (side - 1), rest = at % period;
    if (rest < 0) rest += period;
    return rest < side ? rest : period - rest;
}

/* True if output pixel (h, w) is in the hole. */
SDLF_INLINE bool sdlf_warp_erases(const sdlf_warp *warp, int64_t h, int64_t w)
{
    return h >= warp->hole[0][0] && h < warp->hole[0][1] && w >= warp->hole[1][0] && w < warp->hole[1][1];
}

/* The luminance of a pixel with three channels. */
SDLF_INLINE float sdlf_grey(float red, float green, float blue)
{
    SDLF_EXACT
    return 0.299f * red + 0.587f * green + 0.114f * blue;
}

/* Rotates the hue of a pixel's red, green and blue. On a circle of length 6 these are at 0, 2 and 4; a pixel's hue is
 * between its two largest, and a channel's value falls from the largest to the smallest at distances from 1 to 2. */
SDLF_INLINE void sdlf_warp_turn(const sdlf_warp *warp, float colour[3])
{
    SDLF_EXACT
    const float red = colour[0], green = colour[1], blue = colour[2];
    float most = red > green ? red : green, least = red > green ? green : red;
    if (blue > most) most = blue;
    if (blue < least) least = blue;
    const float range = most - least;
    if (warp->hue == 0 || !(range > 0)) return;
    float from = red == most ? 0.0f : green == most ? 2.0f : 4.0f;
    float past = red == most ? green - blue : green == most ? blue - red : red - green;
    float at = from + past / range + 6.0f * warp->hue;
    for (int c = 0; c < 3; c++) {
        float away = fabsf(at - 2.0f * (float)c), share = 2.0f - (away > 3.0f ? fabsf(6.0f - away) : away);
        colour[c] = least + range * (share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share);
    }
}

/* A value after the change of colours; `grey` is its pixel's, or the value itself, `mean` its channel's. */
SDLF_INLINE float sdlf_warp_tint(const sdlf_warp *warp, float value, float grey, float mean)
{
    SDLF_EXACT
    float saturated = grey + (value - grey) * warp->saturation;
    return mean + (saturated * warp->brightness - mean) * warp->contrast;
}

SDLF_INLINE float sdlf_normalize(float pixel, float mean, float scale)
{
    SDLF_EXACT
    return (pixel - mean) * scale;
}

#endif
