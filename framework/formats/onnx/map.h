/* Files mapped into memory, to be read where they lie. */
#ifndef SDLF_FORMATS_ONNX_MAP_H
#define SDLF_FORMATS_ONNX_MAP_H

#include <stdint.h>

#include <sdlf/status.h>

typedef struct onnx_map {
    const uint8_t *bytes; /* NULL: an empty file */
    uint64_t size;
} onnx_map;

/* Map a regular file for reading. Errors: SDLF_ERROR_IO with the path and the system's reason. */
sdlf_status onnx_map_open(onnx_map *map, const char *path);
void onnx_map_close(onnx_map *map);

/* The pages of [bytes, bytes + size) have been read and will not be soon again: the system may drop them. */
void onnx_map_done(const void *bytes, uint64_t size);

#endif
