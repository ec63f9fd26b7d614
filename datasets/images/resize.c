/* SPDX-License-Identifier: MIT */
/* A separable triangle filter (<sdlf/image.h>). What shrinks comes first, so that both passes look at no more than the pixels of the part
 * and of the result: rows first where these become fewer, else columns of the few rows there are. Sums are of floats, 256 at a time, and
 * these are added in double: a sum may be over all of a side. */
#include <sdlf/image.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/require.h"

/* Terms of a sum of floats; floats that are read for a pixel of three channels. */
enum { TOGETHER = 256, LANES = 4 };

/* How the new pixels of one direction are made: pixel i of count[i] old ones from first[i], with weights that add up to 1. */
typedef struct axis {
    int *first, *count;
    float *weight;
    int most; /* weights of a pixel */
} axis;

static int clamp(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

static void weigh(axis *a, int i, int old_size, double centre, double reach)
{
    float *weight = a->weight + (size_t)i * (size_t)a->most;
    int first = clamp(floor(centre - reach), 0, old_size - 1), last = clamp(ceil(centre + reach), first + 1, old_size);
    double sum = 0;
    for (int k = first; k < last; k++) sum += fmax(1 - fabs(k + 0.5 - centre) / reach, 0);
    for (int k = first; k < last; k++)
        weight[k - first] = (float)(sum > 0 ? fmax(1 - fabs(k + 0.5 - centre) / reach, 0) / sum : 1.0 / (last - first));
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

/* A pixel of three channels; one float behind the last pixel is read, and does not count. */
static void sum_colours(const float *from, const float *weight, int count, float *pixel)
{
    double all[3] = {0};
    for (int first = 0; first < count; first += TOGETHER) {
        float sum[LANES] = {0};
        for (int k = first; k < count && k < first + TOGETHER; k++)
            for (int c = 0; c < LANES; c++) sum[c] += weight[k] * from[k * 3 + c];
        for (int c = 0; c < 3; c++) all[c] += (double)sum[c];
    }
    for (int c = 0; c < 3; c++) pixel[c] = (float)all[c];
}

static float sum_grey(const float *from, const float *weight, int count)
{
    double all = 0;
    for (int first = 0; first < count; first += TOGETHER) {
        float sum = 0;
        for (int k = first; k < count && k < first + TOGETHER; k++) sum += weight[k] * from[k];
        all += (double)sum;
    }
    return (float)all;
}

/* A new row from the pixels `line` of an old one; both with the image's channels together. */
static void filter_across(const resizing *r, const float *line, float *row)
{
    const axis *a = &r->across;
    for (int j = 0; j < r->columns; j++) {
        const float *weight = a->weight + (size_t)j * (size_t)a->most;
        if (r->image->channels == 3)
            sum_colours(line + (size_t)a->first[j] * 3, weight, a->count[j], row + (size_t)j * 3);
        else
            row[j] = sum_grey(line + a->first[j], weight, a->count[j]);
    }
}

/* line = the weighted sum of `count` old rows, which are `step` apart; `sums` is scratch space of a row. */
static void sum_rows(float *line, double *sums, const uint8_t *from, size_t step, size_t length, const float *weight,
                     int count)
{
    if (count > TOGETHER) memset(sums, 0, length * sizeof *sums);
    for (int first = 0; first < count; first += TOGETHER) {
        for (size_t x = 0; x < length; x++) line[x] = weight[first] * (float)from[(size_t)first * step + x];
        for (int k = first + 1; k < count && k < first + TOGETHER; k++) {
            const uint8_t *old = from + (size_t)k * step;
            for (size_t x = 0; x < length; x++) line[x] += weight[k] * (float)old[x];
        }
        for (size_t x = 0; count > TOGETHER && x < length; x++) sums[x] += (double)line[x];
    }
    for (size_t x = 0; count > TOGETHER && x < length; x++) line[x] = (float)sums[x];
}

/* Row i of the result, in the channels that are wanted. */
static void store(const resizing *r, int i, const float *row, float *out)
{
    size_t plane = (size_t)r->rows * (size_t)r->columns;
    bool coloured = r->image->channels == 3;
    for (int c = 0; c < r->channels; c++) {
        float *to = out + (size_t)c * plane + (size_t)i * (size_t)r->columns;
        for (int j = 0; j < r->columns; j++) {
            const float *pixel = row + (coloured ? 3 * j : j);
            to[j] = !coloured          ? pixel[0]
                    : r->channels == 3 ? pixel[c]
                                       : 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
        }
    }
}

/* Fewer rows: a new row's worth of old pixels, then across. */
static bool rows_first(const resizing *r, float *out)
{
    size_t length = (size_t)r->image->width * (size_t)r->image->channels;
    size_t begin = (size_t)r->across.first[0] * (size_t)r->image->channels; /* of the columns that are looked at */
    size_t end =
        (size_t)(r->across.first[r->columns - 1] + r->across.count[r->columns - 1]) * (size_t)r->image->channels;
    float *line = calloc(length + 1, sizeof *line);
    double *sums = malloc((r->down.most > TOGETHER ? length : 1) * sizeof *sums);
    float *row = malloc((size_t)r->columns * (size_t)r->image->channels * sizeof *row);
    bool made = line != NULL && sums != NULL && row != NULL;
    for (int i = 0; made && i < r->rows; i++) {
        sum_rows(line + begin, sums, r->image->pixels + (size_t)r->down.first[i] * length + begin, length, end - begin,
                 r->down.weight + (size_t)i * (size_t)r->down.most, r->down.count[i]);
        filter_across(r, line, row);
        store(r, i, row, out);
    }
    free(line);
    free(sums);
    free(row);
    return made;
}

/* More rows: the old ones, which are fewer, across; then the new ones from these. */
static bool columns_first(const resizing *r, float *out)
{
    size_t old = (size_t)r->image->width * (size_t)r->image->channels;
    size_t length = (size_t)r->columns * (size_t)r->image->channels;
    int from = r->down.first[0], to = r->down.first[r->rows - 1] + r->down.count[r->rows - 1];
    float *line = calloc(old + 1, sizeof *line), *row = malloc(length * sizeof *row);
    float *few = malloc((size_t)(to - from) * length * sizeof *few);
    bool made = line != NULL && row != NULL && few != NULL;
    for (int y = from; made && y < to; y++) {
        for (size_t x = 0; x < old; x++) line[x] = r->image->pixels[(size_t)y * old + x];
        filter_across(r, line, few + (size_t)(y - from) * length);
    }
    for (int i = 0; made && i < r->rows; i++) {
        const float *weight = r->down.weight + (size_t)i * (size_t)r->down.most;
        const float *first = few + (size_t)(r->down.first[i] - from) * length;
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
