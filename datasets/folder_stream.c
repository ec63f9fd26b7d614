/* SPDX-License-Identifier: MIT */
/* Images that are read on demand. See folder_stream.h. */
#include "datasets/folder_stream.h"

#include <stdlib.h>
#include <string.h>

sdlf_status folder_stream_create(folder_stream **stream, const char *folder, folder_files *files, sdlf_shape shape,
                                 int64_t cache)
{
    folder_stream *made = calloc(1, sizeof *made);
    *stream = made;
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    made->shape = shape;
    made->folder = strdup(folder);
    if (made->folder == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    sdlf_status status = sample_cache_create(&made->cache, folder, files->count, sdlf_shape_count(shape), cache);
    if (status != SDLF_OK) return status;
    made->files = *files;
    *files = (folder_files){.count = 0};
    return SDLF_OK;
}

void folder_stream_free(void *context)
{
    folder_stream *stream = context;
    if (stream == NULL) return;
    folder_files_release(&stream->files);
    sample_cache_release(&stream->cache);
    free(stream->folder);
    free(stream);
}

void folder_stream_close_gaps(folder_stream *stream, const bool *is_read)
{
    folder_files *files = &stream->files;
    int64_t kept = 0;
    for (int64_t i = 0; i < files->count; i++) {
        if (!is_read[i]) {
            free(files->file[i].path);
            continue;
        }
        files->file[kept++] = files->file[i];
    }
    sample_cache_close_gaps(&stream->cache, is_read, files->count);
    files->count = kept;
}

sdlf_status folder_stream_read_part(void *context, int64_t picture, const sdlf_sample_part *part, void *sample)
{
    folder_stream *stream = context;
    const uint8_t *kept = sample_cache_find(&stream->cache, picture);
    if (kept != NULL) {
        memcpy(sample, kept, (size_t)sdlf_shape_count(stream->shape));
        return SDLF_OK;
    }
    sdlf_image image = {0};
    sdlf_status status = folder_read_picture(&image, stream->folder, &stream->files.file[picture]);
    if (status == SDLF_OK) status = folder_fill_sample(sample, &image, stream->shape, part);
    sdlf_image_release(&image);
    return sdlf_fail_context(status, "%s, which could be read when the data set was opened", stream->folder);
}

sdlf_status folder_stream_read(void *context, int64_t picture, void *sample)
{
    return folder_stream_read_part(context, picture, NULL, sample);
}
