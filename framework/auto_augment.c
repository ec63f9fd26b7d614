/* SPDX-License-Identifier: MIT */
/* TrivialAugment and RandAugment. The contract is at sdlf_auto_augment in <sdlf/dataset.h>. All of it is float32 with
 * every operation rounded, or whole numbers: the same bits everywhere. */
#include "framework/auto_augment.h"

#include <math.h>
#include <string.h>

#include <sdlf/random.h>

#include "framework/operations/exact.h"
#include "framework/operations/sincos.h"

enum operation {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    MOVE_X,
    MOVE_Y,
    ROTATE,
    BRIGHTNESS,
    SATURATION,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE
};

typedef struct picture {
    uint8_t *to;
    const uint8_t *from;
    int64_t channels, height, width;
} picture;

static uint8_t to_byte(float value)
{
    SDLF_EXACT
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : (int)(value + 0.5f));
}

/* ---- geometry ---- */

/* Pixel (h, w) comes from matrix ((h, w) - centre - shift) + centre, the nearest one. */
static void warp(const picture *p, float matrix[2][2], const float shift[2])
{
    SDLF_EXACT
    float middle[2] = {(float)(p->height - 1) * 0.5f, (float)(p->width - 1) * 0.5f};
    int64_t area = p->height * p->width;
    for (int64_t h = 0; h < p->height; h++)
        for (int64_t w = 0; w < p->width; w++) {
            float y = (float)h - middle[0] - shift[0], x = (float)w - middle[1] - shift[1];
            float down = matrix[0][0] * y + matrix[0][1] * x + middle[0];
            float right = matrix[1][0] * y + matrix[1][1] * x + middle[1];
            int64_t row = (int64_t)floorf(down + 0.5f), column = (int64_t)floorf(right + 0.5f);
            bool inside = row >= 0 && row < p->height && column >= 0 && column < p->width;
            for (int64_t c = 0; c < p->channels; c++)
                p->to[c * area + h * p->width + w] = inside ? p->from[c * area + row * p->width + column] : 0;
        }
}

/* What strength 1 is. */
typedef struct ranges {
    float shear, degrees, blend, down, right; /* the last two: pixels of a move */
    int bits;
} ranges;

static ranges ranges_of(const picture *p, bool wide)
{
    SDLF_EXACT
    float part = 150.0f / 331.0f;
    if (wide) return (ranges){.shear = 0.99f, .degrees = 135, .blend = 0.99f, .down = 32, .right = 32, .bits = 6};
    return (ranges){.shear = 0.3f,
                    .degrees = 30,
                    .blend = 0.9f,
                    .down = part * (float)p->height,
                    .right = part * (float)p->width,
                    .bits = 4};
}

static void move(const picture *p, int operation, float amount, const ranges *most)
{
    SDLF_EXACT
    float matrix[2][2] = {{1, 0}, {0, 1}}, shift[2] = {0, 0};
    float middle[2] = {(float)(p->height - 1) * 0.5f, (float)(p->width - 1) * 0.5f};
    float part = most->shear * amount;
    if (operation == SHEAR_X) matrix[1][0] = part, shift[1] = -part * (middle[0] + 0.5f); /* the top edge stays */
    if (operation == SHEAR_Y) matrix[0][1] = part, shift[0] = -part * (middle[1] + 0.5f);
    if (operation == MOVE_X) shift[1] = truncf(most->right * amount);
    if (operation == MOVE_Y) shift[0] = truncf(most->down * amount);
    if (operation == ROTATE) {
        double cosine, sine;
        sdlf_cos_sin((double)(most->degrees * amount) * 0x1.1df46a2529d39p-6, &cosine, &sine); /* pi / 180 */
        matrix[0][0] = matrix[1][1] = (float)cosine;
        matrix[0][1] = (float)sine;
        matrix[1][0] = -(float)sine;
    }
    warp(p, matrix, shift);
}

/* ---- colours ---- */

static float grey_of(const picture *p, int64_t i)
{
    SDLF_EXACT
    int64_t area = p->height * p->width;
    if (p->channels != 3) return (float)p->from[i];
    return 0.299f * (float)p->from[i] + 0.587f * (float)p->from[area + i] + 0.114f * (float)p->from[2 * area + i];
}

/* The mean of the greys, both rounded. */
static float mean_grey(const picture *p)
{
    uint64_t sum = 0;
    int64_t area = p->height * p->width;
    for (int64_t i = 0; i < area; i++) sum += to_byte(grey_of(p, i));
    return (float)((2 * sum + (uint64_t)area) / (2 * (uint64_t)area));
}

/* A blurred pixel: itself five times and its eight neighbours; at the edges itself. */
static float blurred(const picture *p, int64_t channel, int64_t h, int64_t w)
{
    SDLF_EXACT
    const uint8_t *plane = p->from + channel * p->height * p->width;
    int sum = 4 * plane[h * p->width + w];
    if (h == 0 || w == 0 || h == p->height - 1 || w == p->width - 1) return (float)plane[h * p->width + w];
    for (int64_t y = h - 1; y <= h + 1; y++)
        for (int64_t x = w - 1; x <= w + 1; x++) sum += plane[y * p->width + x];
    return (float)sum / 13.0f;
}

/* away + (value - away) factor, where `away` is black, grey, the mean or the blurred picture. */
static void blend(const picture *p, int operation, float factor)
{
    SDLF_EXACT
    int64_t area = p->height * p->width;
    float mean = operation == CONTRAST ? mean_grey(p) : 0;
    for (int64_t i = 0; i < p->channels * area; i++) {
        int64_t at = i % area;
        float away = operation == CONTRAST     ? mean
                     : operation == SATURATION ? grey_of(p, at)
                     : operation == SHARPNESS  ? blurred(p, i / area, at / p->width, at % p->width)
                                               : 0;
        p->to[i] = to_byte(away + ((float)p->from[i] - away) * factor);
    }
}

/* The values of one channel through a table. */
static void look_up(const picture *p, int64_t channel, const uint8_t table[256])
{
    int64_t area = p->height * p->width;
    for (int64_t i = channel * area; i < (channel + 1) * area; i++) p->to[i] = table[p->from[i]];
}

/* From the darkest to the lightest of the channel: 0 to 255; or as many pixels for each value as can be. */
static void stretch(const picture *p, bool equalize)
{
    SDLF_EXACT
    int64_t area = p->height * p->width;
    for (int64_t c = 0; c < p->channels; c++) {
        int64_t count[256] = {0}, below = 0;
        int least = 255, most = 0;
        uint8_t table[256];
        for (int64_t i = c * area; i < (c + 1) * area; i++) count[p->from[i]]++;
        for (int v = 0; v < 256; v++) {
            if (count[v] == 0) continue;
            most = v;
            if (v < least) least = v;
        }
        int64_t step = (area - count[most]) / 255;
        for (int v = 0; v < 256; v++) {
            int64_t rank = step > 0 ? (below + step / 2) / step : v;
            float far = most > least ? (float)(v - least) * (255.0f / (float)(most - least)) : (float)v;
            table[v] = equalize ? (uint8_t)(rank > 255 ? 255 : rank) : to_byte(far);
            below += count[v];
        }
        look_up(p, c, table);
    }
}

static void per_value(const picture *p, int operation, float m, int most_bits)
{
    SDLF_EXACT
    uint8_t table[256];
    int dropped = (int)((float)most_bits * m + 0.5f);
    float from = 255 - 255 * m;
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)(operation == POSTERIZE ? v >> dropped << dropped : (float)v >= from ? 255 - v : v);
    for (int64_t c = 0; c < p->channels; c++) look_up(p, c, table);
}

void sdlf_augment_apply(uint8_t *pixels, uint8_t *from, sdlf_shape sample, int operation, float m, bool negative,
                        bool wide)
{
    SDLF_EXACT
    const picture p = {
        .to = pixels, .from = from, .channels = sample.dim[0], .height = sample.dim[1], .width = sample.dim[2]};
    const ranges most = ranges_of(&p, wide);
    float amount = negative ? -m : m;
    if (operation == IDENTITY) return;
    memcpy(from, pixels, (size_t)sdlf_shape_count(sample));
    if (operation <= ROTATE)
        move(&p, operation, amount, &most);
    else if (operation <= SHARPNESS)
        blend(&p, operation, 1 + most.blend * amount);
    else if (operation <= SOLARIZE)
        per_value(&p, operation, m, most.bits);
    else
        stretch(&p, operation == EQUALIZE);
}

static int operation_of(uint32_t word)
{
    return (int)((uint64_t)word * SDLF_AUGMENT_OPERATIONS >> 32);
}

void sdlf_auto_augment_picture(uint8_t *pixels, uint8_t *from, sdlf_shape sample, const sdlf_auto_augment *policy,
                               uint64_t seed, int64_t image, int64_t epoch)
{
    SDLF_EXACT
    sdlf_philox draw = sdlf_philox4x32(seed, (uint64_t)image * 16 + 13, SDLF_STREAM_AUGMENT, (uint32_t)epoch);
    float strength = (float)((uint64_t)draw.word[1] * 31 >> 32) / 30.0f;
    if (policy->trivial)
        sdlf_augment_apply(pixels, from, sample, operation_of(draw.word[0]), strength, draw.word[2] >> 31, true);
    for (int i = 0; i < policy->rand_augment; i++) {
        if (i % 4 == 0)
            draw = sdlf_philox4x32(seed, (uint64_t)image * 16 + 14 + (uint64_t)i / 4, SDLF_STREAM_AUGMENT,
                                   (uint32_t)epoch);
        uint32_t word = draw.word[i % 4];
        sdlf_augment_apply(pixels, from, sample, operation_of(word), (float)policy->rand_magnitude / 30.0f, word & 1,
                           false);
    }
}

sdlf_status sdlf_auto_augment_complete(sdlf_auto_augment *policy, const sdlf_tensor *samples)
{
    const char *name = policy->trivial ? "TrivialAugment" : "RandAugment";
    if (policy->rand_magnitude == 0) policy->rand_magnitude = 9;
    if (policy->rand_augment < 0 || policy->rand_augment > 8 || policy->rand_magnitude < 0 ||
        policy->rand_magnitude > 30)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "loader: RandAugment: expected 0 to 8 operations and a magnitude of 1 to 30, found %d and %d",
                         policy->rand_augment, policy->rand_magnitude);
    if (policy->trivial && policy->rand_augment > 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: TrivialAugment or RandAugment, not both");
    if (!sdlf_auto_augment_wanted(policy) || (samples->shape.rank == 4 && samples->dtype == SDLF_UINT8)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: %s is for pictures CxHxW of bytes, and samples are %s %s", name,
                     sdlf_dtype_name(samples->dtype), sdlf_shape_print(sdlf_shape_without(samples->shape, 0)).text);
}
