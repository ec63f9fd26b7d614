/* SPDX-License-Identifier: MIT */
/* Arrays in NumPy's .npy format, versions 1.0 to 3.0: a magic string, a header that is a Python dictionary of three
 * entries, and the elements. Row-major arrays of little-endian float16, float32, float64, uint8 (and bool), int32 and
 * int64. */
#ifndef SDLF_FORMATS_NPY_H
#define SDLF_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/tensor.h>

/* A file of which the header has been read, and whose elements are still to come. */
typedef struct npy_file {
    const char *name;   /* borrowed */
    sdlf_tensor tensor; /* without memory */
    bool column_major;  /* in the file; what is read is row-major */
    int descriptor;     /* -1: bytes come from `read`, or lie in memory: */
    const char *bytes;  /* what is left of them; borrowed */
    size_t left;
    sdlf_status (*read)(void *context, void *bytes, size_t count,
                        size_t *found); /* fewer than `count` at the end only */
    void *context;
} npy_file;

/* Open a file, a pipe too, and read its header. After a failure there is nothing to close. Errors: SDLF_ERROR_IO;
 * SDLF_ERROR_FORMAT with the file, what was expected and what was found; SDLF_ERROR_MEMORY. */
sdlf_status npy_open(npy_file *file, const char *path);
void npy_close(npy_file *file);

/* The same of `size` bytes that come from `read`. */
sdlf_status npy_open_from(npy_file *file, const char *name, size_t size,
                          sdlf_status (*read)(void *context, void *bytes, size_t count, size_t *found), void *context);

/* Read the elements, once, to memory for all of them. */
sdlf_status npy_take(npy_file *file, void *values);

/* Read a whole file. The tensor (host memory) is the caller's: sdlf_tensor_release(tensor, NULL). */
sdlf_status npy_read(sdlf_tensor *tensor, const char *path);

/* The same from memory; `name` stands for the file in messages. */
sdlf_status npy_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name);

/* Write a row-major tensor in host memory, under a temporary name first. Errors: SDLF_ERROR_IO; SDLF_ERROR_ARGUMENT for
 * bfloat16, which the format has not. */
sdlf_status npy_write(const sdlf_tensor *tensor, const char *path);

#endif
