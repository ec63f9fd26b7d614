/* SPDX-License-Identifier: MIT */
/* Constants that follow from constants: shape arithmetic, weights under another shape, and what else is worked out
 * before anything runs. Moving elements works on any type; arithmetic goes through int64 or float64. */
#ifndef SDLF_FORMATS_ONNX_FOLD_H
#define SDLF_FORMATS_ONNX_FOLD_H

#include "framework/formats/onnx/import/import.h"

/* Elements of a folded constant that is computed, not only seen differently; and of all those of a model, which bounds
 * the time. What their memory takes counts against the file's budget. */
enum { ONNX_FOLD_LIMIT = 1 << 22, ONNX_FOLD_TOTAL = 1 << 25 };

/* A new tensor with memory for its elements: the node's, and of those whom it is given to (onnx_give_constant,
 * onnx_fill_with). Fails, with NULL data, where there are too many, before any is worked out. */
onnx_tensor onnx_new_tensor(onnx_context *c, onnx_type type, sdlf_shape shape);

/* The same for a weight that is worked out from another, of any size: all of them together may have as many elements as
 * the file's weights and ONNX_FOLD_TOTAL more. Where no parameters are filled, large ones are zeros that take no
 * memory. */
onnx_tensor onnx_new_weight(onnx_context *c, onnx_type type, sdlf_shape shape);

/* A row-major list of int64. */
onnx_tensor onnx_new_integers(onnx_context *c, const int64_t *item, int count);

/* Elements of `from` in another order: y[i0, i1, ...] = from[start + i0 step[0] + i1 step[1] + ...], counted in
 * elements. The positions must lie inside (up to the caller). */
onnx_tensor onnx_pick(onnx_context *c, const onnx_tensor *from, sdlf_shape shape, int64_t start, const int64_t *step);

/* The tensor with an element for each, where one stood for all, and all of them there. */
onnx_tensor onnx_solid(onnx_context *c, const onnx_tensor *tensor);

/* Row-major steps of a shape. */
void onnx_steps(sdlf_shape shape, int64_t *step);

/* Numbers in the widest type of their kind. */
typedef struct onnx_numbers {
    bool real;
    sdlf_shape shape;
    int64_t count;
    int64_t *integer; /* unless `real` */
    double *number;   /* if `real` */
} onnx_numbers;
/* Toward zero, saturating; NaN becomes 0. */
int64_t onnx_to_integer(double value);
onnx_numbers onnx_load_numbers(onnx_context *c, const onnx_tensor *tensor);
onnx_tensor onnx_store_numbers(onnx_context *c, const onnx_numbers *numbers, onnx_type type);
onnx_numbers onnx_new_numbers(onnx_context *c, bool real, sdlf_shape shape);

/* The shape that two broadcast to; a failure where they do not. */
sdlf_shape onnx_broadcast(onnx_context *c, sdlf_shape a, sdlf_shape b);
/* Steps of an operand of that shape inside the broadcast one: 0 along what is repeated. */
void onnx_broadcast_steps(sdlf_shape from, sdlf_shape to, int64_t *step);

/* A function of two elements, by the name of its operator: Add, Min, Equal, ...; NULL: there is none. */
typedef struct onnx_scalar_function {
    const char *name;
    double (*real)(double, double); /* NULL: of integers only */
    int64_t (*integer)(int64_t, int64_t);
    bool compares; /* gives bool */
} onnx_scalar_function;
const onnx_scalar_function *onnx_scalar_function_find(const char *name);

/* fold_math.c: Add, Sub, Mul, Div, Min, Max, Equal, Greater, ...; Neg, Abs, Floor, Sqrt, ...; Where. fold_reduce.c:
 * reductions. */
onnx_convert onnx_fold_binary, onnx_fold_unary, onnx_fold_where, onnx_fold_reduce;

#endif
