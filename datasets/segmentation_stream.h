/* SPDX-License-Identifier: MIT */
/* Pairs of a picture and its mask as samples, read when they are needed, with a bounded cache of those that were read first. */
#ifndef SDLF_DATASETS_SEGMENTATION_STREAM_H
#define SDLF_DATASETS_SEGMENTATION_STREAM_H

#include <sdlf/image.h>

#include "datasets/sample_cache.h"
#include "datasets/segmentation.h"

typedef struct mask_stream {
    char *folder; /* owned, with all that follows */
    mask_pairs pairs;
    sdlf_shape shape; /* of a sample (C,H,W) */
    bool any_size;    /* pictures of another size are scaled */
    int class_count;
    sample_cache cache; /* of pictures (C,H,W) with their masks (H,W) behind */
} mask_stream;

/* A stream of these pairs, which it takes over, without a cache. *stream is the caller's also after a failure. Errors: SDLF_ERROR_MEMORY. */
sdlf_status mask_stream_create(mask_stream **stream, const char *folder, mask_pairs *pairs, sdlf_shape shape);
void mask_stream_free(void *stream);

/* Bytes of a picture with its mask. */
int64_t mask_stream_size(const mask_stream *stream);

/* Picture and mask from their files, which must fit together, and whose size is kept. Errors: those of reading; SDLF_ERROR_SHAPE, of another size
 * than the others. */
sdlf_status mask_stream_decode(mask_stream *stream, int64_t pair, uint8_t *to);

/* Leave out the pairs whose flag is false. */
void mask_stream_close_gaps(mask_stream *stream, const bool *is_read);

/* What bytes of a mask are as labels. */
void mask_labels(int32_t *labels, const uint8_t *mask, int64_t count);

/* As sdlf_sample_part_reader (NULL: all), and as sdlf_sample_readers of samples and of labels, once the pair has been decoded. Errors name the
 * files: also SDLF_ERROR_FORMAT, of another size than then. */
sdlf_status mask_stream_read_part(void *stream, int64_t pair, const sdlf_sample_part *part, void *sample);
sdlf_status mask_stream_read(void *stream, int64_t pair, void *sample);
sdlf_status mask_stream_read_labels(void *stream, int64_t pair, void *labels);

#endif
