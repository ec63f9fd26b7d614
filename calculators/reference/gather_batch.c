/* SPDX-License-Identifier: MIT */
/* gather_batch: y[n] = (x[index[n]] - mean) scale, after an augmentation; or a plain copy of integers.
 *
 * x (M, ...), index (N), y (N, ...). The pixel arithmetic is in calculators/augmentation.h. */
#include "calculators/augmentation.h"
#include "calculators/reference/reference.h"

#include <string.h>

/* A pixel as float32, which is exact for uint8. */
static float pixel_at(const sdlf_tensor *x, int64_t i)
{
    return x->dtype == SDLF_UINT8 ? (float)((const uint8_t *)x->data)[i] : (float)get(x, i);
}

/* Pixel (h, w) of the plane that starts at element `plane`; outside, its mirror image or the background 0. */
static float pixel_or_background(const sdlf_tensor *x, int64_t plane, int64_t h, int64_t w, bool reflect)
{
    h = sdlf_warp_source(h, x->shape.dim[2], reflect);
    w = sdlf_warp_source(w, x->shape.dim[3], reflect);
    return h < 0 || w < 0 ? 0 : pixel_at(x, plane + h * x->shape.dim[3] + w);
}

/* Interpolates between the four pixels around a point of channel `c`. */
static float value_at(const sdlf_tensor *x, int64_t image, int64_t c, sdlf_warp_point from, bool reflect)
{
    int64_t plane = at4(x, image, c, 0, 0);
    return sdlf_bilinear(pixel_or_background(x, plane, from.h, from.w, reflect),
                         pixel_or_background(x, plane, from.h, from.w + 1, reflect),
                         pixel_or_background(x, plane, from.h + 1, from.w, reflect),
                         pixel_or_background(x, plane, from.h + 1, from.w + 1, reflect), from.down, from.right);
}

/* The same after a colour change, which depends on all three channels. */
static float tinted_at(const sdlf_tensor *x, int64_t image, int64_t c, sdlf_warp_point from, const sdlf_warp *warp,
                       float mean)
{
    if (!warp->tinted || x->shape.dim[1] != 3) {
        float value = value_at(x, image, c, from, warp->reflect);
        return warp->tinted ? sdlf_warp_tint(warp, value, value, mean) : value;
    }
    float colour[3];
    for (int i = 0; i < 3; i++) colour[i] = value_at(x, image, i, from, warp->reflect);
    sdlf_warp_turn(warp, colour);
    return sdlf_warp_tint(warp, colour[c], sdlf_grey(colour[0], colour[1], colour[2]), mean);
}

static void gather_warped(const sdlf_operation *operation, int64_t n, int64_t image)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t epoch = *(const int64_t *)operation->in[2].data;
    int64_t channels = x->shape.dim[1], height = x->shape.dim[2], width = x->shape.dim[3];
    const int32_t *numbers = operation->in[3].data;
    int64_t number = numbers != NULL ? numbers[image] : image;
    sdlf_warp warp = sdlf_warp_make(&operation->gather.augment, number, epoch, height, width);
    sdlf_channel_normalization by = sdlf_gather_channels(operation);
    for (int64_t c = 0; c < channels; c++) {
        int64_t of = by.count > 1 ? c : 0;
        for (int64_t h = 0; h < height; h++) {
            for (int64_t w = 0; w < width; w++) {
                float pixel = tinted_at(x, image, c, sdlf_warp_at(&warp, h, w), &warp, by.mean[of]);
                float normalized = sdlf_normalize(pixel, by.mean[of], by.scale[of]);
                put(y, at4(y, n, c, h, w), sdlf_warp_erases(&warp, h, w) ? 0 : (double)normalized);
            }
        }
    }
}

static void gather_normalized(const sdlf_operation *operation, int64_t n, int64_t image, int64_t count)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    sdlf_channel_normalization by = sdlf_gather_channels(operation);
    for (int64_t e = 0; e < count; e++) {
        int64_t c = e / (count / by.count);
        float mean = by.mean[c], scale = by.scale[c];
        if (x->dtype == SDLF_FLOAT64) {
            put(y, n * count + e, (get(x, image * count + e) - (double)mean) * (double)scale);
        } else {
            put(y, n * count + e, (double)sdlf_normalize(pixel_at(x, image * count + e), mean, scale));
        }
    }
}

sdlf_status gather_batch_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_auto_augment_wanted(&operation->gather.automatic)) {
        const sdlf_operation rest = sdlf_changed_make(operation);
        return gather_batch_reference(calculator, &rest);
    }
    const sdlf_tensor *x = &operation->in[0], *index = &operation->in[1], *y = &operation->out[0];
    int64_t rows = index->shape.dim[0], count = sdlf_shape_span(x->shape, 1, x->shape.rank);
    size_t row_bytes = (size_t)count * sdlf_dtype_size(x->dtype);
    for (int64_t n = 0; n < rows; n++) {
        int64_t image = ((const int32_t *)index->data)[n];
        if (!sdlf_dtype_is_float(y->dtype)) {
            memcpy((char *)y->data + (size_t)n * row_bytes, (const char *)x->data + (size_t)image * row_bytes,
                   row_bytes);
        } else if (sdlf_augmentation_wanted(&operation->gather.augment)) {
            gather_warped(operation, n, image);
        } else {
            gather_normalized(operation, n, image, count);
        }
    }
    return SDLF_OK;
}
