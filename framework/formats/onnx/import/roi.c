/* SPDX-License-Identifier: MIT */
/* RoiAlign: regions of images, each sampled on a grid of positions between elements. */
#include <string.h>

#include "framework/formats/onnx/import/bilinear.h"

enum { MOST_SIDE = 1 << 12 };

/* The sampling positions of each region along an axis, (R, places). `first`: the column of its lower bound, 0 or 1; the
 * upper bound's is two further. */
static onnx_flow places_of(onnx_context *c, onnx_flow regions, int first, double scale, bool half, int64_t count)
{
    onnx_flow bound[2];
    for (int i = 0; i < 2; i++) {
        bound[i] = onnx_with_number(c, "mul", onnx_take(c, regions, 1, first + 2 * i, 1, 1), scale);
        if (half) bound[i] = onnx_with_number(c, "sub", bound[i], 0.5);
    }
    onnx_flow size = onnx_elementwise(c, "sub", bound[1], bound[0]);
    if (!half) size = onnx_with_number(c, "max", size, 1);
    onnx_tensor part = onnx_new_tensor(c, ONNX_FLOAT, sdlf_shape(count));
    for (int64_t i = 0; i < count && onnx_ok(c); i++)
        ((float *)part.data)[i] = (float)(((double)i + 0.5) / (double)count);
    return onnx_elementwise(c, "add", bound[0], onnx_elementwise(c, "mul", size, onnx_constant_layer(c, &part)));
}

static void convert_roi_align(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), regions = onnx_in(c, 1), picture = onnx_cast(c, onnx_in(c, 2), SDLF_INT64);
    onnx_word mode = onnx_text(c, "mode", "avg");
    onnx_word where =
        onnx_text(c, "coordinate_transformation_mode", c->opset < 16 ? "output_half_pixel" : "half_pixel");
    bool greatest = strcmp(mode.text, "max") == 0, half = strcmp(where.text, "half_pixel") == 0;
    int64_t height = onnx_integer(c, "output_height", 1), width = onnx_integer(c, "output_width", 1);
    int64_t samples = onnx_integer(c, "sampling_ratio", 0);
    double scale = (double)onnx_real(c, "spatial_scale", 1);
    if (!greatest && strcmp(mode.text, "avg") != 0) onnx_wrong(c, "attribute 'mode' is '%s'", mode.text);
    if (!half && strcmp(where.text, "output_half_pixel") != 0)
        onnx_wrong(c, "attribute 'coordinate_transformation_mode' is '%s'", where.text);
    if (samples == 0)
        onnx_unsupported(c, "attribute 'sampling_ratio' is 0: how many places are read would depend on the region");
    if (samples < 0 || samples > MOST_SIDE || height < 1 || height > MOST_SIDE || width < 1 || width > MOST_SIDE)
        onnx_wrong(c, "%lld places of each of %lldx%lld", (long long)samples, (long long)height, (long long)width);
    if (onnx_ok(c) && (x.shape.rank != 4 || regions.shape.rank != 2 || regions.shape.dim[1] != 4 ||
                       picture.shape.rank != 1 || picture.shape.dim[0] != regions.shape.dim[0]))
        onnx_wrong(c, "regions %s of pictures %s", sdlf_shape_print(regions.shape).text,
                   sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    if (onnx_batch_axis(c, x) >= 0) x = onnx_batch_fixed(c, x);
    if (onnx_batch_axis(c, regions) >= 0) regions = onnx_batch_fixed(c, regions);
    if (onnx_batch_axis(c, picture) >= 0) picture = onnx_batch_fixed(c, picture);
    int64_t count = regions.shape.dim[0], channels = x.shape.dim[1], rows = x.shape.dim[2], columns = x.shape.dim[3];
    int64_t size = rows * columns, down = height * samples, across = width * samples;
    onnx_flow base = onnx_elementwise(c, "mul", picture, onnx_int64s(c, &size, SDLF_SCALAR));
    base = onnx_reshape_batch(c, base, sdlf_shape(count, 1, 1), -1);
    onnx_flow at[2] = {places_of(c, regions, 1, scale, half, down), places_of(c, regions, 0, scale, half, across)};
    at[0] = onnx_reshape_batch(c, at[0], sdlf_shape(count, down, 1), -1);
    at[1] = onnx_reshape_batch(c, at[1], sdlf_shape(count, 1, across), -1);
    onnx_taps y = onnx_taps_of(c, at[0], rows, true), across_taps = onnx_taps_of(c, at[1], columns, true);
    x = onnx_transpose(c, x, (const int[]){0, 2, 3, 1});
    x = onnx_join_axes(c, x, 0, 2);
    onnx_flow value = onnx_bilinear(c, x, base, &y, &across_taps, columns, greatest); /* (R, down, across, C) */
    value = onnx_reshape_batch(c, value, sdlf_shape(count, height, samples, width, samples, channels), -1);
    sdlf_reduce_function reduction = greatest ? SDLF_REDUCE_LAYER_MAX : SDLF_REDUCE_LAYER_MEAN;
    value = onnx_reduce(c, onnx_reduce(c, value, reduction, sdlf_shape(4), false), reduction, sdlf_shape(2), false);
    onnx_set_output(c, 0, onnx_transpose(c, value, (const int[]){0, 3, 1, 2}));
}

const onnx_operator onnx_roi_operators[] = {
    {.type = "RoiAlign",
     .since = 10,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .attributes = " coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale ",
     .convert = convert_roi_align},
    {.type = NULL},
};
