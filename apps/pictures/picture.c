/* SPDX-License-Identifier: MIT */
/* Image preparation. See picture.h. */
#include "apps/pictures/picture.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

const char *const picture_choice_names[] = {"auto", "yes", "no", NULL};

static const float ink = 0.25f;            /* of the brightest: above it a pixel belongs to the digit */
static const double digit_part = 20. / 28; /* of the sample's side: the digit's longer side */
static const float faintest = 30;          /* the least maximum that is stretched to 255 */

/* One channel in floats. */
typedef struct plane {
    int width, height;
    float *value;
} plane;

static float at(const plane *p, int x, int y)
{
    bool inside = x >= 0 && x < p->width && y >= 0 && y < p->height;
    return inside ? p->value[(size_t)y * (size_t)p->width + (size_t)x] : 0;
}

/* The mean over a rectangle in pixel coordinates, with fractions of pixels weighted; outside is black and
 * costs nothing. The rectangles of a sample hardly overlap, so all of them take time linear in the image's
 * size. */
static float mean_over(const plane *p, double left, double top, double right, double bottom)
{
    int first = (int)fmax(floor(left), 0), last = (int)fmin(ceil(right), p->width);
    int low = (int)fmin(ceil(bottom), p->height);
    double sum = 0;
    for (int y = (int)fmax(floor(top), 0); y < low; y++) {
        const float *row = p->value + (size_t)y * (size_t)p->width;
        double high = fmin(bottom, y + 1) - fmax(top, y), line = 0;
        for (int x = first; x < last; x++) line += (fmin(right, x + 1) - fmax(left, x)) * (double)row[x];
        sum += high * line;
    }
    return (float)(sum / ((right - left) * (bottom - top)));
}

/* The part of an image that a sample shows: `scale` source pixels for one of the sample's, around this centre. */
typedef struct view {
    double scale, middle_x, middle_y;
} view;

/* Averages over a square of side `scale`, at least one pixel; when enlarging this is linear interpolation. */
static void show(float *sample, int height, int width, const plane *p, view v)
{
    double half = fmax(v.scale, 1) / 2;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            double cx = v.middle_x + v.scale * (x + 0.5 - 0.5 * width);
            double cy = v.middle_y + v.scale * (y + 0.5 - 0.5 * height);
            sample[y * width + x] = mean_over(p, cx - half, cy - half, cx + half, cy + half);
        }
    }
}

static view whole(const plane *p, int height, int width)
{
    return (view){.scale = fmax((double)p->width / width, (double)p->height / height),
                  .middle_x = 0.5 * p->width,
                  .middle_y = 0.5 * p->height};
}

static float brightest(const float *value, size_t count)
{
    float most = 0;
    for (size_t i = 0; i < count; i++) most = fmaxf(most, value[i]);
    return most;
}

/* The paper's brightness, a plane fitted to the border values, because light falls on it from one side. The origin is
 * the image's centre; the border is symmetric, so its three coefficients can be fitted one by one. */
typedef struct ground {
    float mean, per_x, per_y;
} ground;

static ground find_ground(const plane *p)
{
    double sum = 0, sum_x = 0, sum_y = 0, square_x = 0, square_y = 0;
    int64_t count = 0;
    for (int y = 0; y < p->height; y++) {
        bool edge = y == 0 || y == p->height - 1 || p->width == 1;
        for (int x = 0; x < p->width; x += edge ? 1 : p->width - 1, count++) {
            double dx = x - 0.5 * (p->width - 1), dy = y - 0.5 * (p->height - 1), value = (double)at(p, x, y);
            sum += value;
            sum_x += dx * value;
            sum_y += dy * value;
            square_x += dx * dx;
            square_y += dy * dy;
        }
    }
    return (ground){.mean = (float)(sum / (double)count),
                    .per_x = square_x > 0 ? (float)(sum_x / square_x) : 0,
                    .per_y = square_y > 0 ? (float)(sum_y / square_y) : 0};
}

/* Make the ground black and the ink white. */
static void stretch(plane *p)
{
    size_t count = (size_t)p->width * (size_t)p->height;
    ground g = find_ground(p);
    for (int y = 0; y < p->height; y++) {
        float *row = p->value + (size_t)y * (size_t)p->width;
        float left = g.mean + g.per_y * ((float)y - 0.5f * (float)(p->height - 1));
        for (int x = 0; x < p->width; x++) {
            row[x] = fmaxf(row[x] - left - g.per_x * ((float)x - 0.5f * (float)(p->width - 1)), 0);
        }
    }
    float most = brightest(p->value, count);
    if (most < faintest) return;
    for (size_t i = 0; i < count; i++) p->value[i] *= 255 / most;
}

/* Finds the digit's box and its centre of mass; false if there is no ink. */
static bool find_digit(const plane *p, int height, int width, view *v)
{
    float threshold = ink * brightest(p->value, (size_t)p->width * (size_t)p->height);
    int left = p->width, right = -1, top = p->height, bottom = -1;
    double mass = 0, sum_x = 0, sum_y = 0;
    for (int y = 0; y < p->height; y++) {
        for (int x = 0; x < p->width; x++) {
            float value = at(p, x, y);
            if (value <= threshold) continue;
            left = x < left ? x : left;
            right = x > right ? x : right;
            top = y < top ? y : top;
            bottom = y > bottom ? y : bottom;
            mass += value;
            sum_x += value * (x + 0.5);
            sum_y += value * (y + 0.5);
        }
    }
    if (mass <= 0) return false;
    double longer = right - left > bottom - top ? right - left + 1 : bottom - top + 1;
    double side = digit_part * (height < width ? height : width);
    *v = (view){.scale = longer / side, .middle_x = sum_x / mass, .middle_y = sum_y / mass};
    return true;
}

/* Fills a plane with the luminance (channel < 0) or one channel of the image. */
static void fill(plane *p, const sdlf_image *source, int channel)
{
    size_t count = (size_t)p->width * (size_t)p->height;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *pixel = source->pixels + i * (size_t)source->channels;
        if (source->channels < 3) {
            p->value[i] = pixel[0];
        } else if (channel >= 0) {
            p->value[i] = pixel[channel];
        } else {
            p->value[i] = 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
        }
    }
}

static void invert(plane *p)
{
    size_t count = (size_t)p->width * (size_t)p->height;
    for (size_t i = 0; i < count; i++) p->value[i] = 255 - p->value[i];
}

static void prepare_grey(float *sample, int height, int width, plane *p, const picture_options *options)
{
    bool own_size = p->width == width && p->height == height;
    if (options->invert == PICTURE_YES || (options->invert == PICTURE_AUTO && find_ground(p).mean > 127.5f)) invert(p);
    view v = whole(p, height, width);
    bool fit = options->fit == PICTURE_YES || (options->fit == PICTURE_AUTO && !own_size);
    if (fit) {
        stretch(p);
        fit = find_digit(p, height, width, &v);
    }
    show(sample, height, width, p, v);
    size_t count = (size_t)height * (size_t)width;
    float most = brightest(sample, count);
    if (!fit || most < faintest) return;
    for (size_t i = 0; i < count; i++) sample[i] *= 255 / most; /* thin strokes fade when they shrink */
}

sdlf_status picture_prepare(float *sample, sdlf_shape shape, const sdlf_image *source, const picture_options *options)
{
    if (shape.rank != 3 || (shape.dim[0] != 1 && shape.dim[0] != 3)) {
        return sdlf_fail(SDLF_ERROR_SHAPE, "the network takes samples of %s; pictures are 1xHxW or 3xHxW",
                         sdlf_shape_print(shape).text);
    }
    int height = (int)shape.dim[1], width = (int)shape.dim[2];
    plane p = {.width = source->width, .height = source->height};
    p.value = malloc((size_t)p.width * (size_t)p.height * sizeof *p.value);
    if (!p.value) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a picture of %dx%d", p.width, p.height);
    if (shape.dim[0] == 1) {
        fill(&p, source, -1);
        prepare_grey(sample, height, width, &p, options);
    } else {
        for (int channel = 0; channel < 3; channel++) {
            fill(&p, source, channel);
            if (options->invert == PICTURE_YES) invert(&p);
            show(sample + (size_t)channel * (size_t)height * (size_t)width, height, width, &p,
                 whole(&p, height, width));
        }
    }
    free(p.value);
    return SDLF_OK;
}
