/* Arrays in NumPy's .npy format, versions 1.0 to 3.0: a magic string, a header that is a Python dictionary of three entries,
 * and the elements. Row-major arrays of little-endian float16, float32, float64, uint8 (and bool), int32 and int64. */
#ifndef SDLF_FORMATS_NPY_H
#define SDLF_FORMATS_NPY_H

#include <stddef.h>

#include <sdlf/tensor.h>

/* Read a whole file. The tensor (host memory) is the caller's: sdlf_tensor_release(tensor, NULL). Errors: SDLF_ERROR_IO;
 * SDLF_ERROR_FORMAT with the file, what was expected and what was found; SDLF_ERROR_MEMORY. */
sdlf_status npy_read(sdlf_tensor *tensor, const char *path);

/* The same from memory; `name` stands for the file in messages. */
sdlf_status npy_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name);

/* Write a row-major tensor in host memory, under a temporary name first. Errors: SDLF_ERROR_IO; SDLF_ERROR_ARGUMENT for
 * bfloat16, which the format has not. */
sdlf_status npy_write(const sdlf_tensor *tensor, const char *path);

#endif
