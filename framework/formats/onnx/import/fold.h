/* SPDX-License-Identifier: MIT */
/* Constant folding: shape arithmetic, reshaped weights, and everything else that can be computed before the model runs.
 * Data movement works on any type; arithmetic goes through int64 or float64. */
#ifndef SDLF_FORMATS_ONNX_FOLD_H
#define SDLF_FORMATS_ONNX_FOLD_H

#include "framework/formats/onnx/import/import.h"

/* Maximum elements of one folded constant that is computed, not only viewed; and of all those of a model, in addition to
 * ONNX_FOLD_TIMES the elements of its weights (at most as many as its files have bytes), which bounds the time. Their
 * memory counts against the file's budget. */
enum { ONNX_FOLD_LIMIT = 1 << 24, ONNX_FOLD_TOTAL = 1 << 25, ONNX_FOLD_TIMES = 16 };

/* Creates a tensor with memory for its elements, held by the node and those to which it is given (onnx_set_output_constant,
 * onnx_fill_with). Fails, with NULL data, if there are too many, before anything is computed. */
onnx_tensor onnx_new_tensor(onnx_context *c, onnx_type type, sdlf_shape shape);

/* The same for a weight that is derived from another, of any size: all of them together may have as many elements
 * as the file's weights plus ONNX_FOLD_TOTAL. If no parameters are filled, large ones are zeros that take no
 * memory. */
onnx_tensor onnx_new_weight(onnx_context *c, onnx_type type, sdlf_shape shape);

/* A row-major list of int64. */
onnx_tensor onnx_new_integers(onnx_context *c, const int64_t *item, int count);

/* Strided selection: y[i0, i1, ...] = from[start + i0 step[0] + i1 step[1] + ...], counted in elements. The caller
 * ensures that positions are in range. */
onnx_tensor onnx_pick(onnx_context *c, const onnx_tensor *from, sdlf_shape shape, int64_t start, const int64_t *step);

/* The tensor with every element stored and loaded, if one represented all. */
onnx_tensor onnx_materialize(onnx_context *c, const onnx_tensor *tensor);

/* Row-major strides of a shape. */
void onnx_strides(sdlf_shape shape, int64_t *step);

/* Numbers in the widest type of their kind. */
typedef struct onnx_numbers {
    bool real;
    sdlf_shape shape;
    int64_t count;
    int64_t *integer; /* unless `real` */
    double *number;   /* if `real` */
} onnx_numbers;
/* Rounds toward zero and saturates; NaN becomes 0. */
int64_t onnx_to_integer(double value);
onnx_numbers onnx_load_numbers(onnx_context *c, const onnx_tensor *tensor);
onnx_tensor onnx_store_numbers(onnx_context *c, const onnx_numbers *numbers, onnx_type type);
onnx_numbers onnx_new_numbers(onnx_context *c, bool real, sdlf_shape shape);

/* The shape to which two broadcast; fails if they do not. */
sdlf_shape onnx_broadcast(onnx_context *c, sdlf_shape a, sdlf_shape b);
/* Strides of an operand of that shape inside the broadcast one: 0 along broadcast axes. */
void onnx_broadcast_steps(sdlf_shape from, sdlf_shape to, int64_t *step);

/* A function of two elements, found by the name of its operator: Add, Min, Equal, ...; NULL: there is none. */
typedef struct onnx_scalar_function {
    const char *name;
    double (*real)(double, double); /* NULL: integers only */
    int64_t (*integer)(int64_t, int64_t);
    bool compares; /* returns bool */
} onnx_scalar_function;
const onnx_scalar_function *onnx_scalar_function_find(const char *name);

/* fold_math.c: Add, Sub, Mul, Div, Min, Max, Equal, Greater, ...; Neg, Abs, Floor, Sqrt, ...; Where. fold_reduce.c:
 * reductions. */
onnx_convert onnx_fold_binary, onnx_fold_unary, onnx_fold_where, onnx_fold_reduce;

#endif
