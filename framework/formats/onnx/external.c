/* SPDX-License-Identifier: MIT */
/* Tensors in files beside the model's. The location that a model names must be inside the model's own folder: absolute
 * paths, ".." and links that leave it are rejected. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/tensor.h"

typedef struct onnx_external {
    struct onnx_external *next;
    char *location;
    onnx_map map;
} onnx_external;

void onnx_folder_release(onnx_folder *folder)
{
    while (folder->files != NULL) {
        onnx_external *file = folder->files;
        folder->files = file->next;
        onnx_map_close(&file->map);
        free(file->location);
        free(file);
    }
}

int64_t onnx_folder_bytes(const onnx_folder *folder)
{
    uint64_t bytes = 0;
    for (const onnx_external *file = folder->files; file != NULL; file = file->next) {
        if (file->map.size > (uint64_t)INT64_MAX - bytes) return INT64_MAX;
        bytes += file->map.size;
    }
    return (int64_t)bytes;
}

sdlf_status onnx_folder_check(const onnx_folder *folder)
{
    for (const onnx_external *file = folder->files; file != NULL; file = file->next) {
        sdlf_status status = onnx_map_check(&file->map);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static bool climbs(const char *location)
{
    for (const char *part = location; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') return true;
        part += length + (part[length] == '/');
    }
    return false;
}

/* Resolves the file's real path, if it lies in the folder. */
static sdlf_status resolve(const char *folder, const char *location, char **path)
{
    *path = NULL;
    if (location[0] == '\0' || location[0] == '/' || climbs(location))
        return sdlf_fail(SDLF_ERROR_FORMAT, "external data at '%s': expected a path inside the model's folder",
                         location);
    size_t size = strlen(folder) + strlen(location) + 2;
    char *joined = malloc(size), *home = realpath(folder, NULL);
    sdlf_status status = SDLF_OK;
    if (joined == NULL) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "external data: out of memory");
    } else if (home == NULL) {
        status = sdlf_fail(SDLF_ERROR_IO, "external data: the folder '%s' cannot be inspected", folder);
    } else {
        snprintf(joined, size, "%s/%s", folder, location);
        *path = realpath(joined, NULL);
        size_t length = strlen(home);
        while (length > 1 && home[length - 1] == '/') length--;
        if (*path == NULL)
            status = sdlf_fail(SDLF_ERROR_IO, "external data: there is no file '%s'", joined);
        else if (strncmp(*path, home, length) != 0 || (length > 1 && (*path)[length] != '/'))
            status = sdlf_fail(SDLF_ERROR_FORMAT, "external data at '%s' lead out of the model's folder", location);
    }
    free(joined);
    free(home);
    if (status == SDLF_OK) return SDLF_OK;
    free(*path);
    *path = NULL;
    return status;
}

static sdlf_status open_file(onnx_folder *folder, const char *location, onnx_external **file)
{
    for (*file = folder->files; *file != NULL; *file = (*file)->next)
        if (strcmp((*file)->location, location) == 0) return SDLF_OK;
    char *path;
    sdlf_status status = resolve(folder->path, location, &path);
    if (status != SDLF_OK) return status;
    onnx_external *made = calloc(1, sizeof *made);
    char *copy = strdup(location);
    if (made == NULL || copy == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "external data: out of memory");
    else
        status = onnx_map_open(&made->map, path);
    free(path);
    if (status != SDLF_OK) {
        free(made);
        free(copy);
        return status;
    }
    made->location = copy;
    made->next = folder->files;
    folder->files = made;
    *file = made;
    return SDLF_OK;
}

sdlf_status onnx_external_find(onnx_folder *folder, const wire_reader *reader, const char *location, uint64_t offset,
                               uint64_t size, onnx_tensor *tensor)
{
    if (folder == NULL || folder->path == NULL)
        return wire_fail(reader, reader->at, "external data '%s', which only a model in a file may have", location);
    onnx_external *file;
    sdlf_status status = open_file(folder, location, &file);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", reader->path);
    if (offset > file->map.size || size > file->map.size - offset)
        return wire_fail(reader, reader->at,
                         "bytes %" PRIu64 " to %" PRIu64 " of '%s' were expected, which has %" PRIu64, offset,
                         offset + size, location, file->map.size);
    tensor->data = size > 0 ? (const void *)(file->map.bytes + offset) : "";
    tensor->map = size > 0 ? &file->map : NULL;
    return SDLF_OK;
}
