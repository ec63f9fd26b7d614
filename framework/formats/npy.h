/* SPDX-License-Identifier: MIT */
/* Arrays in NumPy's .npy format, versions 1.0 to 3.0: a magic string, a header that is a Python dictionary of three
 * entries, and the elements. Supports little-endian float16, float32, float64, uint8 (and bool), int32 and int64;
 * written row-major. */
#ifndef SDLF_FORMATS_NPY_H
#define SDLF_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/tensor.h>

/* A file whose header has been read, and whose elements have not. */
typedef struct npy_file {
    const char *name;   /* borrowed */
    sdlf_tensor tensor; /* without memory */
    bool column_major;  /* in the file; elements are read as row-major */
    int descriptor;     /* -1: bytes come from `read`, or from memory: */
    const char *bytes;  /* the remaining ones; borrowed */
    size_t left;
    sdlf_status (*read)(void *context, void *bytes, size_t count,
                        size_t *found); /* fewer than `count` at the end only */
    void *context;
} npy_file;

/* Opens a file or pipe and reads its header. After a failure there is nothing to close. Errors: SDLF_ERROR_IO;
 * SDLF_ERROR_FORMAT with the file, what was expected and what was found; SDLF_ERROR_MEMORY. */
sdlf_status npy_open(npy_file *file, const char *path);
void npy_close(npy_file *file);

/* The same for `size` bytes supplied by `read`. */
sdlf_status npy_open_from(npy_file *file, const char *name, size_t size,
                          sdlf_status (*read)(void *context, void *bytes, size_t count, size_t *found), void *context);

/* Reads all elements, once, to `values`. */
sdlf_status npy_take(npy_file *file, void *values);

/* Reads a whole file. The caller owns the tensor (host memory): sdlf_tensor_release(tensor, NULL). */
sdlf_status npy_read(sdlf_tensor *tensor, const char *path);

/* The same from memory; `name` represents the file in messages. */
sdlf_status npy_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name);

/* Writes a row-major tensor in host memory, under a temporary name first. Errors: SDLF_ERROR_IO; SDLF_ERROR_ARGUMENT
 * for bfloat16, which the format lacks. */
sdlf_status npy_write(const sdlf_tensor *tensor, const char *path);

#endif
