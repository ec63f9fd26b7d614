/* SPDX-License-Identifier: MIT */
/* safetensors files: named tensors with text metadata. The meaning of the tensors is defined in weights.h.
 *
 * Layout: 8 bytes, the header's length L, little endian; L bytes of JSON; then the data. The JSON is one object:
 *     { "__metadata__": {"key": "text", ...}, "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ... }
 * with offsets into the data. Tensors are row-major and little endian; together they cover the data without gaps or
 * overlaps. The format is that of https://github.com/huggingface/safetensors; its library reads files written here, and
 * vice versa. */
#ifndef SDLF_FORMATS_SAFETENSORS_H
#define SDLF_FORMATS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <sdlf/tensor.h>

#include "framework/formats/file_stamp.h"

/* The maximum header length, the same as in the format's own library. */
#define SAFETENSORS_MAX_HEADER 100000000

typedef struct safetensors_entry {
    const char *name;       /* the header's */
    const char *dtype_name; /* as in the file: "F32"; static storage */
    sdlf_dtype dtype;       /* SDLF_NONE: SDLF has no such type */
    sdlf_shape shape;
    uint64_t begin, end; /* bytes, from the start of the data */
} safetensors_entry;

typedef struct safetensors_header {
    json_t *json;               /* owned; entries point into it */
    safetensors_entry *entries; /* owned; in the order of their data */
    size_t count;
} safetensors_header;

/* Checks and parses the `length` bytes of a header whose file holds `data_size` bytes of data.
 * `path` is for messages. Errors: SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY; then there is nothing to
 * release. */
sdlf_status safetensors_header_parse(safetensors_header *header, const char *text, size_t length, uint64_t data_size,
                                     const char *path);
void safetensors_header_release(safetensors_header *header);

/* The metadata text for that key, or NULL. Owned by the header. */
const char *safetensors_metadata(const safetensors_header *header, const char *key);

/* ---- files ---- */

typedef struct safetensors_file {
    char *path; /* owned */
    int descriptor;
    const unsigned char *bytes; /* in memory instead, borrowed; NULL: in the file */
    uint64_t size;              /* of these */
    file_stamp stamp;           /* when it was opened */
    uint64_t data_start;
    safetensors_header header;
} safetensors_file;

/* Opens a file and checks its whole header. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY; then there is
 * nothing to close. */
sdlf_status safetensors_open(safetensors_file *file, const char *path);
/* The same from memory, which is borrowed until it is closed; `name` represents the path in messages. */
sdlf_status safetensors_open_memory(safetensors_file *file, const void *bytes, size_t size, const char *name);
void safetensors_close(safetensors_file *file);

/* SDLF_ERROR_IO if the file has been written to since it was opened: what was read may be neither the old nor the new
 * content. */
sdlf_status safetensors_check_unchanged(const safetensors_file *file);

/* Reads one tensor of floating type as float32 into `values`, sized for its shape; or elements first .. first + count -
 * 1 of it. */
sdlf_status safetensors_read_float32(const safetensors_file *file, const safetensors_entry *entry, float *values);
sdlf_status safetensors_read_part(const safetensors_file *file, const safetensors_entry *entry, uint64_t first,
                                  uint64_t count, float *values);

/* ---- writing ---- */

typedef struct safetensors_item {
    const char *name;   /* UTF-8 */
    sdlf_tensor tensor; /* in host memory, dense row-major */
} safetensors_item;

/* Writes a file of these tensors (the array is sorted in place: larger elements first, then by name, so that each
 * tensor is aligned to its element) and of this metadata (an object of strings; borrowed; may be NULL). The file is
 * replaced atomically: see atomic_file.h. Errors: SDLF_ERROR_IO, SDLF_ERROR_ARGUMENT (duplicate or non-UTF-8 names,
 * dtypes that the format lacks), SDLF_ERROR_MEMORY. */
sdlf_status safetensors_write(const char *path, safetensors_item *items, size_t count, json_t *metadata);

/* ---- the format's element types ---- */

typedef struct safetensors_dtype {
    const char *name; /* "F32" */
    unsigned bits;    /* of one element */
    sdlf_dtype dtype; /* SDLF_NONE: SDLF has no such type */
} safetensors_dtype;

/* Looks up a type by the format's name, or by SDLF's type; NULL if there is none. */
const safetensors_dtype *safetensors_dtype_named(const char *name);
const safetensors_dtype *safetensors_dtype_of(sdlf_dtype dtype);

#endif
