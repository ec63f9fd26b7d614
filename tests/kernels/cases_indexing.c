/* SPDX-License-Identifier: MIT */
/* Cases of arg_reduce, gather and gather_backward.
 *
 * Selection is exact; a gradient is a sum of as many terms as indices point to the element. */
#include "kernels.h"

static void arg_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const sdlf_shape shapes[] = {{1, {1}},           {2, {5, 130}},     {3, {4, 9, 7}}, {1, {1000}},
                                        {4, {2, 3, 4, 70}}, {3, {2, 700, 40}}, {1, {70000}},   {3, {2, 300, 5}}};
    static const kernel_values values[] = {VALUES_UNIFORM, VALUES_GRID, VALUES_GRID_NAN};
    for (int i = 0; i < 8; i++) {
        for (int axis = 0; axis < shapes[i].rank; axis++) {
            for (int variant = 0; variant < 12; variant++) {
                kernel_case made = {.operation = {.kind = SDLF_ARG_REDUCE, .in = {kernel_tensor(t, shapes[i])}}};
                sdlf_shape kept = shapes[i];
                kept.dim[axis] = 1;
                made.operation.out[0] =
                    kernel_tensor(SDLF_INT64, variant & 1 ? kept : sdlf_shape_without(shapes[i], axis));
                made.operation.arg_reduce =
                    (sdlf_arg_reduce_options){.axis = axis, .smallest = variant & 1, .last = variant & 2};
                made.in[0].values = values[variant / 4];
                kernel_emit(sink, &made, "%s of %s axis %d, %s%s, %d", sdlf_dtype_name(t),
                            sdlf_shape_print(shapes[i]).text, axis, variant & 1 ? "min" : "max",
                            variant & 2 ? " last" : "", variant / 4);
            }
        }
    }
}

static void top_k_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const kernel_values values[] = {VALUES_UNIFORM, VALUES_GRID, VALUES_GRID_NAN};
    const sdlf_shape shapes[] = {sdlf_shape(1), sdlf_shape(5, 130), sdlf_shape(4, 9, 7), sdlf_shape(3, 700),
                                 sdlf_shape(2, 1500)};
    for (int i = 0; i < 5; i++) {
        for (int axis = 0; axis < shapes[i].rank; axis++) {
            for (int variant = 0; variant < 12; variant++) {
                sdlf_shape y = shapes[i];
                int64_t k = variant & 1 ? y.dim[axis] : (y.dim[axis] + 2) / 3;
                y.dim[axis] = k;
                kernel_case made = {.operation = {.kind = SDLF_TOP_K, .in = {kernel_tensor(t, shapes[i])}}};
                made.operation.out[0] = kernel_tensor(t, y);
                made.operation.out[1] = kernel_tensor(SDLF_INT64, y);
                made.operation.top_k.axis = axis;
                made.operation.top_k.smallest = variant & 2;
                made.in[0].values = values[variant / 4];
                kernel_emit(sink, &made, "%d of %s axis %d, %s, %d", (int)k, sdlf_shape_print(shapes[i]).text, axis,
                            variant & 2 ? "smallest" : "largest", variant / 4);
            }
        }
    }
}

/* Indices from -length - 1 to length: those out of range must do no harm. */
static void spread_indices(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = operation->kind == SDLF_GATHER ? &operation->in[0] : &operation->out[0];
    const sdlf_tensor *index = &operation->in[1];
    int64_t length = x->shape.dim[operation->index.axis];
    for (int64_t m = 0; m < sdlf_tensor_count(index); m++) {
        if (index->dtype == SDLF_INT32) {
            ((int32_t *)index->data)[m] -= (int32_t)length + 1;
        } else {
            ((int64_t *)index->data)[m] -= length + 1;
        }
    }
}

static void gather_case(kernel_sink *sink, sdlf_dtype t, sdlf_shape x, int axis, sdlf_shape index, sdlf_dtype type)
{
    sdlf_shape y = {.rank = x.rank - 1 + index.rank};
    for (int i = 0; i < axis; i++) y.dim[i] = x.dim[i];
    for (int i = 0; i < index.rank; i++) y.dim[axis + i] = index.dim[i];
    for (int i = axis + 1; i < x.rank; i++) y.dim[i - 1 + index.rank] = x.dim[i];
    kernel_case made = {.operation = {.kind = SDLF_GATHER, .index = {.axis = axis}}, .prepare = spread_indices};
    made.operation.in[0] = kernel_tensor(t, x);
    made.operation.in[1] = kernel_tensor(type, index);
    made.operation.out[0] = kernel_tensor(t, y);
    made.in[1] = (kernel_fill){VALUES_INTEGERS, 2 * x.dim[axis] + 2};
    kernel_emit(sink, &made, "%s axis %d at %s %s", sdlf_shape_print(x).text, axis, sdlf_shape_print(index).text,
                sdlf_dtype_name(type));
    if (t != SDLF_FLOAT32 && t != SDLF_FLOAT64) return;
    made.operation.kind = SDLF_GATHER_BACKWARD;
    made.operation.in[0] = kernel_tensor(t, y);
    made.operation.out[0] = kernel_tensor(t, x);
    made.tolerance = (double)sdlf_shape_count(index) + 4;
    kernel_emit(sink, &made, "%s axis %d at %s %s", sdlf_shape_print(x).text, axis, sdlf_shape_print(index).text,
                sdlf_dtype_name(type));
}

void indexing_cases(kernel_sink *sink, sdlf_dtype t)
{
    arg_cases(sink, t);
    top_k_cases(sink, t);
    gather_case(sink, t, sdlf_shape(5), 0, SDLF_SCALAR, SDLF_INT64);
    gather_case(sink, t, sdlf_shape(5, 7), 0, sdlf_shape(3, 4), SDLF_INT32);
    gather_case(sink, t, sdlf_shape(5, 7), 1, sdlf_shape(9), SDLF_INT64);
    gather_case(sink, t, sdlf_shape(2, 4, 3, 5), 1, sdlf_shape(2, 3), SDLF_INT32);
    gather_case(sink, t, sdlf_shape(50, 1100), 0, sdlf_shape(20), SDLF_INT64);
    if (t == SDLF_FLOAT64) return;
    gather_case(sink, SDLF_UINT8, sdlf_shape(6, 3), 0, sdlf_shape(8), SDLF_INT64);
    gather_case(sink, SDLF_FLOAT16, sdlf_shape(6, 3), 1, sdlf_shape(8), SDLF_INT32);
    gather_case(sink, SDLF_INT64, sdlf_shape(6, 3), 0, sdlf_shape(2, 2), SDLF_INT64);
}

void indexing_bench(kernel_sink *sink, sdlf_dtype t)
{
    kernel_case arg = {.operation = {.kind = SDLF_ARG_REDUCE, .in = {kernel_tensor(t, sdlf_shape(1024, 1000))}}};
    arg.operation.out[0] = kernel_tensor(SDLF_INT64, sdlf_shape(1024));
    arg.operation.arg_reduce.axis = 1;
    kernel_emit(sink, &arg, "1024x1000 axis 1");
    gather_case(sink, t, sdlf_shape(30000, 256), 0, sdlf_shape(64, 64), SDLF_INT64);
}
