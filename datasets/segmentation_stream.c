/* SPDX-License-Identifier: MIT */
/* Images and masks that are read on demand. See segmentation_stream.h. */
#include "datasets/segmentation_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/folder_stream.h"

sdlf_status mask_stream_create(mask_stream **stream, const char *folder, mask_pairs *pairs, sdlf_shape shape)
{
    mask_stream *made = calloc(1, sizeof *made);
    *stream = made;
    if (made != NULL) made->folder = strdup(folder);
    if (made == NULL || made->folder == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    made->shape = shape;
    made->pairs = *pairs;
    *pairs = (mask_pairs){.count = 0};
    return SDLF_OK;
}

void mask_stream_free(void *context)
{
    mask_stream *stream = context;
    if (stream == NULL) return;
    mask_pairs_release(&stream->pairs);
    sample_cache_release(&stream->cache);
    free(stream->folder);
    free(stream);
}

static int64_t area_of(const mask_stream *stream)
{
    return stream->shape.dim[1] * stream->shape.dim[2];
}

int64_t mask_stream_size(const mask_stream *stream)
{
    return sdlf_shape_count(stream->shape) + area_of(stream);
}

void mask_stream_close_gaps(mask_stream *stream, const bool *is_read)
{
    int64_t kept = 0, count = stream->pairs.count;
    for (int64_t i = 0; i < count; i++)
        if (is_read[i]) stream->pairs.pair[kept++] = stream->pairs.pair[i];
    if (stream->cache.kept != NULL) sample_cache_close_gaps(&stream->cache, is_read, count);
    stream->pairs.count = kept;
}

/* ---- one pair ---- */

static sdlf_status read_mask(sdlf_image *mask, const mask_stream *s, int64_t pair)
{
    const folder_file *file = s->pairs.pair[pair].mask;
    sdlf_status status = folder_read_mask(mask, s->folder, file);
    if (status != SDLF_OK || mask->channels == 1) return status;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s/%s: expected a grey picture, or one with a palette, whose values are classes, found colours",
                     s->folder, file->path);
}

/* Sample the mask by nearest neighbour, over the same crop that folder_fill_sample takes of the image. */
static sdlf_status fill_mask(uint8_t *to, const mask_stream *s, int64_t pair, const sdlf_image *mask)
{
    const char *path = s->pairs.pair[pair].mask->path;
    int64_t rows = s->shape.dim[1], columns = s->shape.dim[2];
    double down = (double)mask->height / (double)rows, right = (double)mask->width / (double)columns;
    double scale = down < right ? down : right;
    double top = (mask->height - scale * (double)rows) / 2, left = (mask->width - scale * (double)columns) / 2;
    for (int64_t h = 0; h < rows; h++)
        for (int64_t w = 0; w < columns; w++) {
            int64_t y = (int64_t)(top + scale * ((double)h + 0.5)), x = (int64_t)(left + scale * ((double)w + 0.5));
            if (y >= mask->height) y = mask->height - 1;
            if (x >= mask->width) x = mask->width - 1;
            uint8_t value = mask->pixels[y * mask->width + x];
            if (value != MASK_IGNORED && value >= s->class_count)
                return sdlf_fail(SDLF_ERROR_FORMAT,
                                 "%s/%s: pixel (%" PRId64 ",%" PRId64 "): expected one of %d classes, or %d, found %d",
                                 s->folder, path, y, x, s->class_count, MASK_IGNORED, value);
            to[h * columns + w] = value;
        }
    return SDLF_OK;
}

static sdlf_status check_sizes(const mask_stream *s, int64_t pair, const sdlf_image *picture, const sdlf_image *mask)
{
    const mask_pair *files = &s->pairs.pair[pair];
    if (mask->height != picture->height || mask->width != picture->width)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s/%s: the mask has %dx%d pixels (height x width), its picture %dx%d",
                         s->folder, files->mask->path, mask->height, mask->width, picture->height, picture->width);
    if (s->any_size || (picture->height == s->shape.dim[1] && picture->width == s->shape.dim[2])) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE,
                     "%s/%s: %dx%d pixels (height x width), others have %dx%d; pictures of several sizes need a common "
                     "size (--size)",
                     s->folder, files->picture->path, picture->height, picture->width, (int)s->shape.dim[1],
                     (int)s->shape.dim[2]);
}

sdlf_status mask_stream_decode(mask_stream *stream, int64_t pair, uint8_t *to)
{
    sdlf_image picture = {0}, mask = {0};
    mask_pair *files = &stream->pairs.pair[pair];
    sdlf_status status = folder_read_picture(&picture, stream->folder, files->picture);
    if (status == SDLF_OK) status = read_mask(&mask, stream, pair);
    if (status == SDLF_OK) status = check_sizes(stream, pair, &picture, &mask);
    if (status == SDLF_OK) status = folder_fill_sample(to, &picture, stream->shape, NULL);
    if (status == SDLF_OK) status = fill_mask(to + sdlf_shape_count(stream->shape), stream, pair, &mask);
    files->height = picture.height;
    files->width = picture.width;
    sdlf_image_release(&picture);
    sdlf_image_release(&mask);
    return status;
}

void mask_labels(int32_t *labels, const uint8_t *mask, int64_t count)
{
    for (int64_t i = 0; i < count; i++) labels[i] = mask[i] == MASK_IGNORED ? -1 : mask[i];
}

/* ---- for loaders ---- */

static sdlf_status in_stream(const mask_stream *stream, sdlf_status status)
{
    return sdlf_fail_context(status, "%s, which could be read when the data set was opened", stream->folder);
}

/* An image and its mask are read separately here; each must have the size that both had when first read. */
static sdlf_status check_size(const mask_stream *s, int64_t pair, const folder_file *file, const sdlf_image *found)
{
    const mask_pair *had = &s->pairs.pair[pair];
    if (found->height == had->height && found->width == had->width) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s/%s: has %dx%d pixels (height x width), had %dx%d when the data set was opened", s->folder,
                     file->path, found->height, found->width, had->height, had->width);
}

sdlf_status mask_stream_read_part(void *context, int64_t pair, const sdlf_sample_part *part, void *sample)
{
    mask_stream *stream = context;
    const uint8_t *kept = sample_cache_find(&stream->cache, pair);
    if (kept != NULL) {
        memcpy(sample, kept, (size_t)sdlf_shape_count(stream->shape));
        return SDLF_OK;
    }
    sdlf_image picture = {0};
    const folder_file *file = stream->pairs.pair[pair].picture;
    sdlf_status status = in_stream(stream, folder_read_picture(&picture, stream->folder, file));
    if (status == SDLF_OK) status = check_size(stream, pair, file, &picture);
    if (status == SDLF_OK) status = folder_fill_sample(sample, &picture, stream->shape, part);
    sdlf_image_release(&picture);
    return status;
}

sdlf_status mask_stream_read(void *context, int64_t pair, void *sample)
{
    return mask_stream_read_part(context, pair, NULL, sample);
}

sdlf_status mask_stream_read_labels(void *context, int64_t pair, void *labels)
{
    mask_stream *stream = context;
    int64_t area = area_of(stream);
    const uint8_t *kept = sample_cache_find(&stream->cache, pair);
    if (kept != NULL) {
        mask_labels(labels, kept + sdlf_shape_count(stream->shape), area);
        return SDLF_OK;
    }
    sdlf_image mask = {0};
    uint8_t *bytes = malloc((size_t)area);
    sdlf_status status = bytes != NULL ? in_stream(stream, read_mask(&mask, stream, pair))
                                       : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", stream->folder);
    if (status == SDLF_OK) status = check_size(stream, pair, stream->pairs.pair[pair].mask, &mask);
    if (status == SDLF_OK) status = in_stream(stream, fill_mask(bytes, stream, pair, &mask));
    if (status == SDLF_OK) mask_labels(labels, bytes, area);
    sdlf_image_release(&mask);
    free(bytes);
    return status;
}
