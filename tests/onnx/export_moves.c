/* SPDX-License-Identifier: MIT */
/* The networks with data movement and resizing. See export_cases.h. */
#include "onnx/export_nodes.h"

/* ---- moves ---- */

void export_moves(sdlf_model *net)
{
    sdlf_node x = image(net, 8, 4, 6);
    const sdlf_node three[] = {x, sdlf_relu(net, x), x};
    sdlf_node index = as_integer(net, sdlf_input(net, "index", SDLF_FLOAT32, SDLF_SCALAR), 1);
    give(net, sdlf_flatten(net, x));
    give(net, sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(4, -1, 6)}));
    give(net, sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(-1, 48), .whole = true}));
    give(net, sdlf_transpose(net, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 3, 1, 2)}));
    give(net, sdlf_transpose(net, x, NULL));
    for (int mode = 0; mode < 2; mode++) {
        give(net, sdlf_depth_to_space(net, x, &(sdlf_depth_to_space_options){.block = 2, .mode = mode}));
        give(net, sdlf_space_to_depth(net, x, &(sdlf_space_to_depth_options){.block = 2, .mode = mode}));
    }
    give(net, sdlf_concat(net, three, 3, NULL));
    give(net, sdlf_concat(net, three, 2, &(sdlf_concat_options){.axis = -1}));
    give(net, sdlf_slice(net, x,
                         &(sdlf_slice_options){.axes = sdlf_shape(1, 3),
                                               .start = sdlf_shape(1, -1),
                                               .end = sdlf_shape(7, -100),
                                               .step = sdlf_shape(3, -2)}));
    give(net, sdlf_slice(net, x,
                         &(sdlf_slice_options){
                             .axes = sdlf_shape(2), .start = sdlf_shape(-3), .end = sdlf_shape(2147483647)}));
    give(net, sdlf_tile(net, x, &(sdlf_tile_options){.repeats = sdlf_shape(1, 2, 1, 3)}));
    give(net, sdlf_gather(net, x, index, NULL));
    give(net, sdlf_gather(net, x, sdlf_cast(net, index, &(sdlf_cast_options){.dtype = 2}),
                          &(sdlf_gather_options){.axis = 3}));
    for (int mode = 0; mode < 3; mode++)
        give(net, sdlf_pad(net, x,
                           &(sdlf_pad_options){.before = sdlf_shape(0, 0, 2, -1),
                                               .after = sdlf_shape(0, mode == 0 ? 3 : 0, 1, 2),
                                               .value = 1.5f,
                                               .mode = mode}));
    give(net, as_integer(net, x, 3 + 1));
    give(net, sdlf_cast(net, x, &(sdlf_cast_options){.dtype = 5}));
    /* far outside the range of every integer, and NaN */
    sdlf_node far = number(net, x, SDLF_LAYER_MULTIPLY, 1e25f, false), nan = function(net, far, SDLF_UNARY_LOG);
    for (int dtype = 1; dtype <= 4; dtype++) {
        give(net, sdlf_cast(net, far, &(sdlf_cast_options){.dtype = dtype}));
        give(net, sdlf_cast(net, nan, &(sdlf_cast_options){.dtype = dtype}));
    }
}

/* Integers that do not fit other types: of 20 x, of 1000 x and of the whole range; bytes with and without a sign. */
void export_narrowed(sdlf_model *net)
{
    sdlf_node x = image(net, 2, 4, 6), far = number(net, x, SDLF_LAYER_MULTIPLY, 1e25f, false);
    sdlf_node thousands = number(net, x, SDLF_LAYER_MULTIPLY, 1000, false);
    for (int from = 1; from <= 4; from++) {
        const sdlf_node wide[] = {as_integer(net, x, from),
                                  sdlf_cast(net, thousands, &(sdlf_cast_options){.dtype = from}),
                                  sdlf_cast(net, far, &(sdlf_cast_options){.dtype = from})};
        for (int to = 1; to <= 4; to++)
            for (int i = 0; i < 3 && to != from; i++)
                give(net, sdlf_cast(net, wide[i], &(sdlf_cast_options){.dtype = to}));
    }
}

void export_expansions(sdlf_model *net)
{
    sdlf_node x = sdlf_input(net, "row", SDLF_FLOAT32, sdlf_shape(4, 1));
    sdlf_node value = sdlf_value(net, &(sdlf_value_options){.name = "table", .shape = sdlf_shape(2, 3), .dtype = 2});
    give(net, sdlf_expand(net, x, &(sdlf_expand_options){.shape = sdlf_shape(3, 1, 1, 5)}));
    give(net, value);
    give(net, x);
    give(net, x);
    sdlf_node token = sdlf_value(net, &(sdlf_value_options){.name = "token", .shape = sdlf_shape(1, 2, 1)});
    token = sdlf_expand(net, token, &(sdlf_expand_options){.shape = sdlf_shape(2, 1), .samples = true});
    give(net, sdlf_concat(net, (const sdlf_node[]){token, x}, 2, NULL));
}

void export_wrapped(sdlf_model *net)
{
    give(net,
         sdlf_pad(net, image(net, 2, 4, 6),
                  &(sdlf_pad_options){.before = sdlf_shape(0, 0, 2, 1), .after = sdlf_shape(0, 0, 1, 2), .mode = 3}));
}

void export_batch_of_one(sdlf_model *net)
{
    sdlf_node x = image(net, 2, 4, 6);
    give(net, sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(2, 24), .whole = true}));
    give(net, sdlf_relu(net, x));
}

/* ---- resize ---- */

/* Two axes by a scale. */
void export_stretched(sdlf_model *net)
{
    sdlf_node x = image(net, 2, 5, 6);
    for (int coordinates = 0; coordinates < 4; coordinates++) {
        for (int rounding = 0; rounding < 4; rounding++)
            give(net,
                 sdlf_resize(net, x,
                             &(sdlf_resize_options){.scale = 2.75f, .coordinates = coordinates, .rounding = rounding}));
        give(net, sdlf_resize(net, x, &(sdlf_resize_options){.scale = 1.5f, .mode = 1, .coordinates = coordinates}));
        give(net, sdlf_resize(net, x, &(sdlf_resize_options){.scale = 0.6f, .mode = 1, .coordinates = coordinates}));
        give(net, sdlf_resize(net, x, &(sdlf_resize_options){.scale = 2, .mode = 2, .coordinates = coordinates}));
    }
    give(net, sdlf_resize(net, x, &(sdlf_resize_options){.sizes = sdlf_shape(10, 3), .mode = 1}));
    give(net,
         sdlf_resize(net, x, &(sdlf_resize_options){.scale = 2, .mode = 2, .cubic = -0.5f, .exclude_outside = true}));
}

void export_sized(sdlf_model *net)
{
    sdlf_node x = image(net, 2, 5, 6);
    give(net, sdlf_resize(net, x, &(sdlf_resize_options){.sizes = sdlf_shape(7, 11), .mode = 1}));
    give(net, sdlf_resize(net, x, &(sdlf_resize_options){.sizes = sdlf_shape(3, 4), .mode = 1, .antialias = true}));
    give(net, sdlf_resize(net, x, &(sdlf_resize_options){.sizes = sdlf_shape(3, 4), .mode = 2, .antialias = true}));
}

void export_symmetric(sdlf_model *net)
{
    give(net, sdlf_resize(net, image(net, 2, 5, 6),
                          &(sdlf_resize_options){
                              .scale = 1.7f, .mode = 1, .coordinates = SDLF_COORDINATES_HALF_PIXEL_SYMMETRIC}));
}

void export_cropped(sdlf_model *net)
{
    give(net, sdlf_resize(net, image(net, 2, 5, 6),
                          &(sdlf_resize_options){.axes = sdlf_shape(2, 3),
                                                 .sizes = sdlf_shape(4, 9),
                                                 .mode = 1,
                                                 .coordinates = SDLF_COORDINATES_CROP,
                                                 .start = -0.25f,
                                                 .end = 0.75f,
                                                 .extrapolates = true,
                                                 .outside = 9}));
}
