/* SPDX-License-Identifier: MIT */
/* Networks exported as C with types other than float: conversions at the ends of their ranges, integer arithmetic that
 * wraps around, indices, padding and resizing of integers. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/formats/c_program.h"

enum { FLOAT, INT32, INT64, UINT8, INT8, BOOL, TYPES };
static const char *const type_names[TYPES] = {"float", "int32", "int64", "uint8", "int8", "bool"};

static void give(sdlf_model *net, sdlf_node node, const char *what, const char *type)
{
    char name[64];
    snprintf(name, sizeof name, "%s %s", what, type);
    sdlf_output(net, name, node);
}

static sdlf_node value(sdlf_model *net, const char *name, int type, int64_t count)
{
    return sdlf_value(net, &(sdlf_value_options){.name = name, .dtype = type, .shape = sdlf_shape(count)});
}

static void set(sdlf_model *model, const char *name, const float *numbers, int64_t count)
{
    sdlf_parameter *parameter = sdlf_model_find_parameter(model, name);
    if (CHECK(parameter != NULL)) memcpy(parameter->value.data, numbers, (size_t)count * sizeof *numbers);
}

static sdlf_node cast(sdlf_model *net, sdlf_node x, int type)
{
    return sdlf_cast(net, x, &(sdlf_cast_options){.dtype = type});
}

/* Conversions between all types, with values that do not fit the target. `zero` prevents constant folding. */
static void conversions(void)
{
    static const float numbers[] = {
        0,     -0.0f,  1.9f,     -1.9f,     127.5f, 128,   -128.9f,      -129,          255.9f, 256,
        -1,    1e9f,   -1e9f,    3e9f,      -3e9f,  9e18f, 2147483648.f, -2147483648.f, 1e19f,  -1e19f,
        1e30f, -1e30f, INFINITY, -INFINITY, NAN,    0.25f, 200,          16777216};
    enum { COUNT = sizeof numbers / sizeof numbers[0] };
    for (int from = 0; from < TYPES; from++) {
        sdlf_model *net = sdlf_model_create("conversions");
        sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(1)), v = value(net, "v", FLOAT, COUNT);
        sdlf_node zero = sdlf_binary(net, &x, 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
        zero = sdlf_reshape(net, zero, &(sdlf_reshape_options){.shape = sdlf_shape(1), .whole = true});
        v = sdlf_binary(net, (const sdlf_node[]){v, zero}, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_ADD});
        v = cast(net, v, from);
        for (int to = 0; to < TYPES; to++) give(net, cast(net, v, to), type_names[from], type_names[to]);
        CHECK_OK(sdlf_model_build(net, 1));
        set(net, "v.value", numbers, COUNT);
        c_program_check_model(net);
        sdlf_model_free(net);
    }
}

/* Every function of two integers, with an array, a broadcast array and a scalar; division by 0 and -1, sums beyond the
 * range. */
static void integer_arithmetic(void)
{
    static const float a[] = {0, 1, -1, 7, -7, 100, -128, 127, 2147483648.f, -2147483648.f, 255, 3};
    static const float b[] = {0, -1, 3, 2, -2, 100, -1, 127, 2147483648.f, -1, 255, 31};
    for (int type = INT32; type < BOOL; type++) {
        sdlf_model *net = sdlf_model_create(type_names[type]);
        sdlf_node x = value(net, "a", type, 12), y = value(net, "b", type, 12), one = value(net, "c", type, 1);
        for (int f = 0; f < SDLF_LAYER_AND; f++) {
            if (f == SDLF_LAYER_PRELU) continue;
            char name[32];
            sdlf_binary_layer_options options = {.function = f, .scalar = -1};
            snprintf(name, sizeof name, "f%d", f);
            give(net, sdlf_binary(net, (const sdlf_node[]){x, y}, 2, &options), name, "pairs");
            give(net, sdlf_binary(net, (const sdlf_node[]){one, y}, 2, &options), name, "broadcast");
            give(net, sdlf_binary(net, &x, 1, &options), name, "number");
            options.scalar_first = true;
            give(net, sdlf_binary(net, &x, 1, &options), name, "number first");
        }
        CHECK_OK(sdlf_model_build(net, 1));
        set(net, "a.value", a, 12);
        set(net, "b.value", b, 12);
        set(net, "c.value", (const float[]){-2147483648.f}, 1);
        c_program_check_model(net);
        sdlf_model_free(net);
    }
}

/* Elements of any type are moved: selected, padded, cropped, permuted, repeated, resized. */
static void moves(void)
{
    static const sdlf_dtype dtypes[TYPES] = {SDLF_FLOAT32, SDLF_INT32, SDLF_INT64, SDLF_UINT8, SDLF_INT8, SDLF_BOOL};
    for (int type = 0; type < TYPES; type++) {
        sdlf_model *net = sdlf_model_create(type_names[type]);
        sdlf_node x = sdlf_input(net, "x", dtypes[type], sdlf_shape(2, 3, 5));
        sdlf_node where = sdlf_value(
            net, &(sdlf_value_options){.name = "where", .dtype = type == 0 ? INT32 : INT64, .shape = sdlf_shape(2, 3)});
        for (int axis = -3; axis < 4; axis += 2)
            give(net, sdlf_gather(net, x, where, &(sdlf_gather_options){.axis = axis}), "gather",
                 axis < 0   ? (axis < -1 ? "-3" : "-1")
                 : axis > 1 ? "3"
                            : "1");
        for (int mode = 0; mode < 4; mode++)
            give(net,
                 sdlf_pad(
                     net, x,
                     &(sdlf_pad_options){
                         .before = sdlf_shape(0, 1, -1, 2), .after = sdlf_shape(0, 0, 2, 1), .value = 3, .mode = mode}),
                 "pad", (const char *[]){"constant", "edge", "reflect", "wrap"}[mode]);
        give(net, sdlf_transpose(net, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 3, 1, 2)}), "turned", "");
        give(net, sdlf_tile(net, x, &(sdlf_tile_options){.repeats = sdlf_shape(1, 2, 1, 3)}), "tiled", "");
        give(net,
             sdlf_slice(net, x,
                        &(sdlf_slice_options){.axes = sdlf_shape(-1, 2),
                                              .start = sdlf_shape(-1, 0),
                                              .end = sdlf_shape(-100, 3),
                                              .step = sdlf_shape(-2, 2)}),
             "slice", "");
        give(net, sdlf_resize(net, x, &(sdlf_resize_options){.scale = 1.75f}), "resize", "");
        give(net, x, "itself", "");
        CHECK_OK(sdlf_model_build(net, 1));
        set(net, "where.value", (const float[]){0, -1, 1, 4, -5, 100}, 6);
        c_program_check_model(net);
        sdlf_model_free(net);
    }
}

/* NaN and equal values where order matters. */
static void orders(void)
{
    static const float numbers[] = {1, NAN, 3, 3, -INFINITY, NAN, INFINITY, 3, 0, -0.0f, INFINITY, 1};
    for (int cut = 6; cut <= 12; cut += 6) { /* the second half has only one NaN */
        sdlf_model *net = sdlf_model_create("orders");
        sdlf_node v = value(net, "v", FLOAT, 12);
        v = sdlf_slice(
            net, v, &(sdlf_slice_options){.axes = sdlf_shape(0), .start = sdlf_shape(cut - 6), .end = sdlf_shape(12)});
        for (int smallest = 0; smallest < 2; smallest++) {
            sdlf_node top = sdlf_top_k(net, v, &(sdlf_top_k_layer_options){.k = 5, .axis = -1, .smallest = smallest});
            give(net, top, "top", smallest ? "small" : "large");
            give(net, (sdlf_node){top.layer, 1}, "places", smallest ? "small" : "large");
            for (int last = 0; last < 2; last++)
                give(net,
                     sdlf_arg_reduce(net, v,
                                     &(sdlf_arg_reduce_layer_options){.axis = -1, .smallest = smallest, .last = last}),
                     smallest ? "smallest" : "largest", last ? "last" : "first");
        }
        for (int f = SDLF_REDUCE_LAYER_MAX; f <= SDLF_REDUCE_LAYER_MIN; f++)
            give(net, sdlf_reduce(net, v, &(sdlf_reduce_options){.function = f}), "reduced",
                 f == SDLF_REDUCE_LAYER_MAX ? "max" : "min");
        CHECK_OK(sdlf_model_build(net, 1));
        set(net, "v.value", numbers, 12);
        c_program_check_model(net);
        sdlf_model_free(net);
    }
}

int main(void)
{
    RUN(conversions);
    RUN(integer_arithmetic);
    RUN(moves);
    RUN(orders);
    return test_summary();
}
