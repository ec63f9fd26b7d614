/* SPDX-License-Identifier: MIT */
/* A separable triangle filter (<sdlf/image.h>). If the number of rows shrinks, rows are filtered first, else columns, so that neither
 * pass processes more pixels than the cropped source and the result have. Up to 256 terms are accumulated in float, and these partial
 * sums in double, because a sum may extend over a whole side. */
#include <sdlf/image.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/images/resize.h"
#include "framework/require.h"

/* Terms of a partial sum in float; floats that are loaded for a pixel of three channels. */
enum { TOGETHER = 256, LANES = 4 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* The filter of one direction: new pixel i is the weighted sum of count[i] old ones from first[i], with weights that add up to 1. */
typedef struct axis {
    int *first, *count;
    float *weight;
    int most; /* weights per pixel */
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

/* Map `new_size` pixels to `length` of the `old_size` old ones, from `start` on; only those of `part` are computed. */
static bool make_axis(axis *a, int new_size, const int part[2], int old_size, double start, double length)
{
    double scale = length / new_size, reach = fmax(scale, 1);
    size_t count = (size_t)new_size;
    a->most = (int)fmin(ceil(2 * reach) + 2, old_size);
    a->first = malloc(count * sizeof *a->first);
    a->count = malloc(count * sizeof *a->count);
    a->weight = malloc(count * (size_t)a->most * sizeof *a->weight);
    if (a->first == NULL || a->count == NULL || a->weight == NULL) return false;
    for (int i = part[0]; i < part[1]; i++) weigh(a, i, old_size, start + (i + 0.5) * scale, reach);
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
    sdlf_sample_part part;       /* the part that is computed */
    float *out;                  /* the result goes to `out` or `bytes` */
    uint8_t *bytes;
    axis down, across;
} resizing;

/* Floats in the part's columns, over all channels of the image. */
static size_t row_length(const resizing *r)
{
    return (size_t)(r->part.columns[1] - r->part.columns[0]) * (size_t)r->image->channels;
}

/* Filters a pixel of three channels. Reads one float beyond the last pixel, which is ignored, and writes one beyond `pixel`. */
static void sum_colours(const float *from, const float *weight, int count, float *pixel)
{
    double all[LANES] = {0};
    for (int first = 0; first < count; first += TOGETHER) {
        lanes sum = {0}, colours;
        for (int k = first; k < count && k < first + TOGETHER; k++) {
            memcpy(&colours, from + (size_t)k * 3, sizeof colours);
            sum += weight[k] * colours;
        }
        if (count <= TOGETHER) {
            memcpy(pixel, &sum, sizeof sum);
            return;
        }
        for (int c = 0; c < LANES; c++) all[c] += (double)sum[c];
    }
    for (int c = 0; c < LANES; c++) pixel[c] = (float)all[c];
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

/* Filter the old row `line` into the part of a new row; the channels of both are interleaved. */
static void filter_across(const resizing *r, const float *line, float *row)
{
    const axis *a = &r->across;
    for (int j = r->part.columns[0]; j < r->part.columns[1]; j++) {
        const float *weight = a->weight + (size_t)j * (size_t)a->most;
        if (r->image->channels == 3) {
            sum_colours(line + (size_t)a->first[j] * 3, weight, a->count[j], row);
            row += 3;
        } else {
            *row++ = sum_grey(line + a->first[j], weight, a->count[j]);
        }
    }
}

/* line += the weighted sum of `count` old rows with stride `step`. */
static void add_rows(float *restrict line, const uint8_t *restrict from, size_t step, size_t length,
                     const float *restrict weight, int count)
{
    for (; count >= 4; count -= 4, from += 4 * step, weight += 4)
        for (size_t x = 0; x < length; x++)
            line[x] = line[x] + weight[0] * (float)from[x] + weight[1] * (float)from[step + x] +
                      weight[2] * (float)from[2 * step + x] + weight[3] * (float)from[3 * step + x];
    for (; count > 0; count--, from += step, weight++)
        for (size_t x = 0; x < length; x++) line[x] += weight[0] * (float)from[x];
}

/* line = the weighted sum of `count` old rows; `sums` is scratch space for a row. */
static void sum_rows(float *line, double *sums, const uint8_t *from, size_t step, size_t length, const float *weight,
                     int count)
{
    if (count > TOGETHER) memset(sums, 0, length * sizeof *sums);
    for (int first = 0; first < count; first += TOGETHER) {
        memset(line, 0, length * sizeof *line);
        add_rows(line, from + (size_t)first * step, step, length, weight + first,
                 count - first < TOGETHER ? count - first : TOGETHER);
        for (size_t x = 0; count > TOGETHER && x < length; x++) sums[x] += (double)line[x];
    }
    for (size_t x = 0; count > TOGETHER && x < length; x++) line[x] = (float)sums[x];
}

/* Stores row i of the result, converted from the image's channels to the requested ones. Weights add up to 1, so that bytes stay in their
 * range. */
static void store(const resizing *r, int i, float *row)
{
    int colours = r->image->channels, first = r->part.columns[0], count = r->part.columns[1] - first;
    if (colours == 3 && r->channels == 1) {
        for (int j = 0; j < count; j++)
            row[j] = 0.299f * row[3 * j] + 0.587f * row[3 * j + 1] + 0.114f * row[3 * j + 2];
        colours = 1;
    }
    for (int c = 0; c < r->channels; c++) {
        size_t at = ((size_t)c * (size_t)r->rows + (size_t)i) * (size_t)r->columns + (size_t)first;
        const float *restrict from = row + (colours == 3 ? c : 0);
        float *restrict out = r->out == NULL ? NULL : r->out + at;
        uint8_t *restrict bytes = r->bytes == NULL ? NULL : r->bytes + at;
        for (int j = 0; out != NULL && j < count; j++) out[j] = from[j * colours];
        for (int j = 0; bytes != NULL && j < count; j++) bytes[j] = (uint8_t)(int)(from[j * colours] + 0.5f);
    }
}

/* Fewer rows: combine the old rows of each new row, then filter across. */
static bool rows_first(const resizing *r)
{
    size_t colours = (size_t)r->image->channels, length = (size_t)r->image->width * colours;
    int last = r->part.columns[1] - 1;
    size_t begin = (size_t)r->across.first[r->part.columns[0]] * colours; /* of the source columns that are needed */
    size_t end = (size_t)(r->across.first[last] + r->across.count[last]) * colours;
    float *line = calloc(length + 1, sizeof *line);
    double *sums = malloc((r->down.most > TOGETHER ? length : 1) * sizeof *sums);
    float *row = malloc((row_length(r) + 1) * sizeof *row);
    bool made = line != NULL && sums != NULL && row != NULL;
    for (int i = r->part.rows[0]; made && i < r->part.rows[1]; i++) {
        sum_rows(line + begin, sums, r->image->pixels + (size_t)r->down.first[i] * length + begin, length, end - begin,
                 r->down.weight + (size_t)i * (size_t)r->down.most, r->down.count[i]);
        filter_across(r, line, row);
        store(r, i, row);
    }
    free(line);
    free(sums);
    free(row);
    return made;
}

/* More rows: filter the old rows, which are fewer, across; then combine them into the new ones. */
static bool columns_first(const resizing *r)
{
    size_t old = (size_t)r->image->width * (size_t)r->image->channels, length = row_length(r);
    int last = r->part.rows[1] - 1, from = r->down.first[r->part.rows[0]],
        to = r->down.first[last] + r->down.count[last];
    float *line = calloc(old + 1, sizeof *line), *row = malloc(length * sizeof *row);
    float *few = malloc(((size_t)(to - from) * length + 1) * sizeof *few);
    bool made = line != NULL && row != NULL && few != NULL;
    for (int y = from; made && y < to; y++) {
        for (size_t x = 0; x < old; x++) line[x] = r->image->pixels[(size_t)y * old + x];
        filter_across(r, line, few + (size_t)(y - from) * length);
    }
    for (int i = r->part.rows[0]; made && i < r->part.rows[1]; i++) {
        const float *weight = r->down.weight + (size_t)i * (size_t)r->down.most;
        const float *first = few + (size_t)(r->down.first[i] - from) * length;
        for (size_t x = 0; x < length; x++) row[x] = weight[0] * first[x];
        for (int k = 1; k < r->down.count[i]; k++)
            for (size_t x = 0; x < length; x++) row[x] += weight[k] * first[(size_t)k * length + x];
        store(r, i, row);
    }
    free(line);
    free(row);
    free(few);
    return made;
}

static sdlf_status resize(resizing *r, double top, double left, double height, double width)
{
    bool made = make_axis(&r->down, r->rows, r->part.rows, r->image->height, top, height) &&
                make_axis(&r->across, r->columns, r->part.columns, r->image->width, left, width) &&
                (height >= r->rows ? rows_first : columns_first)(r);
    release_axis(&r->down);
    release_axis(&r->across);
    if (made) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory to resize an image of %dx%d", r->image->width, r->image->height);
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
    resizing r = {.image = image, .rows = rows, .columns = columns, .channels = channels, .out = out};
    r.part = (sdlf_sample_part){{0, rows}, {0, columns}};
    return resize(&r, top, left, height, width);
}

sdlf_status image_resize_part(uint8_t *out, sdlf_shape shape, const sdlf_sample_part *part, const sdlf_image *image,
                              double top, double left, double height, double width)
{
    resizing r = {.image = image, .bytes = out, .part = *part};
    r.channels = (int)shape.dim[0];
    r.rows = (int)shape.dim[1];
    r.columns = (int)shape.dim[2];
    return resize(&r, top, left, height, width);
}
