/* SPDX-License-Identifier: MIT */
/* The header of a .npy file: a magic string, two numbers, and the text of a Python dictionary. */
#ifndef SDLF_FORMATS_NPY_HEADER_H
#define SDLF_FORMATS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/tensor.h>

extern const unsigned char npy_magic[6];

/* What the text says; `name` stands for the file in messages. */
sdlf_status npy_parse_header(const char *text, size_t length, const char *name, sdlf_dtype *dtype, sdlf_shape *shape,
                             bool *column_major);

/* An element type in that text: "<f4"; NULL: the format has none for it. */
const char *npy_type_code(sdlf_dtype dtype);

/* A header, version 1.0, padded with blanks so that the elements begin at a multiple of 64. Returns the bytes before
 * them. */
size_t npy_print_header(char *text, size_t size, const sdlf_tensor *tensor);

#endif
