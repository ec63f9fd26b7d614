/* SPDX-License-Identifier: MIT */
/* Reductions of constants. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* The combining function and the initial value. */
typedef struct reduction {
    const char *name, *function;
    double real;
    int64_t integer;
    bool mean; /* divided by their count */
} reduction;

static const reduction *reduction_of(const char *name)
{
    static const reduction reductions[] = {
        {"ReduceLogSum", NULL, -INFINITY, 0, false}, /* from here to ReduceL2: only for empty inputs */
        {"ReduceLogSumExp", NULL, -INFINITY, 0, false},
        {"ReduceL1", NULL, 0, 0, false},
        {"ReduceL2", NULL, 0, 0, false},
        {"ReduceSumSquare", NULL, 0, 0, false},
        {"ReduceProd", "Mul", 1, 1, false},
        {"ReduceMin", "Min", INFINITY, INT64_MAX, false},
        {"ReduceMax", "Max", -INFINITY, INT64_MIN, false},
        {"ReduceMean", "Add", 0, 0, true},
        {"ReduceSum", "Add", 0, 0, false},
    };
    size_t last = sizeof reductions / sizeof reductions[0] - 1, at = 0;
    while (at < last && strcmp(reductions[at].name, name) != 0) at++;
    return &reductions[at];
}

/* Saturates to that type: for the minimum or maximum of an empty input. */
static int64_t in_range(onnx_type type, int64_t number)
{
    int64_t least = INT64_MIN, most = INT64_MAX;
    switch (type) {
    case ONNX_BOOL: least = 0, most = 1; break;
    case ONNX_UINT8: least = 0, most = UINT8_MAX; break;
    case ONNX_INT8: least = INT8_MIN, most = INT8_MAX; break;
    case ONNX_UINT16: least = 0, most = UINT16_MAX; break;
    case ONNX_INT16: least = INT16_MIN, most = INT16_MAX; break;
    case ONNX_UINT32: least = 0, most = UINT32_MAX; break;
    case ONNX_INT32: least = INT32_MIN, most = INT32_MAX; break;
    default: break;
    }
    return number < least ? least : number > most ? most : number;
}

/* Sum, product, minimum or maximum of all elements, or along some axes; and every reduction of an empty input, where a
 * mean is NaN, and the minimum (maximum) of integers is the largest (smallest) of their type. */
void onnx_fold_reduce(onnx_context *c)
{
    const onnx_tensor *from = onnx_known(c, 0);
    onnx_list axes = onnx_has(c, 1) ? onnx_known_integers(c, 1) : onnx_integers(c, "axes");
    bool keep = onnx_flag(c, "keepdims", true);
    onnx_numbers x = onnx_load_numbers(c, from);
    if (!onnx_ok(c)) return;
    bool gone[SDLF_MAX_RANK] = {false}, all = axes.count <= 0;
    if (all && onnx_flag(c, "noop_with_empty_axes", false)) {
        onnx_set_output_constant(c, 0, from);
        return;
    }
    for (int i = 0; i < axes.count; i++) gone[onnx_axis(c, axes.item[i], x.shape.rank)] = true;
    const reduction *how = reduction_of(c->type->type);
    if (x.count == 0 && how->mean) onnx_unsupported(c, "of an input without elements");
    if (!onnx_ok(c)) return;
    int64_t first = in_range(from->type, how->integer);
    int64_t step[SDLF_MAX_RANK], next = 1;
    sdlf_shape kept = SDLF_SCALAR;
    for (int i = x.shape.rank - 1; i >= 0; i--) {
        gone[i] = gone[i] || all;
        step[i] = gone[i] ? 0 : next;
        if (!gone[i]) next *= x.shape.dim[i];
    }
    for (int i = 0; i < x.shape.rank; i++)
        if (!gone[i] || keep) kept.dim[kept.rank++] = gone[i] ? 1 : x.shape.dim[i];
    onnx_numbers y = onnx_new_numbers(c, x.real, kept);
    if (!onnx_ok(c)) return;
    const onnx_scalar_function *function = how->function != NULL ? onnx_scalar_function_find(how->function) : NULL;
    for (int64_t i = 0; i < y.count; i++) {
        if (x.real)
            y.number[i] = how->real;
        else
            y.integer[i] = first;
    }
    int64_t index[SDLF_MAX_RANK] = {0};
    for (int64_t i = 0; i < x.count && function != NULL; i++) {
        int64_t to = 0;
        for (int d = 0; d < x.shape.rank; d++) to += index[d] * step[d];
        if (x.real)
            y.number[to] = function->real(y.number[to], x.number[i]);
        else
            y.integer[to] = function->integer(y.integer[to], x.integer[i]);
        for (int d = x.shape.rank - 1; d >= 0 && ++index[d] == x.shape.dim[d]; d--) index[d] = 0;
    }
    if (how->mean)
        for (int64_t i = 0; i < y.count; i++) {
            if (x.real)
                y.number[i] /= (double)(x.count / y.count);
            else
                y.integer[i] /= x.count / y.count;
        }
    onnx_tensor result = onnx_store_numbers(c, &y, from->type);
    onnx_set_output_constant(c, 0, &result);
}
