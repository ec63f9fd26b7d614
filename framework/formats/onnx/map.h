/* SPDX-License-Identifier: MIT */
/* A file that is read on demand into memory of our own.
 *
 * It is not mapped: a process that reads a page of a mapped file which another program has truncated is killed by
 * SIGBUS, which no prior check rules out and which a library must not catch. Instead, address space for the whole file
 * is reserved, which takes no memory, and pieces of it are read (pread) before they are accessed: a file that has
 * become shorter is an error like any other. Large contents, the elements of weights, are not read into that space at
 * all, but directly to their destination. */
#ifndef SDLF_FORMATS_ONNX_MAP_H
#define SDLF_FORMATS_ONNX_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/status.h>

#include "framework/formats/file_stamp.h"

typedef struct onnx_map {
    uint8_t *bytes; /* address space for the file: what was read, zeros elsewhere; NULL: an empty file */
    uint64_t size;
    int descriptor;
    uint8_t *there; /* one per piece: whether it has been read */
    char *path;
    file_stamp stamp; /* when it was opened */
    bool failed;      /* something could not be read: */
    int error;        /* the system's reason; 0: the file has become shorter */
} onnx_map;

/* Opens a regular file. Errors: SDLF_ERROR_IO with the path and the system's reason; SDLF_ERROR_MEMORY. */
sdlf_status onnx_map_open(onnx_map *map, const char *path);
void onnx_map_close(onnx_map *map);

/* Makes [at, at + size), which lies inside, available in place. Errors: SDLF_ERROR_IO if it cannot be read, or the file
 * has become shorter. */
sdlf_status onnx_map_need(onnx_map *map, const void *at, uint64_t size);

/* Reads [at, at + size) to `out` instead. */
sdlf_status onnx_map_read(onnx_map *map, const void *at, uint64_t size, void *out);

/* Releases the memory of what was read; it is read again when needed. */
void onnx_map_forget(onnx_map *map);

/* SDLF_ERROR_IO if any read has failed so far, for callers that could not report it at once, or if the file has been
 * written to since it was opened: what was read may then be neither the old file nor the new one. */
sdlf_status onnx_map_check(const onnx_map *map);

#endif
