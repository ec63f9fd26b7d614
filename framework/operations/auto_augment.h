/* SPDX-License-Identifier: MIT */
/* The arithmetic of TrivialAugment and RandAugment, with the same bits on every calculator: float32 with every
 * operation rounded, or integers. The contract is at sdlf_auto_augment in <sdlf/operation.h>.
 *
 *     for each step i of sdlf_auto_augment_steps(&policy):
 *         sdlf_augment_step step = sdlf_auto_augment_draw(&policy, seed, image, epoch, i, height, width);
 *         moves:  a pixel, in all channels, is the one at sdlf_augment_source, or 0
 *         blends: a value becomes sdlf_augment_blend; SDLF_AUGMENT_CONTRAST needs step.mean
 *         others: a value is looked up in a table: sdlf_augment_table or, per channel, sdlf_augment_stretch */
#ifndef SDLF_OPERATIONS_AUTO_AUGMENT_H
#define SDLF_OPERATIONS_AUTO_AUGMENT_H

#include <sdlf/operation.h>
#include <sdlf/random.h>

#include "framework/operations/exact.h"
#include "framework/operations/sincos.h"

#include <math.h>

enum sdlf_augment_operation {
    SDLF_AUGMENT_IDENTITY, /* a move by 0 */
    SDLF_AUGMENT_SHEAR_X,
    SDLF_AUGMENT_SHEAR_Y,
    SDLF_AUGMENT_MOVE_X,
    SDLF_AUGMENT_MOVE_Y,
    SDLF_AUGMENT_ROTATE, /* the last move */
    SDLF_AUGMENT_BRIGHTNESS,
    SDLF_AUGMENT_SATURATION,
    SDLF_AUGMENT_CONTRAST,
    SDLF_AUGMENT_SHARPNESS, /* the last blend */
    SDLF_AUGMENT_POSTERIZE,
    SDLF_AUGMENT_SOLARIZE,
    SDLF_AUGMENT_AUTOCONTRAST,
    SDLF_AUGMENT_EQUALIZE,
    SDLF_AUGMENT_OPERATIONS
};

typedef struct sdlf_augment_step {
    int operation;
    float matrix[2][2], middle[2], shift[2]; /* for moves */
    float factor;                            /* for blends */
    float mean;                              /* for contrast: sdlf_augment_mean, set by the caller, who has the sum */
    int dropped;                             /* bits, for posterize */
    float inverted;                          /* values from this one on, for solarize */
} sdlf_augment_step;

/* An image (C,H,W). */
typedef struct sdlf_augment_picture {
    const uint8_t *pixels;
    int64_t channels, height, width;
} sdlf_augment_picture;

SDLF_INLINE uint8_t sdlf_augment_byte(float value)
{
    SDLF_EXACT
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : (int)(value + 0.5f));
}

/* A step of strength m in [0, 1], with a sign, in the ranges of TrivialAugment (wide) or RandAugment. */
SDLF_INLINE sdlf_augment_step sdlf_augment_step_make(int operation, float m, bool negative, bool wide, int64_t height,
                                                     int64_t width)
{
    SDLF_EXACT
    const float amount = negative ? -m : m, part = (wide ? 0.99f : 0.3f) * amount, share = 150.0f / 331.0f;
    const float down = wide ? 32.0f : share * (float)height, right = wide ? 32.0f : share * (float)width;
    const float blend = wide ? 0.99f : 0.9f, degrees = wide ? 135.0f : 30.0f;
    sdlf_augment_step step = {.operation = operation};
    step.matrix[0][0] = step.matrix[1][1] = 1;
    step.middle[0] = (float)(height - 1) * 0.5f;
    step.middle[1] = (float)(width - 1) * 0.5f;
    step.factor = 1 + blend * amount;
    step.dropped = (int)((wide ? 6.0f : 4.0f) * m + 0.5f);
    step.inverted = 255 - 255 * m;
    if (operation == SDLF_AUGMENT_SHEAR_X) { /* the top edge does not move */
        step.matrix[1][0] = part;
        step.shift[1] = -part * (step.middle[0] + 0.5f);
    }
    if (operation == SDLF_AUGMENT_SHEAR_Y) {
        step.matrix[0][1] = part;
        step.shift[0] = -part * (step.middle[1] + 0.5f);
    }
    if (operation == SDLF_AUGMENT_MOVE_X) step.shift[1] = truncf(right * amount);
    if (operation == SDLF_AUGMENT_MOVE_Y) step.shift[0] = truncf(down * amount);
    if (operation == SDLF_AUGMENT_ROTATE) {
        double cosine, sine;
        sdlf_cos_sin((double)(degrees * amount) * 0x1.1df46a2529d39p-6, &cosine, &sine); /* pi / 180 */
        step.matrix[0][0] = step.matrix[1][1] = (float)cosine;
        step.matrix[0][1] = (float)sine;
        step.matrix[1][0] = -(float)sine;
    }
    return step;
}

SDLF_INLINE int sdlf_auto_augment_steps(const sdlf_auto_augment *policy)
{
    return policy->trivial ? 1 : policy->rand_augment;
}

/* Step i for image `image` of the data set. */
SDLF_INLINE sdlf_augment_step sdlf_auto_augment_draw(const sdlf_auto_augment *policy, uint64_t seed, int64_t image,
                                                     int64_t epoch, int i, int64_t height, int64_t width)
{
    SDLF_EXACT
    const uint64_t place = (uint64_t)image * 16 + (policy->trivial ? 13 : 14 + (uint64_t)i / 4);
    const sdlf_philox draw = sdlf_philox4x32(seed, place, SDLF_STREAM_AUGMENT, (uint32_t)epoch);
    const uint32_t word = draw.word[policy->trivial ? 0 : i % 4];
    const int operation = (int)((uint64_t)word * SDLF_AUGMENT_OPERATIONS >> 32);
    if (!policy->trivial)
        return sdlf_augment_step_make(operation, (float)policy->rand_magnitude / 30.0f, word & 1, false, height, width);
    const float m = (float)((uint64_t)draw.word[1] * 31 >> 32) / 30.0f;
    return sdlf_augment_step_make(operation, m, draw.word[2] >> 31 != 0, true, height, width);
}

/* ---- moves ---- */

/* The index within a plane of the pixel that (h, w) is read from: matrix ((h, w) - middle - shift) + middle, rounded to
 * the nearest pixel; -1: outside the image, which is 0. */
SDLF_INLINE int64_t sdlf_augment_source(const sdlf_augment_step *step, int64_t h, int64_t w, int64_t height,
                                        int64_t width)
{
    SDLF_EXACT
    float y = (float)h - step->middle[0] - step->shift[0], x = (float)w - step->middle[1] - step->shift[1];
    float down = step->matrix[0][0] * y + step->matrix[0][1] * x + step->middle[0];
    float right = step->matrix[1][0] * y + step->matrix[1][1] * x + step->middle[1];
    int64_t row = (int64_t)floorf(down + 0.5f), column = (int64_t)floorf(right + 0.5f);
    return row >= 0 && row < height && column >= 0 && column < width ? row * width + column : -1;
}

/* ---- blends ---- */

SDLF_INLINE float sdlf_augment_grey(const sdlf_augment_picture *p, int64_t at)
{
    SDLF_EXACT
    const int64_t area = p->height * p->width;
    const uint8_t *pixel = p->pixels + at;
    if (p->channels != 3) return (float)pixel[0];
    return 0.299f * (float)pixel[0] + 0.587f * (float)pixel[area] + 0.114f * (float)pixel[2 * area];
}

/* The rounded mean of `area` greys, each rounded by sdlf_augment_byte, that have this sum. */
SDLF_INLINE float sdlf_augment_mean(uint64_t sum, int64_t area)
{
    return (float)((2 * sum + (uint64_t)area) / (2 * (uint64_t)area));
}

/* A blurred pixel: a mean of itself, with weight 5, and its eight neighbours; unchanged at the edges. */
SDLF_INLINE float sdlf_augment_blur(const sdlf_augment_picture *p, int64_t channel, int64_t h, int64_t w)
{
    SDLF_EXACT
    const uint8_t *plane = p->pixels + channel * p->height * p->width;
    int sum = 4 * plane[h * p->width + w];
    if (h == 0 || w == 0 || h == p->height - 1 || w == p->width - 1) return (float)plane[h * p->width + w];
    for (int64_t y = h - 1; y <= h + 1; y++)
        for (int64_t x = w - 1; x <= w + 1; x++) sum += plane[y * p->width + x];
    return (float)sum / 13.0f;
}

/* away + (value - away) factor, where `away` is black, grey, the mean or the blurred image. */
SDLF_INLINE uint8_t sdlf_augment_blend(const sdlf_augment_step *step, const sdlf_augment_picture *p, int64_t channel,
                                       int64_t h, int64_t w)
{
    SDLF_EXACT
    const int64_t at = h * p->width + w;
    float away = 0;
    if (step->operation == SDLF_AUGMENT_CONTRAST) away = step->mean;
    if (step->operation == SDLF_AUGMENT_SATURATION) away = sdlf_augment_grey(p, at);
    if (step->operation == SDLF_AUGMENT_SHARPNESS) away = sdlf_augment_blur(p, channel, h, w);
    const float value = (float)p->pixels[channel * p->height * p->width + at];
    return sdlf_augment_byte(away + (value - away) * step->factor);
}

/* ---- tables ---- */

/* The result of posterize or solarize for a value. */
SDLF_INLINE uint8_t sdlf_augment_value(const sdlf_augment_step *step, int value)
{
    if (step->operation == SDLF_AUGMENT_POSTERIZE) return (uint8_t)(value >> step->dropped << step->dropped);
    return (uint8_t)((float)value >= step->inverted ? 255 - value : value);
}

/* The table of autocontrast or equalize for a channel with this histogram: maps the darkest to lightest value to 0 to
 * 255, or spreads the pixels over the values as evenly as possible. */
SDLF_INLINE void sdlf_augment_stretch(const sdlf_augment_step *step, uint8_t table[256], const uint32_t count[256],
                                      int64_t area)
{
    SDLF_EXACT
    int least = 255, most = 0;
    for (int v = 0; v < 256; v++) {
        if (count[v] == 0) continue;
        most = v;
        if (v < least) least = v;
    }
    int64_t below = 0, unit = (area - count[most]) / 255;
    for (int v = 0; v < 256; v++) {
        int64_t rank = unit > 0 ? (below + unit / 2) / unit : v;
        float far = most > least ? (float)(v - least) * (255.0f / (float)(most - least)) : (float)v;
        bool equal = step->operation == SDLF_AUGMENT_EQUALIZE;
        table[v] = equal ? (uint8_t)(rank > 255 ? 255 : rank) : sdlf_augment_byte(far);
        below += count[v];
    }
}

#endif
