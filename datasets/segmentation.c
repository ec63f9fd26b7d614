/* SPDX-License-Identifier: MIT */
/* segmentation: images with a label per pixel, given by the same pixel of a mask: a grey image of the same size, or a PNG with a palette,
 * whose indices are the labels (its colours are ignored).
 *
 *     DIR/images/1.jpg, DIR/masks/1.png, ...                    about every fifth image is for testing
 *     DIR/train/images/1.jpg, DIR/train/masks/1.png, DIR/test/images/..., DIR/test/masks/...
 *
 * An image's mask has the same name, except for the extension. Value 255 marks ignored pixels, label -1. DIR/classes.txt names the classes,
 * one a line; without it there are as many as the largest value needs. Images and masks are cropped and scaled alike, masks by nearest
 * neighbour. Images that cannot be read are skipped and counted, or, on request, refused. If the cache (sdlf_dataset_options.cache) is
 * smaller than all samples and labels, they are read once when the set is opened, and again whenever one is needed that is not cached. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/machine.h>

#include "datasets/datasets_internal.h"
#include "datasets/folder_stream.h"
#include "datasets/segmentation_stream.h"
#include "datasets/unread.h"
#include "framework/formats/budget.h"
#include "framework/formats/text.h"
#include "framework/parallel.h"

enum { COLOURS = 3, LARGEST_SIDE = 65535, MESSAGE_SIZE = 512 };

/* ---- reading ---- */

typedef struct reading {
    mask_stream *stream;
    const sdlf_dataset_options *options;
    sdlf_dataset *dataset; /* receives samples and labels, unless they are cached */
    bool streams;
    bool *is_read;
    unread_files unread;
    pthread_mutex_t lock; /* guards what follows: the first failure that is not skipped, in the order of the pairs */
    int64_t failed, failures, done;
    sdlf_status status;
    char message[MESSAGE_SIZE];
    dataset_sums sums;
} reading;

static void note(reading *r, int64_t i, sdlf_status status)
{
    if (r->failures++ > 0 && r->failed < i) return;
    r->failed = i;
    r->status = status;
    snprintf(r->message, sizeof r->message, "%s", sdlf_error_message()); /* this thread's */
}

/* Store an image with its mask in the data set's memory or in the cache. */
static void put_sample(reading *r, int64_t i, const uint8_t *sample)
{
    int64_t size = sdlf_shape_count(r->stream->shape), area = size / r->stream->shape.dim[0];
    if (r->streams) {
        sample_cache_keep(&r->stream->cache, i, sample);
        return;
    }
    memcpy((uint8_t *)r->dataset->samples.data + i * size, sample, (size_t)size);
    mask_labels((int32_t *)r->dataset->labels.data + i * area, sample + size, area);
}

static void read_sample(void *context, int64_t i)
{
    reading *r = context;
    mask_stream *stream = r->stream;
    dataset_sums sums = {.count = 0};
    uint8_t *sample = malloc((size_t)mask_stream_size(stream));
    sdlf_status status = sample != NULL ? mask_stream_decode(stream, i, sample)
                                        : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", stream->folder);
    bool fatal = r->options->strict || status == SDLF_ERROR_MEMORY || status == SDLF_ERROR_SHAPE;
    if (status == SDLF_OK) {
        put_sample(r, i, sample);
        sdlf_dataset_add_sums(&sums, sample, (int)stream->shape.dim[0], stream->shape.dim[1] * stream->shape.dim[2]);
    }
    free(sample);
    r->is_read[i] = status == SDLF_OK;
    if (status != SDLF_OK && !fatal && !unread_note(&r->unread, i)) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", stream->folder);
        fatal = true;
    }
    pthread_mutex_lock(&r->lock);
    if (fatal && status != SDLF_OK) note(r, i, status);
    sdlf_dataset_join_sums(&r->sums, &sums);
    r->done++;
    if (r->options->progress != NULL) r->options->progress(r->options->progress_context, r->done, stream->pairs.count);
    pthread_mutex_unlock(&r->lock);
}

/* Close the gaps left by images that were not read. */
static sdlf_status close_gaps(reading *r)
{
    sdlf_dataset *dataset = r->dataset;
    sdlf_shape shape = dataset->samples.shape;
    size_t size = (size_t)sdlf_shape_span(shape, 1, 4), labels = (size_t)(shape.dim[2] * shape.dim[3]);
    int64_t kept = 0, count = r->stream->pairs.count;
    for (int64_t i = 0; i < count; i++) {
        if (!r->is_read[i]) continue;
        if (!r->streams) {
            memmove((uint8_t *)dataset->samples.data + (size_t)kept * size,
                    (uint8_t *)dataset->samples.data + (size_t)i * size, size);
            memmove((int32_t *)dataset->labels.data + (size_t)kept * labels,
                    (int32_t *)dataset->labels.data + (size_t)i * labels, labels * sizeof(int32_t));
        }
        kept++;
    }
    mask_stream_close_gaps(r->stream, r->is_read);
    dataset->samples.shape.dim[0] = dataset->labels.shape.dim[0] = kept;
    if (kept > 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "none of %" PRId64 " pictures can be read; %s", count,
                     unread_first(&r->unread));
}

static sdlf_status make_room(reading *r)
{
    sdlf_dataset *dataset = r->dataset;
    const char *folder = r->stream->folder;
    int64_t count = r->stream->pairs.count;
    if (r->streams)
        return sample_cache_create(&r->stream->cache, folder, count, mask_stream_size(r->stream), r->options->cache);
    sdlf_status status = read_tensor_create(&dataset->samples, SDLF_UINT8, dataset->samples.shape, folder);
    return status == SDLF_OK ? read_tensor_create(&dataset->labels, SDLF_INT32, dataset->labels.shape, folder) : status;
}

static sdlf_status read_all(sdlf_dataset *dataset, mask_stream *stream, const sdlf_dataset_options *options)
{
    int64_t bytes = sdlf_tensor_bytes(&dataset->samples) + sdlf_tensor_bytes(&dataset->labels);
    reading r = {.stream = stream,
                 .options = options,
                 .dataset = dataset,
                 .streams = options->cache > 0 && options->cache < bytes};
    sdlf_status status = make_room(&r);
    if (status != SDLF_OK) return status;
    r.is_read = calloc((size_t)stream->pairs.count, sizeof *r.is_read);
    if (r.is_read == NULL || !unread_begin(&r.unread, stream->pairs.count) || pthread_mutex_init(&r.lock, NULL) != 0) {
        unread_release(&r.unread);
        free(r.is_read);
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", stream->folder);
    }
    parallel_for(stream->pairs.count, options->threads, read_sample, &r);
    pthread_mutex_destroy(&r.lock);
    status = r.failures > 0 ? sdlf_fail(r.status, "%s", r.message) : close_gaps(&r);
    free(r.is_read);
    unread_give(&r.unread, dataset);
    unread_release(&r.unread);
    if (status == SDLF_OK) sdlf_dataset_measure_sums(dataset, &r.sums);
    if (status != SDLF_OK || !r.streams) return status;
    dataset->read = mask_stream_read;
    dataset->read_part = mask_stream_read_part;
    dataset->read_labels = mask_stream_read_labels;
    dataset->read_context = stream;
    dataset->free_context = mask_stream_free;
    dataset->readers = options->threads > 0 ? options->threads : (int)sdlf_machine_processors();
    return SDLF_OK;
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
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "segmentation: expected 1 channel or 3, found %d", options->channels);
}

/* The requested size, or that of the first image that can be read. */
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
        mask_stream *stream = NULL;
        dataset->fit = SDLF_FIT_CROP;
        dataset->samples = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(pairs.count, channels, side[0], side[1]), NULL);
        dataset->labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(pairs.count, side[0], side[1]), NULL);
        status = mask_stream_create(&stream, argument, &pairs, sdlf_shape(channels, side[0], side[1]));
        if (status == SDLF_OK) {
            stream->any_size = options->height > 0;
            stream->class_count = dataset->class_count;
        }
        if (status == SDLF_OK && !options->outline) status = read_all(dataset, stream, options);
        if (dataset->read_context == NULL) mask_stream_free(stream);
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
