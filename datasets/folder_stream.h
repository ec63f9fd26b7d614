/* SPDX-License-Identifier: MIT */
/* The pictures of a folder, read when they are needed, with a bounded cache of those that were read first. */
#ifndef SDLF_DATASETS_FOLDER_STREAM_H
#define SDLF_DATASETS_FOLDER_STREAM_H

#include <sdlf/dataset.h>
#include <sdlf/image.h>

#include "datasets/folder_files.h"
#include "datasets/sample_cache.h"

typedef struct folder_stream {
    char *folder; /* owned, with all that follows */
    folder_files files;
    sdlf_shape shape; /* of a sample (C,H,W) */
    sample_cache cache;
} folder_stream;

/* Take over the files. `cache`: bytes for samples. *stream is the caller's also after a failure. Errors: SDLF_ERROR_MEMORY. */
sdlf_status folder_stream_create(folder_stream **stream, const char *folder, folder_files *files, sdlf_shape shape,
                                 int64_t cache);
void folder_stream_free(void *stream);

/* Leave out the pictures whose flag is false. */
void folder_stream_close_gaps(folder_stream *stream, const bool *is_read);

/* A sdlf_sample_part_reader (NULL: all). Errors: those of reading the picture, which name its file. */
sdlf_status folder_stream_read_part(void *stream, int64_t picture, const sdlf_sample_part *part, void *sample);
/* A sdlf_sample_reader. */
sdlf_status folder_stream_read(void *stream, int64_t picture, void *sample);

/* ---- one picture (folder_picture.c) ---- */

sdlf_status folder_read_picture(sdlf_image *picture, const char *folder, const folder_file *file);

/* A picture whose values are numbers: of a palette its indices. */
sdlf_status folder_read_mask(sdlf_image *mask, const char *folder, const folder_file *file);

/* The middle of the picture in the proportions of the sample (C,H,W), scaled to its size; of it the part (NULL: all). Errors:
 * SDLF_ERROR_MEMORY. */
sdlf_status folder_fill_sample(uint8_t *sample, const sdlf_image *picture, sdlf_shape shape,
                               const sdlf_sample_part *part);

#endif
