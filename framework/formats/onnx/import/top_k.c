/* SPDX-License-Identifier: MIT */
/* TopK. */
#include "framework/formats/onnx/import/compose.h"

enum { MOST_PAIRS = 1 << 24 };

/* For integers, which the layer does not sort: the rank of each element in its row, earlier ones first among equals.
 * These ranks, exact in float, are sorted instead. */
static onnx_flow ranks(onnx_context *c, onnx_flow x, int axis, bool smallest)
{
    int64_t length = onnx_ok(c) ? x.shape.dim[axis] : 0, count = onnx_ok(c) ? sdlf_shape_count(x.shape) : 0;
    if (length > 0 && count > MOST_PAIRS / length)
        onnx_unsupported(c, "of %lld integers in rows of %lld: at most %d pairs are compared", (long long)count,
                         (long long)length, MOST_PAIRS);
    onnx_flow mine = onnx_split_axis(c, x, axis, length), other = onnx_split_axis(c, x, axis, 1);
    onnx_flow first = onnx_elementwise(c, "less", onnx_count_up(c, 0, 1, length, axis + 1, mine.shape.rank),
                                       onnx_count_up(c, 0, 1, length, axis, mine.shape.rank));
    onnx_flow before = onnx_elementwise(c, smallest ? "less" : "greater", other, mine);
    onnx_flow equal = onnx_elementwise(c, "and", onnx_elementwise(c, "equal", other, mine), first);
    onnx_flow is = onnx_cast(c, onnx_elementwise(c, "or", before, equal), SDLF_FLOAT32);
    return onnx_reduce(c, is, SDLF_REDUCE_LAYER_SUM, sdlf_shape(axis + 1), false);
}

static void convert_top_k(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int axis = onnx_axis(c, onnx_integer(c, "axis", -1), x.shape.rank);
    double k = c->opset < 10 ? (double)onnx_integer(c, "k", 0) : onnx_known_number(c, 1, 0);
    (void)onnx_flag(c, "sorted", true); /* always sorted */
    if (onnx_ok(c) && !(k >= 1 && k <= (double)x.shape.dim[axis] && k <= INT32_MAX))
        onnx_wrong(c, "%g of %lld elements are asked for", k, (long long)x.shape.dim[axis]);
    sdlf_top_k_layer_options options = {.k = onnx_ok(c) ? (int)k : 1,
                                        .axis = axis - x.shape.rank, /* from the end: 0 would mean the default */
                                        .smallest = !onnx_flag(c, "largest", true)};
    if (onnx_ok(c) && onnx_is_integer(x)) {
        onnx_flow rank = ranks(c, x, axis, options.smallest);
        options.smallest = true;
        onnx_flow which = onnx_layer_output(c, onnx_layer(c, "top_k", &options, &rank, 1), 1);
        onnx_set_output(c, 0, onnx_gather_along(c, x, which, axis));
        if (c->output_count > 1) onnx_set_output(c, 1, which);
        return;
    }
    onnx_flow y = onnx_layer(c, "top_k", &options, &x, 1);
    onnx_set_output(c, 0, y);
    if (c->output_count > 1) onnx_set_output(c, 1, onnx_layer_output(c, y, 1));
}

const onnx_operator onnx_top_k_operators[] = {
    {.type = "TopK",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " axis k largest sorted ",
     .convert = convert_top_k},
    {.type = NULL},
};
