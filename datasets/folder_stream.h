/* SPDX-License-Identifier: MIT */
/* The images of a folder, read on demand, with a bounded cache of those that were read first. */
#ifndef SDLF_DATASETS_FOLDER_STREAM_H
#define SDLF_DATASETS_FOLDER_STREAM_H

#include <sdlf/dataset.h>
#include <sdlf/image.h>

#include "datasets/folder_files.h"
#include "datasets/sample_cache.h"

typedef struct folder_stream {
    char *folder; /* owned, as are all members below */
    folder_files files;
    sdlf_shape shape; /* of a sample (C,H,W) */
    sample_cache cache;
} folder_stream;

/* Takes ownership of the files. `cache`: bytes for samples. The caller owns *stream even after a failure. Errors: SDLF_ERROR_MEMORY. */
sdlf_status folder_stream_create(folder_stream **stream, const char *folder, folder_files *files, sdlf_shape shape,
                                 int64_t cache);
void folder_stream_free(void *stream);

/* Removes the images whose flag is false. */
void folder_stream_close_gaps(folder_stream *stream, const bool *is_read);

/* An sdlf_sample_part_reader (NULL: all). Errors: those of reading the image, which name its file. */
sdlf_status folder_stream_read_part(void *stream, int64_t picture, const sdlf_sample_part *part, void *sample);
/* An sdlf_sample_reader. */
sdlf_status folder_stream_read(void *stream, int64_t picture, void *sample);

/* ---- one image (folder_picture.c) ---- */

sdlf_status folder_read_picture(sdlf_image *picture, const char *folder, const folder_file *file);

/* Reads an image whose values are class numbers: for a palette image, its indices. */
sdlf_status folder_read_mask(sdlf_image *mask, const char *folder, const folder_file *file);

/* Crops the centre of the image to the aspect ratio of the sample (C,H,W) and scales it to that size; writes only the part (NULL: all).
 * Errors: SDLF_ERROR_MEMORY. */
sdlf_status folder_fill_sample(uint8_t *sample, const sdlf_image *picture, sdlf_shape shape,
                               const sdlf_sample_part *part);

#endif
