/* SPDX-License-Identifier: MIT */
/* gather_batch of uint8 or T into T: select images, normalise, and augment where asked. Contract: <sdlf/operation.h>.
 *
 * What happens to a pixel is in calculators/augmentation.h and comes out the same, bit for bit, on every calculator: this
 * file is compiled without contraction of a * b + c. Without augmentation it moves 1 + 4 bytes a pixel (uint8 to float32).
 * A warped row is done in two passes: where its pixels are read (vectors), and the reads themselves. */
#include "calculators/augmentation.h"
#include "calculators/cpu/kernels/kernels.h"

enum { WARP_BLOCK = 64 };

typedef struct gather_context {
    const sdlf_operation *operation;
    const uint8_t *bytes; /* one of these two is x */
    const element *elements;
    const int32_t *index, *number; /* number: NULL: an image's own */
    element *y;
    int64_t images, images_per_task, count, height, width, epoch;
    bool augmented;
    sdlf_channel_normalization channels; /* one, for all elements, where the operation has none */
} gather_context;

/* `count` elements from x[first] on, all of one mean and scale. */
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

/* Do all four pixels around each point lie inside? */
static bool are_inside(const gather_context *gather, const sdlf_warp_point *from, int64_t count)
{
    bool inside = true;
    for (int64_t i = 0; i < count; i++)
        inside &= from[i].h >= 0 && from[i].h < gather->height - 1 && from[i].w >= 0 && from[i].w < gather->width - 1;
    return inside;
}

/* The values of a plane, which begins at this element of x, at these points. Where all are inside, as most are, and of bytes, they are read
 * without looking. */
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

/* The brightness of the pixels of three planes there. */
static void read_grey(const gather_context *gather, float *grey, int64_t image, const sdlf_warp_point *from,
                      int64_t count, bool reflect)
{
    float value[3][WARP_BLOCK];
    for (int c = 0; c < 3; c++)
        read_run(gather, value[c], image * gather->count + c * gather->height * gather->width, from, count, reflect);
    for (int64_t i = 0; i < count; i++) grey[i] = sdlf_grey(value[0][i], value[1][i], value[2][i]);
}

/* Row h of the output, from column `first` on, in one plane. `grey` NULL: there is no such thing. */
static void warp_run(const gather_context *gather, const sdlf_warp *warp, element *y, int64_t image, int64_t plane,
                     const sdlf_warp_point *from, const float *grey, int64_t h, int64_t first, int64_t count)
{
    int64_t channel = gather->channels.count > 1 ? plane / (gather->height * gather->width) : 0;
    float mean = gather->channels.mean[channel], scale = gather->channels.scale[channel];
    float block[WARP_BLOCK];
    read_run(gather, block, image * gather->count + plane, from, count, warp->reflect);
    for (int64_t i = 0; warp->tinted && i < count; i++)
        block[i] = sdlf_warp_tint(warp, block[i], grey ? grey[i] : block[i], mean);
    for (int64_t i = 0; i < count; i++) y[i] = (element)sdlf_normalize(block[i], mean, scale);
    for (int64_t w = cpu_max(first, warp->hole[1][0]); w < cpu_min(first + count, warp->hole[1][1]); w++)
        if (sdlf_warp_erases(warp, h, w)) y[w - first] = 0;
}

static void warp_image(const gather_context *gather, element *y, int64_t image)
{
    const sdlf_augmentation *augment = &gather->operation->gather.augment;
    int64_t height = gather->height, width = gather->width;
    int64_t number = gather->number ? gather->number[image] : image;
    sdlf_warp warp = sdlf_warp_make(augment, number, gather->epoch, height, width);
    for (int64_t h = 0; h < height; h++) {
        for (int64_t first = 0; first < width; first += WARP_BLOCK) {
            sdlf_warp_point from[WARP_BLOCK];
            int64_t some = cpu_min(WARP_BLOCK, width - first);
#pragma omp simd
            for (int64_t i = 0; i < some; i++) from[i] = sdlf_warp_at(&warp, h, first + i);
            float grey[WARP_BLOCK];
            bool coloured = warp.tinted && gather->count == 3 * height * width;
            if (coloured) read_grey(gather, grey, image, from, some, warp.reflect);
            for (int64_t plane = 0; plane < gather->count; plane += height * width) {
                warp_run(gather, &warp, y + plane + h * width + first, image, plane, from, coloured ? grey : NULL, h,
                         first, some);
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
