/* SPDX-License-Identifier: MIT */
/* Pictures that are read when they are needed. See folder_stream.h. */
#include "datasets/folder_stream.h"

#include <stdlib.h>
#include <string.h>

#include "framework/formats/budget.h"

sdlf_status folder_stream_create(folder_stream **stream, const char *folder, folder_files *files, sdlf_shape shape,
                                 int64_t cache)
{
    int64_t room = cache / sdlf_shape_count(shape);
    if (room > files->count) room = files->count;
    folder_stream *made = calloc(1, sizeof *made);
    *stream = made;
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    made->shape = shape;
    made->folder = strdup(folder);
    made->kept = calloc((size_t)files->count, sizeof *made->kept);
    if (made->folder == NULL || made->kept == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    if (room > 0) {
        sdlf_status status = read_tensor_create(&made->cache, SDLF_UINT8,
                                                sdlf_shape(room, shape.dim[0], shape.dim[1], shape.dim[2]), folder);
        if (status != SDLF_OK) return status;
    }
    made->files = *files;
    *files = (folder_files){.count = 0};
    return SDLF_OK;
}

void folder_stream_free(void *context)
{
    folder_stream *stream = context;
    if (stream == NULL) return;
    folder_files_release(&stream->files);
    sdlf_tensor_release(&stream->cache, NULL);
    free(stream->kept);
    free(stream->folder);
    free(stream);
}

void folder_stream_keep(folder_stream *stream, int64_t picture, const uint8_t *sample)
{
    int64_t room = sdlf_tensor_present(&stream->cache) ? stream->cache.shape.dim[0] : 0;
    if (atomic_load(&stream->used) >= room || atomic_load(&stream->kept[picture]) != NULL) return;
    int64_t place = atomic_fetch_add(&stream->used, 1);
    if (place >= room) return;
    int64_t size = sdlf_shape_count(stream->shape);
    uint8_t *to = (uint8_t *)stream->cache.data + place * size;
    memcpy(to, sample, (size_t)size);
    atomic_store(&stream->kept[picture], to);
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
        files->file[kept] = files->file[i];
        atomic_store(&stream->kept[kept], atomic_load(&stream->kept[i]));
        kept++;
    }
    files->count = kept;
}

sdlf_status folder_stream_read_part(void *context, int64_t picture, const sdlf_sample_part *part, void *sample)
{
    folder_stream *stream = context;
    const uint8_t *kept = atomic_load(&stream->kept[picture]);
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
