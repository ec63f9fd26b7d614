/* SPDX-License-Identifier: MIT */
/* Det, by minors: those of the first r + 1 rows are signed sums of those of the first r, times elements of the row.
 * Nothing is divided, so no pivoting is needed; there are 2^n minors, so only small matrices are supported. */
#include "framework/formats/onnx/import/compose.h"

enum { MOST_ROWS = 10, MOST_SUBSETS = 252 }; /* half of 10 columns */

/* Lists all bit masks with `size` of that many columns, in order; returns their count. */
static int subsets(int columns, int size, int *mask)
{
    int count = 0;
    for (int m = 0; m < 1 << columns; m++) {
        int bits = 0;
        for (int i = 0; i < columns; i++) bits += m >> i & 1;
        if (bits == size) mask[count++] = m;
    }
    return count;
}

/* Minors of rows 0 to `row`, (..., subsets of columns), from those of the preceding rows and the row itself, (...,
 * columns). */
static onnx_flow expand_row(onnx_context *c, onnx_flow minors, onnx_flow row, int columns, int number)
{
    int before[MOST_SUBSETS], now[MOST_SUBSETS];
    int had = subsets(columns, number, before), count = subsets(columns, number + 1, now);
    sdlf_shape shape = sdlf_shape(count, number + 1);
    onnx_tensor element = onnx_new_tensor(c, ONNX_INT64, shape), minor = onnx_new_tensor(c, ONNX_INT64, shape);
    onnx_tensor sign = onnx_new_tensor(c, ONNX_FLOAT, shape);
    for (int s = 0, at = 0; s < count && onnx_ok(c); s++) {
        for (int column = 0, place = 0; column < columns; column++) {
            if ((now[s] >> column & 1) == 0) continue;
            int which = 0;
            while (which + 1 < had && before[which] != (now[s] & ~(1 << column))) which++;
            ((int64_t *)element.data)[at] = column;
            ((int64_t *)minor.data)[at] = which;
            ((float *)sign.data)[at++] = (number + place++) % 2 == 0 ? 1 : -1;
        }
    }
    int last = row.shape.rank - 1;
    onnx_flow signs = onnx_constant_layer(c, &sign);
    onnx_flow terms = onnx_elementwise(c, "mul", onnx_gather(c, row, onnx_constant_layer(c, &element), last), signs);
    terms = onnx_elementwise(c, "mul", terms, onnx_gather(c, minors, onnx_constant_layer(c, &minor), last));
    return onnx_reduce(c, terms, SDLF_REDUCE_LAYER_SUM, sdlf_shape(last + 1), false);
}

static onnx_flow without(onnx_context *c, onnx_flow x, int axis)
{
    if (!onnx_ok(c)) return x;
    int batch = onnx_batch_axis(c, x);
    if (batch == axis) x = onnx_batch_fixed(c, x);
    return onnx_reshape_batch(c, x, sdlf_shape_without(x.shape, axis),
                              batch == axis  ? -1
                              : batch > axis ? batch - 1
                                             : batch);
}

static void convert_det(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int rank = x.shape.rank;
    int64_t size = onnx_ok(c) && rank >= 2 ? x.shape.dim[rank - 1] : 0;
    if (onnx_ok(c) && (rank < 2 || size != x.shape.dim[rank - 2] || !sdlf_dtype_is_float(x.dtype)))
        onnx_wrong(c, "matrices %s of %s", sdlf_shape_print(x.shape).text, sdlf_dtype_name(x.dtype));
    if (onnx_ok(c) && (size < 1 || size > MOST_ROWS || rank == SDLF_MAX_RANK))
        onnx_unsupported(c, "matrices %s: of at most %d rows they are supported", sdlf_shape_print(x.shape).text,
                         MOST_ROWS);
    if (!onnx_ok(c)) return;
    onnx_flow minors = without(c, onnx_take(c, x, rank - 2, 0, 1, 1), rank - 2);
    for (int row = 1; row < size && onnx_ok(c); row++)
        minors = expand_row(c, minors, without(c, onnx_take(c, x, rank - 2, row, 1, 1), rank - 2), (int)size, row);
    onnx_set_output(c, 0, without(c, minors, rank - 2));
}

const onnx_operator onnx_determinant_operators[] = {
    {.type = "Det", .since = 11, .minimum_inputs = 1, .maximum_inputs = 1, .attributes = " ", .convert = convert_det},
    {.type = NULL},
};
