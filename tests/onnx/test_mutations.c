/* SPDX-License-Identifier: MIT */
/* Regressions found by scripts/mutate-onnx.py: models of one node with a changed field, for which SDLF deviated from the
 * standard. */
#include "testing.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/fixtures.h"
#include "onnx/one_node.h"

/* Flags other than 0 and 1 are true to some programs and false to others. */
static void flags_are_0_or_1(void)
{
    one_model m = {"ReduceMax",
                   13,
                   ONE_FLOAT,
                   {{ONE_FLOAT, 2, {2, 2}, {4, 3, 2, 1}, false}},
                   {{"keepdims", NULL, {1}, 0, {0}, 0}}};
    one_check(&m, "1x1", (const double[]){4});
    m.attribute[0].integer[0] = 2;
    one_check_refused(&m, SDLF_ERROR_FORMAT, "attribute 'keepdims' is 2; 0 or 1 was expected");
    m.attribute[0].integer[0] = -1;
    one_check_refused(&m, SDLF_ERROR_FORMAT, "attribute 'keepdims' is -1; 0 or 1 was expected");
    m = (one_model){"AveragePool",
                    19,
                    ONE_FLOAT,
                    {{ONE_FLOAT, 3, {1, 1, 3}, {4, 3, 2}, false}},
                    {{"kernel_shape", NULL, {2}, 1, {0}, 0}, {"ceil_mode", NULL, {INT64_MAX}, 0, {0}, 0}}};
    one_check_refused(&m, SDLF_ERROR_FORMAT, "attribute 'ceil_mode' is 9223372036854775807; 0 or 1 was expected");
}

/* Integer overflow wraps around, for constants as well as for computed values. */
static void integers_of_constants_wrap_around(void)
{
    for (int constant = 0; constant < 2; constant++) {
        bool c = constant == 1;
        one_check(
            &(one_model){
                "Add", 14, ONE_INT32, {{ONE_INT32, 1, {2}, {INT32_MAX, -5}, c}, {ONE_INT32, 1, {2}, {1, 5}, c}}, {{0}}},
            "2", (const double[]){INT32_MIN, 0});
        one_check(
            &(one_model){
                "Mul", 14, ONE_UINT8, {{ONE_UINT8, 1, {2}, {200, 16}, c}, {ONE_UINT8, 1, {2}, {2, 16}, c}}, {{0}}},
            "2", (const double[]){144, 0});
        one_check(&(one_model){"Cast",
                               13,
                               ONE_INT8,
                               {{ONE_INT64, 1, {3}, {300, -129, 4294967295.0}, c}},
                               {{"to", NULL, {ONE_INT8}, 0, {0}, 0}}},
                  "3", (const double[]){44, 127, -1});
        one_check(&(one_model){"Pow",
                               13,
                               ONE_INT32,
                               {{ONE_INT32, 1, {3}, {3, -2, 2}, c}, {ONE_INT32, 1, {3}, {21, 31, -1}, c}},
                               {{0}}},
                  "3", (const double[]){1870418611, INT32_MIN, 0});
    }
}

/* The default bounds are the largest floats. */
static void bounds_of_clip(void)
{
    const one_input x = {ONE_FLOAT, 1, {4}, {1e35, -1e35, 2, -3}, false}, none = {0};
    one_check(&(one_model){"Clip", 11, ONE_FLOAT, {x, {ONE_FLOAT, 0, {0}, {-1}, true}}, {{0}}}, "4",
              (const double[]){1e35, -1, 2, -1});
    one_check(&(one_model){"Clip", 11, ONE_FLOAT, {x, none, {ONE_FLOAT, 0, {0}, {1}, true}}, {{0}}}, "4",
              (const double[]){1, -1e35, 1, -3});
    one_check(&(one_model){"Clip", 11, ONE_FLOAT, {x, none, {ONE_FLOAT, 0, {0}, {1e34}, true}}, {{0}}}, "4",
              (const double[]){1e34, -1e35, 2, -3});
    /* explicitly infinite bounds let infinity pass */
    const one_input wide = {ONE_FLOAT, 1, {4}, {INFINITY, -INFINITY, 2, -3}, false};
    one_check(&(one_model){"Clip",
                           11,
                           ONE_FLOAT,
                           {wide, {ONE_FLOAT, 0, {0}, {-1}, true}, {ONE_FLOAT, 0, {0}, {INFINITY}, true}},
                           {{0}}},
              "4", (const double[]){INFINITY, -1, 2, -1});
}

/* The largest float, which represents an open side, survives a network file. */
static void open_bounds_in_a_file(void)
{
    const one_input x = {ONE_FLOAT, 1, {1}, {0}, false}, low = {ONE_FLOAT, 0, {0}, {-1}, true};
    sdlf_model *model = NULL, *again = NULL;
    char *text = NULL;
    if (CHECK_OK(one_import(&model, &(one_model){"Clip", 11, ONE_FLOAT, {x, low}, {{0}}})) &&
        CHECK_OK(sdlf_network_write(model, &text)))
        CHECK_OK(sdlf_network_parse(&again, text, strlen(text), "clip"));
    free(text);
    sdlf_model_free(model);
    sdlf_model_free(again);
}

/* Cropping happens before the edge, reflection or wrap padding is computed from the rest. */
static void pads_that_crop(void)
{
    const one_input x = {ONE_FLOAT, 1, {4}, {1, 2, 3, 4}, false}, pads = {ONE_INT64, 1, {2}, {-1, 2}, true};
    one_check(&(one_model){"Pad", 19, ONE_FLOAT, {x, pads}, {{"mode", "wrap", {0}, 0, {0}, 0}}}, "5",
              (const double[]){2, 3, 4, 2, 3});
    one_check(
        &(one_model){"Pad", 19, ONE_FLOAT, {x, {ONE_INT64, 1, {2}, {2, -2}, true}}, {{"mode", "edge", {0}, 0, {0}, 0}}},
        "4", (const double[]){1, 1, 1, 2});
    one_check(
        &(one_model){
            "Pad", 19, ONE_FLOAT, {x, {ONE_INT64, 1, {2}, {2, -1}, true}}, {{"mode", "reflect", {0}, 0, {0}, 0}}},
        "5", (const double[]){3, 2, 1, 2, 3});
    one_check_refused(
        &(one_model){"Pad",
                     19,
                     ONE_FLOAT,
                     {x, {ONE_INT64, 1, {4}, {1, 1, 1, 1}, true}, {0}, {ONE_INT64, 1, {2}, {0, -1}, true}},
                     {{0}}},
        SDLF_ERROR_FORMAT, "axis 0 is named twice");
}

/* Empty parts must also have the same rank and the same sizes other than along the axis. */
static void parts_without_elements(void)
{
    one_model join = {"Concat",
                      13,
                      ONE_FLOAT,
                      {{ONE_FLOAT, 2, {2, 2}, {1, 2, 3, 4}, false}, {ONE_FLOAT, 2, {2, 0}, {0}, true}},
                      {{"axis", NULL, {1}, 0, {0}, 0}}};
    one_check(&join, "2x2", (const double[]){1, 2, 3, 4});
    join.attribute[0].integer[0] = 0;
    one_check_refused(&join, SDLF_ERROR_FORMAT, "inputs 0 and 1 do not fit together");
    join.attribute[0].name = NULL;
    one_check_refused(&join, SDLF_ERROR_FORMAT, "attribute 'axis' is missing");
}

/* One support vector with one coefficient still has an output of two dimensions. */
static void one_support_vector(void)
{
    one_check(&(one_model){"ai.onnx.ml.SVMRegressor",
                           17,
                           ONE_FLOAT,
                           {{ONE_FLOAT, 2, {2, 1}, {1, 2}, false}},
                           {{"kernel_type", "LINEAR", {0}, 0, {0}, 0},
                            {"n_supports", NULL, {1}, 0, {0}, 0},
                            {"support_vectors", NULL, {0}, 0, {3}, 1},
                            {"coefficients", NULL, {0}, 0, {2}, 1},
                            {"rho", NULL, {0}, 0, {0.5f}, 1}}},
              "2x1", (const double[]){6.5, 12.5});
}

static void infinity(void)
{
    one_check(&(one_model){"ReduceLogSumExp",
                           13,
                           ONE_FLOAT,
                           {{ONE_FLOAT, 2, {3, 2}, {INFINITY, 1, -INFINITY, -INFINITY, -INFINITY, 2}, false}},
                           {{"axes", NULL, {1}, 1, {0}, 0}, {"keepdims", NULL, {0}, 0, {0}, 0}}},
              "3", (const double[]){INFINITY, -INFINITY, 2});
    one_check(&(one_model){"Softplus", 13, ONE_FLOAT, {{ONE_FLOAT, 1, {2}, {-INFINITY, INFINITY}, false}}, {{0}}}, "2",
              (const double[]){0, INFINITY});
}

static void conditions_are_bools(void)
{
    const one_input x = {ONE_INT64, 1, {2}, {1, 2}, true}, real = {ONE_FLOAT, 0, {0}, {1}, true};
    one_check_refused(&(one_model){"Where", 16, ONE_INT64, {x, x, x}, {{0}}}, SDLF_ERROR_FORMAT,
                      "a condition of int64");
    one_check_refused(&(one_model){"Where", 16, ONE_FLOAT, {real, real, real}, {{0}}}, SDLF_ERROR_UNSUPPORTED,
                      "expected a condition of bool");
}

/* An epsilon of 0 means 0, not the default. */
static void no_epsilon(void)
{
    const one_input one = {ONE_FLOAT, 1, {1}, {1}, true}, none = {ONE_FLOAT, 1, {1}, {0}, true};
    one_check(&(one_model){"BatchNormalization",
                           15,
                           ONE_FLOAT,
                           {{ONE_FLOAT, 2, {1, 1}, {2}, false}, one, none, none, {ONE_FLOAT, 1, {1}, {1e-4}, true}},
                           {{"epsilon", NULL, {0}, 0, {0}, -1}}},
              "1x1", (const double[]){200});
    one_check(&(one_model){"BatchNormalization",
                           15,
                           ONE_FLOAT,
                           {{ONE_FLOAT, 2, {1, 1}, {2}, false}, one, none, none, {ONE_FLOAT, 1, {1}, {0x1p-40}, true}},
                           {{"epsilon", NULL, {0}, 0, {0}, -1}}},
              "1x1", (const double[]){0x1p21});
}

/* Inputs may have one dimension as well as two. */
static void features_of_one_sample(void)
{
    const one_input x = {ONE_FLOAT, 1, {2}, {3, -1}, false};
    one_check(&(one_model){"ai.onnx.ml.Scaler",
                           17,
                           ONE_FLOAT,
                           {x},
                           {{"offset", NULL, {0}, 0, {1, 0}, 2}, {"scale", NULL, {0}, 0, {2, 4}, 2}}},
              "2", (const double[]){4, -4});
    one_check(&(one_model){"ai.onnx.ml.Imputer",
                           17,
                           ONE_FLOAT,
                           {x},
                           {{"imputed_value_floats", NULL, {0}, 0, {7, 8}, 2},
                            {"replaced_value_float", NULL, {0}, 0, {3}, -1}}},
              "2", (const double[]){7, -1});
}

static void rows_that_are_not_there(void)
{
    const one_input x = {ONE_FLOAT, 2, {2, 2}, {1, 2, 3, 4}, false};
    one_check_refused(&(one_model){"Gather", 13, ONE_FLOAT, {x, {ONE_INT64, 1, {3}, {0, -2, 2}, true}}, {{0}}},
                      SDLF_ERROR_FORMAT, "index 2 is not one of 2");
    one_check_refused(&(one_model){"GatherElements", 13, ONE_FLOAT, {x, {ONE_INT64, 2, {2, 1}, {0, -3}, true}}, {{0}}},
                      SDLF_ERROR_FORMAT, "index -3 is not one of 2");
    one_check_refused(&(one_model){"GatherND", 13, ONE_FLOAT, {x, {ONE_INT64, 2, {1, 2}, {0, 2}, true}}, {{0}}},
                      SDLF_ERROR_FORMAT, "index 2 is not one of 2");
}

static void sequences_that_are_too_long(void)
{
    one_model m = {"ReverseSequence",
                   10,
                   ONE_FLOAT,
                   {{ONE_FLOAT, 2, {3, 2}, {1, 2, 3, 4, 5, 6}, false}, {ONE_INT64, 1, {2}, {2, 3}, true}},
                   {{0}}};
    one_check(&m, "3x2", (const double[]){3, 6, 1, 4, 5, 2});
    m.input[1].value[0] = 4;
    one_check_refused(&m, SDLF_ERROR_FORMAT, "a sequence of 4 of 3");
}

/* Before opset 18, a shorter last part is invalid. */
static void parts_that_are_not_equal(void)
{
    const one_model split = {"Split", 13, ONE_FLOAT, {{ONE_FLOAT, 1, {3}, {1, 2, 3}, false}}, {{0}}};
    one_check_refused(&split, SDLF_ERROR_FORMAT, "3 elements in 2 equal parts");
}

static void scales_and_zero_points(void)
{
    one_model m = {
        "DequantizeLinear", 13, ONE_FLOAT, {{ONE_UINT8, 1, {2}, {1, 2}, false}, {ONE_UINT8, 0, {0}, {3}, true}}, {{0}}};
    one_check_refused(&m, SDLF_ERROR_FORMAT, "a scale of uint8");
    m.input[1].type = ONE_FLOAT;
    one_check(&m, "2", (const double[]){3, 6});
    m.input[2] = (one_input){ONE_UINT8, 1, {2}, {0, 1}, true};
    one_check_refused(&m, SDLF_ERROR_FORMAT, "its scale is scalar, and its zero point 2");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(flags_are_0_or_1);
    RUN(integers_of_constants_wrap_around);
    RUN(bounds_of_clip);
    RUN(features_of_one_sample);
    RUN(rows_that_are_not_there);
    RUN(sequences_that_are_too_long);
    RUN(parts_that_are_not_equal);
    RUN(scales_and_zero_points);
    RUN(open_bounds_in_a_file);
    RUN(no_epsilon);
    RUN(conditions_are_bools);
    RUN(pads_that_crop);
    RUN(parts_without_elements);
    RUN(one_support_vector);
    RUN(infinity);
    return test_summary();
}
