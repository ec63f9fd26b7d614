/* SPDX-License-Identifier: MIT */
/* segmentation: pictures with a label for each pixel, which is the value of the same pixel of a mask: a grey picture of the same size, or
 * a PNG with a palette, whose colours do not count.
 *
 *     DIR/images/1.jpg, DIR/masks/1.png, ...                    every fifth picture or so is for testing
 *     DIR/train/images/1.jpg, DIR/train/masks/1.png, DIR/test/images/..., DIR/test/masks/...
 *
 * A picture's mask has its name, except for the ending. Value 255 is of pixels that do not count, label -1. DIR/classes.txt names the classes,
 * one a line; without it there are as many as the largest value needs. Pictures and masks are cut and scaled alike, masks by their nearest
 * pixels. Pictures that cannot be read are left out and counted, or, if that is asked for, refused. All are held in memory. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/datasets_internal.h"
#include "datasets/folder_stream.h"
#include "datasets/segmentation.h"
#include "datasets/unread.h"
#include "framework/formats/budget.h"
#include "framework/formats/text.h"
#include "framework/parallel.h"

enum { COLOURS = 3, LARGEST_SIDE = 65535, MESSAGE_SIZE = 512 };

/* ---- reading ---- */

typedef struct reading {
    const char *folder;
    const mask_pairs *pairs;
    const sdlf_dataset_options *options;
    sdlf_dataset *dataset;
    bool *is_read;
    unread_files unread;
    pthread_mutex_t lock; /* guards what follows: the first failure that is no such file's, in the order of the pairs */
    int64_t failed, failures, done;
    sdlf_status status;
    char message[MESSAGE_SIZE];
} reading;

static sdlf_status read_pair(const reading *r, int64_t i, sdlf_image *picture, sdlf_image *mask)
{
    const mask_pair *pair = &r->pairs->pair[i];
    sdlf_status status = folder_read_picture(picture, r->folder, pair->picture);
    if (status == SDLF_OK) status = folder_read_mask(mask, r->folder, pair->mask);
    if (status != SDLF_OK) return status;
    if (mask->channels != 1)
        return sdlf_fail(
            SDLF_ERROR_FORMAT,
            "%s/%s: expected a grey picture, or one with a palette, whose values are classes, found colours", r->folder,
            pair->mask->path);
    if (mask->height != picture->height || mask->width != picture->width)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s/%s: the mask has %dx%d pixels (height x width), its picture %dx%d",
                         r->folder, pair->mask->path, mask->height, mask->width, picture->height, picture->width);
    sdlf_shape shape = r->dataset->samples.shape;
    if (r->options->height == 0 && (picture->height != shape.dim[2] || picture->width != shape.dim[3]))
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "%s/%s: %dx%d pixels (height x width), others have %dx%d; pictures of several sizes need one "
                         "that they are scaled to (--size)",
                         r->folder, pair->picture->path, picture->height, picture->width, (int)shape.dim[2],
                         (int)shape.dim[3]);
    return SDLF_OK;
}

/* The nearest pixels of the part of the mask that folder_fill_sample takes of its picture. */
static sdlf_status fill_labels(int32_t *labels, const reading *r, int64_t i, const sdlf_image *mask)
{
    sdlf_shape shape = r->dataset->samples.shape;
    int64_t rows = shape.dim[2], columns = shape.dim[3];
    double down = (double)mask->height / (double)rows, right = (double)mask->width / (double)columns;
    double scale = down < right ? down : right;
    double top = (mask->height - scale * (double)rows) / 2, left = (mask->width - scale * (double)columns) / 2;
    for (int64_t h = 0; h < rows; h++)
        for (int64_t w = 0; w < columns; w++) {
            int64_t y = (int64_t)(top + scale * ((double)h + 0.5)), x = (int64_t)(left + scale * ((double)w + 0.5));
            if (y >= mask->height) y = mask->height - 1;
            if (x >= mask->width) x = mask->width - 1;
            int value = mask->pixels[y * mask->width + x];
            if (value != MASK_IGNORED && value >= r->dataset->class_count)
                return sdlf_fail(SDLF_ERROR_FORMAT,
                                 "%s/%s: pixel (%" PRId64 ",%" PRId64 "): expected one of %d classes, or %d, found %d",
                                 r->folder, r->pairs->pair[i].mask->path, y, x, r->dataset->class_count, MASK_IGNORED,
                                 value);
            labels[h * columns + w] = value == MASK_IGNORED ? -1 : value;
        }
    return SDLF_OK;
}

static void note(reading *r, int64_t i, sdlf_status status)
{
    if (r->failures++ > 0 && r->failed < i) return;
    r->failed = i;
    r->status = status;
    snprintf(r->message, sizeof r->message, "%s", sdlf_error_message()); /* that thread's */
}

static void read_sample(void *context, int64_t i)
{
    reading *r = context;
    sdlf_shape sample = sdlf_shape_without(r->dataset->samples.shape, 0);
    int64_t size = sdlf_shape_count(sample), area = sample.dim[1] * sample.dim[2];
    sdlf_image picture = {0}, mask = {0};
    sdlf_status status = read_pair(r, i, &picture, &mask);
    if (status == SDLF_OK)
        status = folder_fill_sample((uint8_t *)r->dataset->samples.data + i * size, &picture, sample, NULL);
    if (status == SDLF_OK) status = fill_labels((int32_t *)r->dataset->labels.data + i * area, r, i, &mask);
    bool fatal = r->options->strict || status == SDLF_ERROR_MEMORY || status == SDLF_ERROR_SHAPE;
    sdlf_image_release(&picture);
    sdlf_image_release(&mask);
    r->is_read[i] = status == SDLF_OK;
    if (status != SDLF_OK && !fatal && !unread_note(&r->unread, i)) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", r->folder);
        fatal = true;
    }
    pthread_mutex_lock(&r->lock);
    if (fatal && status != SDLF_OK) note(r, i, status);
    r->done++;
    if (r->options->progress != NULL) r->options->progress(r->options->progress_context, r->done, r->pairs->count);
    pthread_mutex_unlock(&r->lock);
}

/* Close the gaps that pictures leave which were not read. */
static sdlf_status close_gaps(reading *r)
{
    sdlf_dataset *dataset = r->dataset;
    sdlf_shape shape = dataset->samples.shape;
    size_t size = (size_t)sdlf_shape_span(shape, 1, 4), labels = (size_t)(shape.dim[2] * shape.dim[3]);
    int64_t kept = 0;
    for (int64_t i = 0; i < r->pairs->count; i++) {
        if (!r->is_read[i]) continue;
        memmove((uint8_t *)dataset->samples.data + (size_t)kept * size,
                (uint8_t *)dataset->samples.data + (size_t)i * size, size);
        memmove((int32_t *)dataset->labels.data + (size_t)kept * labels,
                (int32_t *)dataset->labels.data + (size_t)i * labels, labels * sizeof(int32_t));
        kept++;
    }
    dataset->samples.shape.dim[0] = dataset->labels.shape.dim[0] = kept;
    if (kept > 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "none of %" PRId64 " pictures can be read; %s", r->pairs->count,
                     unread_first(&r->unread));
}

static sdlf_status read_all(sdlf_dataset *dataset, const char *folder, const mask_pairs *pairs,
                            const sdlf_dataset_options *options)
{
    reading r = {.folder = folder, .pairs = pairs, .options = options, .dataset = dataset};
    sdlf_status status = read_tensor_create(&dataset->samples, SDLF_UINT8, dataset->samples.shape, folder);
    if (status == SDLF_OK) status = read_tensor_create(&dataset->labels, SDLF_INT32, dataset->labels.shape, folder);
    if (status != SDLF_OK) return status;
    r.is_read = calloc((size_t)pairs->count, sizeof *r.is_read);
    if (r.is_read == NULL || !unread_begin(&r.unread, pairs->count) || pthread_mutex_init(&r.lock, NULL) != 0) {
        unread_release(&r.unread);
        free(r.is_read);
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    }
    parallel_for(pairs->count, options->threads, read_sample, &r);
    pthread_mutex_destroy(&r.lock);
    status = r.failures > 0 ? sdlf_fail(r.status, "%s", r.message) : close_gaps(&r);
    free(r.is_read);
    unread_give(&r.unread, dataset);
    unread_release(&r.unread);
    return status;
}

/* ---- the class ---- */

static sdlf_status check_options(const char *argument, const sdlf_dataset_options *options)
{
    bool sized = options->height > 0;
    if (argument == NULL || *argument == '\0')
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "segmentation: expected segmentation:DIR, a folder with images and masks");
    if (options->height < 0 || options->width < 0 || sized != (options->width > 0) || options->height > LARGEST_SIDE ||
        options->width > LARGEST_SIDE)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "segmentation: samples of %dx%d pixels: expected 1 to %d both ways",
                         options->height, options->width, LARGEST_SIDE);
    if (options->channels == 0 || options->channels == 1 || options->channels == COLOURS) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "segmentation: pictures have 1 channel or 3, and %d are wanted",
                     options->channels);
}

/* The size that is asked for, or that of the first picture which can be read. */
static sdlf_status find_size(int64_t side[2], const char *folder, const mask_pairs *pairs,
                             const sdlf_dataset_options *options)
{
    sdlf_status status = SDLF_OK;
    side[0] = options->height;
    side[1] = options->width;
    for (int64_t i = 0; side[0] == 0 && i < pairs->count; i++) {
        sdlf_image picture = {0};
        status = folder_read_picture(&picture, folder, pairs->pair[i].picture);
        side[0] = picture.height;
        side[1] = picture.width;
        sdlf_image_release(&picture);
        if (status == SDLF_ERROR_MEMORY) return status;
    }
    return side[0] > 0 ? SDLF_OK : status;
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    mask_pairs pairs = {.count = 0};
    int64_t side[2], channels = options->channels > 0 ? options->channels : COLOURS;
    sdlf_status status = check_options(argument, options);
    if (status == SDLF_OK) status = sdlf_dataset_name(dataset, "segmentation", argument);
    if (status == SDLF_OK) status = mask_classes(dataset, argument, options->threads);
    if (status == SDLF_OK) status = mask_pairs_list(&pairs, argument, split);
    if (status == SDLF_OK) status = find_size(side, argument, &pairs, options);
    if (status == SDLF_OK) {
        dataset->fit = SDLF_FIT_CROP;
        dataset->samples = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(pairs.count, channels, side[0], side[1]), NULL);
        dataset->labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(pairs.count, side[0], side[1]), NULL);
        if (!options->outline) status = read_all(dataset, argument, &pairs, options);
        if (status == SDLF_OK && !options->outline) sdlf_dataset_measure(dataset);
    }
    mask_pairs_release(&pairs);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    mask_pairs pairs = {.count = 0};
    sdlf_status status = check_options(argument, &(sdlf_dataset_options){0});
    if (status == SDLF_OK) status = mask_pairs_list(&pairs, argument, split);
    mask_pairs_release(&pairs);
    return status;
}

const sdlf_dataset_class sdlf_segmentation_dataset_class = {
    .name = "segmentation",
    .summary = "segmentation:DIR, pictures and a label for each pixel: DIR/images/1.jpg and the grey DIR/masks/1.png, "
               "or in DIR/train/... and DIR/test/...",
    .load = load,
    .check = check,
};
