/* SPDX-License-Identifier: MIT */
/* Gather: selects rows by index along an axis. */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* x's dimensions with the axis replaced by those of the indices. */
static sdlf_shape gathered(onnx_context *c, sdlf_shape x, int axis, sdlf_shape indices)
{
    sdlf_shape shape = {.rank = x.rank - 1 + indices.rank};
    if (shape.rank > SDLF_MAX_RANK) {
        onnx_unsupported(c, "%d dimensions; at most %d are supported", shape.rank, SDLF_MAX_RANK);
        return x;
    }
    int at = 0;
    for (int i = 0; i < axis; i++) shape.dim[at++] = x.dim[i];
    for (int i = 0; i < indices.rank; i++) shape.dim[at++] = indices.dim[i];
    for (int i = axis + 1; i < x.rank; i++) shape.dim[at++] = x.dim[i];
    return shape;
}

/* Resolves index `index` of `length`; negative ones count from the end. */
static int64_t row(onnx_context *c, int64_t index, int64_t length)
{
    if (index >= -length && index < length) return index < 0 ? index + length : index;
    onnx_wrong(c, "index %lld is not one of %lld", (long long)index, (long long)length);
    return 0;
}

void onnx_check_indices(onnx_context *c, int input, const int64_t *length, int64_t depth)
{
    enum { BLOCK = 256 };
    int64_t block[BLOCK];
    if (!onnx_ok(c) || !onnx_is_constant(c, input)) return;
    const onnx_tensor *tensor = onnx_known(c, input);
    for (int64_t i = 0; i < tensor->count && onnx_ok(c); i += BLOCK) {
        int64_t count = tensor->count - i < BLOCK ? tensor->count - i : BLOCK;
        onnx_tensor_convert(tensor, i, count, SDLF_INT64, block);
        for (int64_t k = 0; k < count && onnx_ok(c); k++) (void)row(c, block[k], length[(i + k) % depth]);
        if (tensor->uniform && i + count >= depth) break;
    }
}

static void fold_gather(onnx_context *c)
{
    sdlf_shape x = onnx_shape(c, 0), indices = onnx_shape(c, 1);
    int axis = onnx_axis(c, onnx_integer(c, "axis", 0), x.rank);
    if (!onnx_ok(c)) return;
    onnx_tensor from = onnx_materialize(c, onnx_known(c, 0));
    onnx_tensor to = onnx_new_tensor(c, from.type, gathered(c, x, axis, indices));
    onnx_numbers number = onnx_load_numbers(c, onnx_known(c, 1));
    if (onnx_ok(c) && number.real) onnx_wrong(c, "indices are integers");
    if (!onnx_ok(c)) return;
    int64_t outer = sdlf_shape_span(x, 0, axis), inner = sdlf_shape_span(x, axis + 1, x.rank), length = x.dim[axis];
    size_t bytes = (size_t)inner * onnx_type_size(from.type);
    for (int64_t o = 0; o < outer && to.count > 0; o++)
        for (int64_t i = 0; i < number.count && onnx_ok(c); i++) {
            int64_t at = row(c, number.integer[i], length);
            if (onnx_ok(c) && bytes > 0)
                memcpy((char *)to.data + (size_t)(o * number.count + i) * bytes,
                       (const char *)from.data + (size_t)(o * length + at) * bytes, bytes);
        }
    onnx_set_output_constant(c, 0, &to);
}

/* A single constant index is a slice. */
static void convert_gather(onnx_context *c)
{
    sdlf_shape x = onnx_shape(c, 0), indices = onnx_shape(c, 1);
    int axis = onnx_axis(c, onnx_integer(c, "axis", 0), x.rank);
    sdlf_shape shape = gathered(c, x, axis, indices);
    if (onnx_ok(c) && onnx_is_constant(c, 1) && onnx_known(c, 1)->count == 1) {
        onnx_list index = onnx_known_integers(c, 1);
        if (!onnx_ok(c)) return;
        int64_t at = row(c, index.item[0], x.dim[axis]);
        sdlf_slice_options options = {
            .axes = sdlf_shape(axis), .start = sdlf_shape(at), .end = sdlf_shape(at + 1), .step = sdlf_shape(1)};
        onnx_flow y = onnx_in(c, 0);
        int batch = onnx_batch_axis(c, y);
        if (axis == batch) y = onnx_batch_fixed(c, y); /* another batch has more rows */
        if (x.dim[axis] > 1) y = onnx_layer(c, "slice", &options, &y, 1);
        onnx_set_output(c, 0, onnx_reshape_batch(c, y, shape, batch < axis ? batch : batch - 1 + indices.rank));
        return;
    }
    if (onnx_ok(c)) onnx_check_indices(c, 1, &x.dim[axis], 1);
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1)};
    if (onnx_ok(c) && axis == onnx_batch_axis(c, operands[0]) && onnx_is_constant(c, 1))
        operands[0] = onnx_batch_fixed(c, operands[0]);
    onnx_set_output(c, 0, onnx_layer(c, "gather", &(sdlf_gather_options){.axis = axis - x.rank}, operands, 2));
}

const onnx_operator onnx_gather_operators[] = {
    {.type = "Gather",
     .since = 1,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " axis ",
     .of_rows = true,
     .convert = convert_gather,
     .fold = fold_gather},
    {.type = NULL},
};
