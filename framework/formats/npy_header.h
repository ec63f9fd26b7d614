/* SPDX-License-Identifier: MIT */
/* The header of a .npy file: a magic string, two numbers, and the text of a Python dictionary. */
#ifndef SDLF_FORMATS_NPY_HEADER_H
#define SDLF_FORMATS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/tensor.h>

extern const unsigned char npy_magic[6];

/* Parses the dictionary; `name` represents the file in messages. */
sdlf_status npy_parse_header(const char *text, size_t length, const char *name, sdlf_dtype *dtype, sdlf_shape *shape,
                             bool *column_major);

/* The code of an element type in that text: "<f4"; NULL: the format has none. */
const char *npy_type_code(sdlf_dtype dtype);

/* Prints a header, version 1.0, padded with blanks so that the elements begin at a multiple of 64. Returns its
 * size. */
size_t npy_print_header(char *text, size_t size, const sdlf_tensor *tensor);

#endif
