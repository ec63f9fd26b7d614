/* SPDX-License-Identifier: MIT */
/* gather_batch of uint8 or T into T: select images, normalize, and augment if requested. Contract: <sdlf/operation.h>.
 *
 * The pixel arithmetic is in calculators/augmentation.h and is bit-identical on every calculator: this file is compiled
 * without contraction of a * b + c. Without augmentation it moves 1 + 4 bytes a pixel (uint8 to float32). A warped row
 * takes two passes: the source coordinates (vectorised), and the reads. If rows map to rows (no rotation, no elastic
 * displacement), the horizontal pass is done once for each row of x. */
#include "calculators/augmentation.h"
#include "calculators/cpu/kernels/kernels.h"

enum { WARP_BLOCK = 64, COLOURS = 3, COLUMNS = 256 };

typedef struct gather_context {
    const sdlf_operation *operation;
    const uint8_t *bytes; /* one of these two is x */
    const element *elements;
    const int32_t *index, *number; /* number: NULL: an image's own */
    element *y;
    int64_t images, images_per_task, count, height, width, epoch;
    bool augmented;
    sdlf_channel_normalization channels; /* a single one, for all elements, if the operation has none */
} gather_context;

/* Normalizes `count` elements from x[first] on, all with one mean and scale. */
static void normalize_run(const gather_context *gather, element *y, int64_t first, int64_t count, float mean,
                          float scale)
{
    if (gather->bytes) {
        const uint8_t *x = gather->bytes + first;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = (element)sdlf_normalize((float)x[i], mean, scale);
    } else {
        const element *x = gather->elements + first, centre = (element)mean, factor = (element)scale;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = (x[i] - centre) * factor;
    }
}

static void normalize_image(const gather_context *gather, element *y, int64_t image)
{
    const sdlf_channel_normalization *channels = &gather->channels;
    int64_t run = gather->count / channels->count;
    for (int c = 0; c < channels->count; c++)
        normalize_run(gather, y + c * run, image * gather->count + c * run, run, channels->mean[c], channels->scale[c]);
}

/* ---- augmentation ---- */

static inline float pixel_or_background(const gather_context *gather, int64_t plane, int64_t h, int64_t w, bool reflect)
{
    h = sdlf_warp_source(h, gather->height, reflect);
    w = sdlf_warp_source(w, gather->width, reflect);
    if (h < 0 || w < 0) return 0;
    int64_t at = plane + h * gather->width + w;
    return gather->bytes ? (float)gather->bytes[at] : (float)gather->elements[at];
}

/* True if all four pixels around each point lie inside. */
static bool are_inside(const gather_context *gather, const sdlf_warp_point *from, int64_t count)
{
    bool inside = true;
    for (int64_t i = 0; i < count; i++)
        inside &= from[i].h >= 0 && from[i].h < gather->height - 1 && from[i].w >= 0 && from[i].w < gather->width - 1;
    return inside;
}

/* Samples a plane, which starts at this element of x, at these points. If all are inside, as most are, and x holds
 * bytes, they are read without bounds checks. */
static void read_run(const gather_context *gather, float *value, int64_t plane, const sdlf_warp_point *from,
                     int64_t count, bool reflect)
{
    if (gather->bytes && are_inside(gather, from, count)) {
        const uint8_t *x = gather->bytes + plane;
        int64_t width = gather->width;
        for (int64_t i = 0; i < count; i++) {
            const uint8_t *at = x + from[i].h * width + from[i].w;
            value[i] = sdlf_bilinear((float)at[0], (float)at[1], (float)at[width], (float)at[width + 1], from[i].down,
                                     from[i].right);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t h = from[i].h, w = from[i].w;
        value[i] = sdlf_bilinear(
            pixel_or_background(gather, plane, h, w, reflect), pixel_or_background(gather, plane, h, w + 1, reflect),
            pixel_or_background(gather, plane, h + 1, w, reflect),
            pixel_or_background(gather, plane, h + 1, w + 1, reflect), from[i].down, from[i].right);
    }
}

/* Rotates the hue of pixels of three planes, then computes their brightness. */
static inline void turn_run(const sdlf_warp *warp, float *restrict grey, float *restrict red, float *restrict green,
                            float *restrict blue, int64_t count)
{
    for (int64_t i = 0; warp->hue != 0 && i < count; i++) {
        float colour[COLOURS] = {red[i], green[i], blue[i]};
        sdlf_warp_turn(warp, colour);
        red[i] = colour[0], green[i] = colour[1], blue[i] = colour[2];
    }
    for (int64_t i = 0; i < count; i++) grey[i] = sdlf_grey(red[i], green[i], blue[i]);
}

/* Finishes row h of the output, from column `first` on, in one plane, from the sampled values. `grey` NULL: no brightness. */
static void finish_run(const gather_context *gather, const sdlf_warp *warp, element *restrict y, int64_t plane,
                       float *restrict value, const float *restrict grey, int64_t h, int64_t first, int64_t count)
{
    int64_t channel = gather->channels.count > 1 ? plane / (gather->height * gather->width) : 0;
    float mean = gather->channels.mean[channel], scale = gather->channels.scale[channel];
    y += plane + h * gather->width + first;
    for (int64_t i = 0; warp->tinted && i < count; i++)
        value[i] = sdlf_warp_tint(warp, value[i], grey ? grey[i] : value[i], mean);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) y[i] = (element)sdlf_normalize(value[i], mean, scale);
    for (int64_t w = cpu_max(first, warp->hole[1][0]); w < cpu_min(first + count, warp->hole[1][1]); w++)
        if (sdlf_warp_erases(warp, h, w)) y[w - first] = 0;
}

/* Planes that must be processed together: three if colours change. */
static int planes_together(const gather_context *gather, const sdlf_warp *warp)
{
    return warp->tinted && gather->count == COLOURS * gather->height * gather->width ? COLOURS : 1;
}

/* Columns of an image whose warp maps rows to rows. */
typedef struct warp_columns {
    const gather_context *gather;
    int64_t image, first, count;
    bool inside;                           /* no column is background */
    int32_t left[COLUMNS], right[COLUMNS]; /* the columns of x on either side of each; -1: background */
    float along[COLUMNS];
    int64_t row[2]; /* row of x of each line; -1: background */
    float line[COLOURS][2][COLUMNS];
} warp_columns;

static void place_columns(warp_columns *columns, const sdlf_warp *warp)
{
    int64_t width = columns->gather->width;
    columns->inside = true;
    for (int64_t i = 0; i < columns->count; i++) {
        sdlf_warp_point from = sdlf_warp_at(warp, 0, columns->first + i);
        columns->left[i] = (int32_t)sdlf_warp_source(from.w, width, warp->reflect);
        columns->right[i] = (int32_t)sdlf_warp_source(from.w + 1, width, warp->reflect);
        columns->along[i] = from.right;
        columns->inside &= columns->left[i] >= 0 && columns->right[i] >= 0;
    }
}

/* Resamples a row of a plane of x at these columns. */
static void read_line(warp_columns *columns, float *restrict line, int64_t plane, int64_t row)
{
    const gather_context *gather = columns->gather;
    const int32_t *left = columns->left, *right = columns->right;
    const float *along = columns->along;
    if (gather->bytes && columns->inside && row >= 0) {
        const uint8_t *x = gather->bytes + columns->image * gather->count + plane + row * gather->width;
        for (int64_t i = 0; i < columns->count; i++)
            line[i] = sdlf_mix((float)x[left[i]], (float)x[right[i]], along[i]);
        return;
    }
    int64_t at = columns->image * gather->count + plane;
    for (int64_t i = 0; i < columns->count; i++)
        line[i] = sdlf_mix(pixel_or_background(gather, at, row, left[i], false),
                           pixel_or_background(gather, at, row, right[i], false), along[i]);
}

/* Ensures that slot `slot` holds the lines of a row of x. */
static void have_lines(warp_columns *columns, int slot, int64_t row, int64_t plane, int planes)
{
    if (columns->row[slot] == row) return;
    columns->row[slot] = row;
    for (int c = 0; c < planes; c++)
        read_line(columns, columns->line[c][slot], plane + c * columns->gather->height * columns->gather->width, row);
}

/* Warps `planes` planes at once, starting with this one. */
static void warp_planes(warp_columns *columns, const sdlf_warp *warp, element *y, int64_t plane, int planes)
{
    const gather_context *gather = columns->gather;
    const int64_t height = gather->height, area = height * gather->width, count = columns->count;
    columns->row[0] = columns->row[1] = -2;
    for (int64_t h = 0; h < height; h++) {
        float value[COLOURS][COLUMNS], grey[COLUMNS];
        sdlf_warp_point from = sdlf_warp_at(warp, h, 0);
        int64_t above = sdlf_warp_source(from.h, height, warp->reflect);
        int64_t below = sdlf_warp_source(from.h + 1, height, warp->reflect);
        int top = columns->row[0] != above && (columns->row[1] == above || columns->row[0] == below);
        int bottom = above == below ? top : 1 - top;
        have_lines(columns, top, above, plane, planes);
        have_lines(columns, bottom, below, plane, planes);
        for (int c = 0; c < planes; c++) {
            const float *restrict a = columns->line[c][top], *restrict b = columns->line[c][bottom];
#pragma omp simd
            for (int64_t i = 0; i < count; i++) value[c][i] = sdlf_mix(a[i], b[i], from.down);
        }
        if (planes == COLOURS) turn_run(warp, grey, value[0], value[1], value[2], count);
        for (int c = 0; c < planes; c++)
            finish_run(gather, warp, y, plane + c * area, value[c], planes == COLOURS ? grey : NULL, h, columns->first,
                       count);
    }
}

/* A warp that maps rows to rows and columns to columns. */
static void warp_upright(const gather_context *gather, const sdlf_warp *warp, element *y, int64_t image)
{
    int planes = planes_together(gather, warp);
    warp_columns columns = {.gather = gather, .image = image};
    for (; columns.first < gather->width; columns.first += COLUMNS) {
        columns.count = cpu_min(COLUMNS, gather->width - columns.first);
        place_columns(&columns, warp);
        for (int64_t plane = 0; plane < gather->count; plane += planes * gather->height * gather->width)
            warp_planes(&columns, warp, y, plane, planes);
    }
}

static void warp_image(const gather_context *gather, element *y, int64_t image)
{
    const sdlf_augmentation *augment = &gather->operation->gather.augment;
    int64_t height = gather->height, width = gather->width;
    int64_t number = gather->number ? gather->number[image] : image;
    sdlf_warp warp = sdlf_warp_make(augment, number, gather->epoch, height, width);
    if (!warp.elastic && warp.matrix[0][1] == 0 && warp.matrix[1][0] == 0) {
        warp_upright(gather, &warp, y, image);
        return;
    }
    int planes = planes_together(gather, &warp);
    const int64_t area = height * width;
    for (int64_t h = 0; h < height; h++) {
        for (int64_t first = 0; first < width; first += WARP_BLOCK) {
            sdlf_warp_point from[WARP_BLOCK];
            int64_t some = cpu_min(WARP_BLOCK, width - first);
#pragma omp simd
            for (int64_t i = 0; i < some; i++) from[i] = sdlf_warp_at(&warp, h, first + i);
            float value[COLOURS][WARP_BLOCK], grey[WARP_BLOCK];
            for (int64_t plane = 0; plane < gather->count; plane += planes * area) {
                for (int c = 0; c < planes; c++)
                    read_run(gather, value[c], image * gather->count + plane + c * area, from, some, warp.reflect);
                if (planes == COLOURS) turn_run(&warp, grey, value[0], value[1], value[2], some);
                for (int c = 0; c < planes; c++)
                    finish_run(gather, &warp, y, plane + c * area, value[c], planes == COLOURS ? grey : NULL, h, first,
                               some);
            }
        }
    }
}

static void gather_images(void *context, int64_t index, int thread)
{
    const gather_context *gather = context;
    int64_t last = cpu_min((index + 1) * gather->images_per_task, gather->images);
    (void)thread;
    for (int64_t n = index * gather->images_per_task; n < last; n++) {
        element *y = gather->y + n * gather->count;
        (gather->augmented ? warp_image : normalize_image)(gather, y, gather->index[n]);
    }
}

sdlf_status gather_batch_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *epoch = &operation->in[2];
    gather_context gather = {.operation = operation,
                             .bytes = x->dtype == SDLF_UINT8 ? x->data : NULL,
                             .elements = x->dtype == SDLF_UINT8 ? NULL : x->data,
                             .index = operation->in[1].data,
                             .number = operation->in[3].data,
                             .y = output(operation, 0),
                             .images = operation->in[1].shape.dim[0],
                             .count = sdlf_shape_span(x->shape, 1, x->shape.rank),
                             .epoch = sdlf_tensor_present(epoch) ? *(const int64_t *)epoch->data : 0,
                             .augmented = sdlf_augmentation_wanted(&operation->gather.augment),
                             .channels = sdlf_gather_channels(operation)};
    if (gather.images == 0 || gather.count == 0) return SDLF_OK;
    if (gather.augmented) {
        gather.height = x->shape.dim[2];
        gather.width = x->shape.dim[3];
    }
    gather.images_per_task = cpu_max(1, TASK_ELEMENTS / 2 / gather.count);
    int64_t time = gather.images * gather.count * (gather.augmented ? 20 : 1) / 2;
    cpu_parallel(cpu_from(calculator), cpu_divide_up(gather.images, gather.images_per_task), time, gather_images,
                 &gather);
    return SDLF_OK;
}
