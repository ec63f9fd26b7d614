/* SPDX-License-Identifier: MIT */
/* Rendering: ink is scaled to just fit a box of 20x20 pixels, painted in grey levels, and moved by whole pixels so that
 * its centre of mass is at the centre of 28x28. This is the normalisation that MNIST documents. */
#include "datasets/digits.h"

#include <math.h>
#include <string.h>

/* The canvas is the box with a margin for soft edges, which extend REACH pixels beyond the ink. */
enum { MARGIN = 2, CANVAS = DIGIT_BOX + 2 * MARGIN, REACH = 1 };

static float least(float a, float b)
{
    return a < b ? a : b;
}

static float most(float a, float b)
{
    return a > b ? a : b;
}

/* Scale and move the ink, soft and ragged edges included, to fill the box along its longer side. */
static void fit(digit_segment *segments, int count, float softness, float rough)
{
    float left = 1e9f, top = 1e9f, right = -1e9f, bottom = -1e9f;
    for (int i = 0; i < count; i++) {
        const digit_segment *s = &segments[i];
        left = least(left, least(s->x0 - s->r0, s->x1 - s->r1));
        right = most(right, most(s->x0 + s->r0, s->x1 + s->r1));
        top = least(top, least(s->y0 - s->r0, s->y1 - s->r1));
        bottom = most(bottom, most(s->y0 + s->r0, s->y1 + s->r1));
    }
    float size = most(right - left, bottom - top);
    float scale = ((float)DIGIT_BOX + 1 - softness - rough) / size;
    float x = (float)CANVAS / 2 - scale * (left + right) / 2, y = (float)CANVAS / 2 - scale * (top + bottom) / 2;
    for (int i = 0; i < count; i++) {
        digit_segment *s = &segments[i];
        s->x0 = x + scale * s->x0;
        s->x1 = x + scale * s->x1;
        s->y0 = y + scale * s->y0;
        s->y1 = y + scale * s->y1;
        s->r0 *= scale;
        s->r1 *= scale;
    }
}

/* Raises depth[y][x] to the distance of that pixel's centre from the edge of this piece of ink; negative: outside.
 * Pixels more than REACH outside stay white in any case, and are skipped. */
static void measure(float depth[CANVAS][CANVAS], const digit_segment *s)
{
    float reach = most(s->r0, s->r1) + REACH;
    /* in pixel indices; pixel i has its centre at i + 0.5 */
    float left = least(s->x0, s->x1) - reach - 0.5f, right = most(s->x0, s->x1) + reach - 0.5f;
    float top = least(s->y0, s->y1) - reach - 0.5f, bottom = most(s->y0, s->y1) + reach - 0.5f;
    int x_first = (int)most(0, left), x_last = (int)least(CANVAS - 1, right);
    int y_first = (int)most(0, top), y_last = (int)least(CANVAS - 1, bottom);
    float dx = s->x1 - s->x0, dy = s->y1 - s->y0, inverse = 1 / (dx * dx + dy * dy + 1e-6f), dr = s->r1 - s->r0;
    for (int y = y_first; y <= y_last; y++) {
        float py = (float)y + 0.5f - s->y0;
        for (int x = x_first; x <= x_last; x++) {
            float px = (float)x + 0.5f - s->x0;
            float t = least(1, most(0, (px * dx + py * dy) * inverse)); /* the nearest point of the piece */
            float ex = px - t * dx, ey = py - t * dy;
            depth[y][x] = most(depth[y][x], s->r0 + t * dr - sqrtf(ex * ex + ey * ey));
        }
    }
}

void digit_render(uint8_t *pixels, digit_segment *segments, int count, digit_random *random)
{
    float softness = digit_random_uniform(random, 1.0f, 1.6f), rough = digit_random_uniform(random, 0.05f, 0.3f);
    fit(segments, count, softness, rough);
    float depth[CANVAS][CANVAS];
    for (int y = 0; y < CANVAS; y++)
        for (int x = 0; x < CANVAS; x++) depth[y][x] = -2 * REACH;
    for (int i = 0; i < count; i++) measure(depth, &segments[i]);

    uint8_t grey[CANVAS][CANVAS];
    int32_t mass = 0, moment_x = 0, moment_y = 0;
    for (int y = 0; y < CANVAS; y++) {
        uint32_t noise = 0;
        for (int x = 0; x < CANVAS; x++, noise >>= 8) {
            if (x % 4 == 0) noise = digit_random_word(random);
            /* paper and scanner make edges ragged: up to `rough` / 2 pixels in or out */
            float ragged = depth[y][x] + rough * ((float)(noise & 255) * (1.0f / 256) - 0.5f);
            float ink = least(1, most(0, ragged / softness + 0.5f));
            grey[y][x] = (uint8_t)(ink * 254.0f + 0.5f);
            mass += grey[y][x];
            moment_x += x * grey[y][x];
            moment_y += y * grey[y][x];
        }
    }
    if (mass == 0) mass = 1;
    /* the centre of mass in pixel indices, rounded, moves to DIGIT_SIDE / 2 */
    int shift_x = DIGIT_SIDE / 2 - (moment_x + mass / 2) / mass,
        shift_y = DIGIT_SIDE / 2 - (moment_y + mass / 2) / mass;
    memset(pixels, 0, DIGIT_PIXELS);
    for (int y = 0; y < CANVAS; y++)
        for (int x = 0; x < CANVAS; x++) {
            int to_x = x + shift_x, to_y = y + shift_y;
            if (to_x >= 0 && to_x < DIGIT_SIDE && to_y >= 0 && to_y < DIGIT_SIDE)
                pixels[to_y * DIGIT_SIDE + to_x] = grey[y][x];
        }
}
