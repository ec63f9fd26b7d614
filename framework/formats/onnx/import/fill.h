/* SPDX-License-Identifier: MIT */
/* Where a parameter's values come from, and bringing them. */
#ifndef SDLF_FORMATS_ONNX_FILL_H
#define SDLF_FORMATS_ONNX_FILL_H

#include "framework/formats/onnx/import/import.h"

enum { ONNX_FILL_CHUNK = 1 << 16 }; /* elements converted at once: their buffer has that many doubles */

/* The parameter of import->model that it fills. Errors: there is none, or it has another size. */
sdlf_status onnx_fill_find(const onnx_import *import, const onnx_fill *fill, sdlf_parameter **parameter);

/* Do some of the parameter's values come from as many elements that follow one another? */
bool onnx_fill_is_straight(const onnx_fill *fill);

/* Values first .. first + count - 1 of a parameter of that shape; all of it, unless the fill is straight. */
sdlf_status onnx_fill_values(const onnx_fill *fill, sdlf_shape shape, int64_t first, int64_t count, void *room,
                             float *values);

#endif
