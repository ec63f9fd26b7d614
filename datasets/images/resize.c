/* SPDX-License-Identifier: MIT */
/* A separable triangle filter (<sdlf/image.h>). What shrinks comes first, so that both passes look at no more than the pixels of the part
 * and of the result: rows first where these become fewer, else columns of the few rows there are. */
#include <sdlf/image.h>

#include <math.h>
#include <stdlib.h>

#include "framework/require.h"

/* How the new pixels of one direction are made: pixel i of count[i] old ones from first[i], with weights that add up to 1. */
typedef struct axis {
    int *first, *count;
    double *weight;
    int most; /* weights of a pixel */
} axis;

static int clamp(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

static void weigh(axis *a, int i, int old_size, double centre, double reach)
{
    double *weight = a->weight + (size_t)i * (size_t)a->most;
    int first = clamp(floor(centre - reach), 0, old_size - 1), last = clamp(ceil(centre + reach), first + 1, old_size);
    double sum = 0;
    for (int k = first; k < last; k++) sum += fmax(1 - fabs(k + 0.5 - centre) / reach, 0);
    for (int k = first; k < last; k++)
        weight[k - first] = sum > 0 ? fmax(1 - fabs(k + 0.5 - centre) / reach, 0) / sum : 1.0 / (last - first);
    a->first[i] = first;
    a->count[i] = last - first;
}

/* `new_size` pixels show `length` old ones, of `old_size`, from `start` on. */
static bool make_axis(axis *a, int new_size, int old_size, double start, double length)
{
    double scale = length / new_size, reach = fmax(scale, 1);
    size_t count = (size_t)new_size;
    a->most = (int)fmin(ceil(2 * reach) + 2, old_size);
    a->first = malloc(count * sizeof *a->first);
    a->count = malloc(count * sizeof *a->count);
    a->weight = malloc(count * (size_t)a->most * sizeof *a->weight);
    if (a->first == NULL || a->count == NULL || a->weight == NULL) return false;
    for (int i = 0; i < new_size; i++) weigh(a, i, old_size, start + (i + 0.5) * scale, reach);
    return true;
}

static void release_axis(axis *a)
{
    free(a->first);
    free(a->count);
    free(a->weight);
}

typedef struct resizing {
    const sdlf_image *image;
    int rows, columns, channels; /* of the result */
    axis down, across;
} resizing;

/* A new row from the pixels `line` of an old one; both with the image's channels together. */
static void filter_across(const resizing *r, const double *line, double *row)
{
    const axis *a = &r->across;
    int channels = r->image->channels;
    for (int j = 0; j < r->columns; j++) {
        const double *weight = a->weight + (size_t)j * (size_t)a->most;
        const double *from = line + (size_t)a->first[j] * (size_t)channels;
        double sum[3] = {0};
        for (int k = 0; k < a->count[j]; k++)
            for (int c = 0; c < channels; c++) sum[c] += weight[k] * from[k * channels + c];
        for (int c = 0; c < channels; c++) row[j * channels + c] = sum[c];
    }
}

/* Row i of the result, in the channels that are wanted. */
static void store(const resizing *r, int i, const double *row, float *out)
{
    size_t plane = (size_t)r->rows * (size_t)r->columns;
    bool coloured = r->image->channels == 3;
    for (int c = 0; c < r->channels; c++) {
        float *to = out + (size_t)c * plane + (size_t)i * (size_t)r->columns;
        for (int j = 0; j < r->columns; j++) {
            const double *pixel = row + (coloured ? 3 * j : j);
            to[j] = (float)(!coloured          ? pixel[0]
                            : r->channels == 3 ? pixel[c]
                                               : 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]);
        }
    }
}

/* Fewer rows: a new row's worth of old pixels, then across. */
static bool rows_first(const resizing *r, float *out)
{
    size_t length = (size_t)r->image->width * (size_t)r->image->channels;
    double *line = malloc(length * sizeof *line);
    double *row = malloc((size_t)r->columns * (size_t)r->image->channels * sizeof *row);
    for (int i = 0; line != NULL && row != NULL && i < r->rows; i++) {
        const uint8_t *from = r->image->pixels + (size_t)r->down.first[i] * length;
        const double *weight = r->down.weight + (size_t)i * (size_t)r->down.most;
        for (size_t x = 0; x < length; x++) line[x] = weight[0] * from[x];
        for (int k = 1; k < r->down.count[i]; k++) {
            from += length;
            for (size_t x = 0; x < length; x++) line[x] += weight[k] * from[x];
        }
        filter_across(r, line, row);
        store(r, i, row, out);
    }
    bool made = line != NULL && row != NULL;
    free(line);
    free(row);
    return made;
}

/* More rows: the old ones, which are fewer, across; then the new ones from these. */
static bool columns_first(const resizing *r, float *out)
{
    size_t old = (size_t)r->image->width * (size_t)r->image->channels;
    size_t length = (size_t)r->columns * (size_t)r->image->channels;
    int from = r->down.first[0], to = r->down.first[r->rows - 1] + r->down.count[r->rows - 1];
    double *line = malloc(old * sizeof *line), *row = malloc(length * sizeof *row);
    double *few = malloc((size_t)(to - from) * length * sizeof *few);
    bool made = line != NULL && row != NULL && few != NULL;
    for (int y = from; made && y < to; y++) {
        for (size_t x = 0; x < old; x++) line[x] = r->image->pixels[(size_t)y * old + x];
        filter_across(r, line, few + (size_t)(y - from) * length);
    }
    for (int i = 0; made && i < r->rows; i++) {
        const double *weight = r->down.weight + (size_t)i * (size_t)r->down.most;
        const double *first = few + (size_t)(r->down.first[i] - from) * length;
        for (size_t x = 0; x < length; x++) row[x] = weight[0] * first[x];
        for (int k = 1; k < r->down.count[i]; k++)
            for (size_t x = 0; x < length; x++) row[x] += weight[k] * first[(size_t)k * length + x];
        store(r, i, row, out);
    }
    free(line);
    free(row);
    free(few);
    return made;
}

sdlf_status sdlf_image_resize(float *out, int rows, int columns, int channels, const sdlf_image *image, double top,
                              double left, double height, double width)
{
    SDLF_REQUIRE(out);
    SDLF_REQUIRE(image);
    SDLF_REQUIRE(image->pixels);
    if (rows < 1 || columns < 1 || (channels != 1 && channels != 3) || !(height > 0) || !(width > 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "sdlf_image_resize: expected a size above 0, in 1 channel or 3, found %gx%g to %dx%d in %d",
                         height, width, rows, columns, channels);
    resizing r = {.image = image, .rows = rows, .columns = columns, .channels = channels};
    bool made = make_axis(&r.down, rows, image->height, top, height) &&
                make_axis(&r.across, columns, image->width, left, width) &&
                (height >= rows ? rows_first(&r, out) : columns_first(&r, out));
    release_axis(&r.down);
    release_axis(&r.across);
    if (made) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory to resize an image of %dx%d", image->width, image->height);
}
