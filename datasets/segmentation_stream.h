/* SPDX-License-Identifier: MIT */
/* Pairs of an image and its mask as samples, read on demand, with a bounded cache of those that were read first. */
#ifndef SDLF_DATASETS_SEGMENTATION_STREAM_H
#define SDLF_DATASETS_SEGMENTATION_STREAM_H

#include <sdlf/image.h>

#include "datasets/sample_cache.h"
#include "datasets/segmentation.h"

typedef struct mask_stream {
    char *folder; /* owned, as are all members below */
    mask_pairs pairs;
    sdlf_shape shape; /* of a sample (C,H,W) */
    bool any_size;    /* images of other sizes are scaled */
    int class_count;
    sample_cache cache; /* of images (C,H,W), each followed by its mask (H,W) */
} mask_stream;

/* Creates a stream without a cache; takes ownership of the pairs. The caller owns *stream even after a failure. Errors: SDLF_ERROR_MEMORY. */
sdlf_status mask_stream_create(mask_stream **stream, const char *folder, mask_pairs *pairs, sdlf_shape shape);
void mask_stream_free(void *stream);

/* Bytes of an image with its mask. */
int64_t mask_stream_size(const mask_stream *stream);

/* Reads an image and its mask, which must have the same size, and records that size. Errors: those of reading; SDLF_ERROR_SHAPE if the size
 * differs from the other images'. */
sdlf_status mask_stream_decode(mask_stream *stream, int64_t pair, uint8_t *to);

/* Removes the pairs whose flag is false. */
void mask_stream_close_gaps(mask_stream *stream, const bool *is_read);

/* Converts mask bytes to labels. */
void mask_labels(int32_t *labels, const uint8_t *mask, int64_t count);

/* An sdlf_sample_part_reader (NULL: all), and sdlf_sample_readers of samples and of labels, for pairs that have been decoded before. Errors name
 * the files; SDLF_ERROR_FORMAT if a size has changed since. */
sdlf_status mask_stream_read_part(void *stream, int64_t pair, const sdlf_sample_part *part, void *sample);
sdlf_status mask_stream_read(void *stream, int64_t pair, void *sample);
sdlf_status mask_stream_read_labels(void *stream, int64_t pair, void *labels);

#endif
