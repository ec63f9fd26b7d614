/* TopK. */
#include "framework/formats/onnx/import.h"

static void convert_top_k(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int axis = onnx_axis(c, onnx_integer(c, "axis", -1), x.shape.rank);
    double k = c->opset < 10 ? (double)onnx_integer(c, "k", 0) : onnx_known_number(c, 1, 0);
    (void)onnx_integer(c, "sorted", 1); /* sorted they are in any case */
    if (onnx_ok(c) && !(k >= 1 && k <= (double)x.shape.dim[axis] && k <= INT32_MAX))
        onnx_wrong(c, "%g of %lld elements are asked for", k, (long long)x.shape.dim[axis]);
    sdlf_top_k_layer_options options = {.k = onnx_ok(c) ? (int)k : 1,
                                        .axis = axis - x.shape.rank, /* from the end: 0 would mean the default */
                                        .smallest = onnx_integer(c, "largest", 1) == 0};
    onnx_flow y = onnx_layer(c, "top_k", &options, &x, 1);
    onnx_give(c, 0, y);
    if (c->output_count > 1) onnx_give(c, 1, onnx_layer_output(c, y, 1));
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
