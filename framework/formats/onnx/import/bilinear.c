/* SPDX-License-Identifier: MIT */
/* See bilinear.h. */
#include "framework/formats/onnx/import/bilinear.h"

onnx_taps onnx_taps_of(onnx_context *c, onnx_flow place, int64_t length, bool clamped)
{
    onnx_taps taps;
    double end = (double)length;
    onnx_flow at = place, inside = place;
    if (clamped) {
        inside = onnx_elementwise(c, "and", onnx_with_number(c, "greater_equal", place, -1),
                                  onnx_with_number(c, "less_equal", place, end));
        at = onnx_with_number(c, "min", onnx_with_number(c, "max", place, 0), end - 1);
    }
    onnx_flow low = onnx_function(c, SDLF_UNARY_FLOOR, at), ratio = onnx_elementwise(c, "sub", at, low);
    for (int i = 0; i < 2; i++) {
        onnx_flow element = i == 0 ? low : onnx_with_number(c, "add", low, 1);
        onnx_flow there = inside;
        if (!clamped)
            there = onnx_elementwise(c, "and", onnx_with_number(c, "greater_equal", element, 0),
                                     onnx_with_number(c, "less", element, end));
        onnx_flow weight = i == 1 ? ratio : onnx_with_number(c, "add", onnx_with_number(c, "mul", ratio, -1), 1);
        taps.weight[i] = onnx_choose(c, there, weight, onnx_number(c, SDLF_FLOAT32, 0));
        element = onnx_with_number(c, "min", onnx_with_number(c, "max", element, 0), end - 1);
        taps.index[i] = onnx_cast(c, element, SDLF_INT64);
    }
    return taps;
}

onnx_flow onnx_bilinear(onnx_context *c, onnx_flow rows, onnx_flow base, const onnx_taps *y, const onnx_taps *x,
                        int64_t width, bool greatest)
{
    onnx_flow sum = rows, step = onnx_int64s(c, &width, SDLF_SCALAR);
    for (int k = 0; k < 4 && onnx_ok(c); k++) {
        onnx_flow row = onnx_elementwise(c, "add", base, onnx_elementwise(c, "mul", y->index[k / 2], step));
        onnx_flow value = onnx_gather(c, rows, onnx_elementwise(c, "add", row, x->index[k % 2]), 0);
        onnx_flow weight = onnx_elementwise(c, "mul", y->weight[k / 2], x->weight[k % 2]);
        if (!onnx_ok(c)) return sum;
        int last = weight.shape.rank - 1;
        value = onnx_elementwise(c, "mul", value, onnx_split_axis(c, weight, last, weight.shape.dim[last]));
        sum = k == 0 ? value : onnx_elementwise(c, greatest ? "max" : "add", sum, value);
    }
    return sum;
}
