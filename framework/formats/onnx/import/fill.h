/* SPDX-License-Identifier: MIT */
/* The source of a parameter's values, and loading them. */
#ifndef SDLF_FORMATS_ONNX_FILL_H
#define SDLF_FORMATS_ONNX_FILL_H

#include "framework/formats/onnx/import/import.h"

enum { ONNX_FILL_CHUNK = 1 << 16 }; /* elements converted at once: their buffer has that many doubles */

/* Finds the parameter of import->model that it fills. Errors: there is none, or it has another size. */
sdlf_status onnx_fill_find(const onnx_import *import, const onnx_fill *fill, sdlf_parameter **parameter);

/* True if a range of the parameter's values comes from a contiguous range of elements. */
bool onnx_fill_is_straight(const onnx_fill *fill);

/* Values first .. first + count - 1 of a parameter of that shape; all of them, unless the fill is straight. */
sdlf_status onnx_fill_values(const onnx_fill *fill, sdlf_shape shape, int64_t first, int64_t count, void *room,
                             float *values);

#endif
