/* SPDX-License-Identifier: MIT */
/* A file that is read where and when it is wanted, into memory of our own.
 *
 * It is not mapped: who reads a page of a mapped file that another program has cut off meanwhile is killed by SIGBUS,
 * which no check beforehand rules out and which a library has no business to catch. Here room for the whole file is
 * reserved, which takes no memory, and pieces of it are read (pread) before somebody looks at them: a file that has
 * become shorter is an error like any other. What is large, the elements of weights, is not even read into that room,
 * but straight to where it belongs. */
#ifndef SDLF_FORMATS_ONNX_MAP_H
#define SDLF_FORMATS_ONNX_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/status.h>

#include "framework/formats/file_stamp.h"

typedef struct onnx_map {
    uint8_t *bytes; /* room for the file: what was read, zeros elsewhere; NULL: an empty file */
    uint64_t size;
    int descriptor;
    uint8_t *there; /* one for each piece: has it been read? */
    char *path;
    file_stamp stamp; /* as it was opened */
    bool failed;      /* something could not be read: */
    int error;        /* the system's reason; 0: the file has become shorter */
} onnx_map;

/* Open a regular file. Errors: SDLF_ERROR_IO with the path and the system's reason; SDLF_ERROR_MEMORY. */
sdlf_status onnx_map_open(onnx_map *map, const char *path);
void onnx_map_close(onnx_map *map);

/* Have [at, at + size), which lies inside, in its place. Errors: SDLF_ERROR_IO where that cannot be read, or the file
 * has become shorter. */
sdlf_status onnx_map_need(onnx_map *map, const void *at, uint64_t size);

/* Read [at, at + size) to `out` instead. */
sdlf_status onnx_map_read(onnx_map *map, const void *at, uint64_t size, void *out);

/* Give back the memory of what was read; what is needed again is read again. */
void onnx_map_forget(onnx_map *map);

/* SDLF_ERROR_IO if anything could not be read so far, for those who could not say so at once, or if somebody has
 * written to the file since it was opened: what was read may then be neither the old file nor the new one. */
sdlf_status onnx_map_check(const onnx_map *map);

#endif
