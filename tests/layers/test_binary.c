/* SPDX-License-Identifier: MIT */
/* binary and select: values with broadcasting, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_binary(model, x, 2, options);
}

static sdlf_node build_number(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_binary(model, x, 1, options);
}

/* x with what belongs to each channel. */
static sdlf_node build_channels(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node value = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(3, 1), .trainable = true});
    return sdlf_binary(model, (const sdlf_node[]){x[0], value}, 2, options);
}

/* Positive bases. */
static sdlf_node build_power(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node base = sdlf_unary(model, x[0], &(sdlf_unary_options){.function = SDLF_UNARY_EXP});
    return sdlf_binary(model, (const sdlf_node[]){base, x[1]}, 2, options);
}

static sdlf_node build_select(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node condition = sdlf_binary(model, x, 1, options);
    sdlf_node row = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(5), .trainable = true});
    return sdlf_select(model, condition, x[0], sdlf_binary(model, (const sdlf_node[]){row, x[0]}, 2, NULL));
}

enum { COUNT = 4 };

static void check_truth(sdlf_calculator *calculator, int function, const bool *expected)
{
    static const float x[COUNT] = {1, 2, 3, (float)NAN};
    bool y[COUNT];
    sdlf_plan *plan = NULL;
    sdlf_model *model = sdlf_model_create("truth");
    sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(COUNT));
    sdlf_output(model, "y",
                sdlf_binary(model, &in, 1, &(sdlf_binary_layer_options){.function = function, .scalar = 2}));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    for (int e = 0; e < COUNT; e++) CHECK(y[e] == expected[e]);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

static void comparisons_are_right(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        check_truth(calculator, SDLF_LAYER_EQUAL, (const bool[]){false, true, false, false});
        check_truth(calculator, SDLF_LAYER_LESS, (const bool[]){true, false, false, false});
        check_truth(calculator, SDLF_LAYER_LESS_EQUAL, (const bool[]){true, true, false, false});
        check_truth(calculator, SDLF_LAYER_GREATER, (const bool[]){false, false, true, false});
        check_truth(calculator, SDLF_LAYER_GREATER_EQUAL, (const bool[]){false, true, true, false});
        sdlf_calculator_close(calculator);
    }
}

static void shapes_follow(void)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK_OK(build_layer(&model, build, NULL, SDLF_INT32, sdlf_shape(3, 1), sdlf_shape(1, 4), &y));
    CHECK_TEXT(sdlf_shape_print(sdlf_model_node_shape(model, y)).text, "1x3x4");
    sdlf_model_free(model);
    CHECK_FAILS(build_layer(&model, build, NULL, SDLF_FLOAT32, sdlf_shape(3), sdlf_shape(4), &y), SDLF_ERROR_SHAPE,
                "1x3 and 1x4 cannot be broadcast");
    sdlf_model_free(model);
    check_refused(build, &(sdlf_binary_layer_options){.function = SDLF_LAYER_AND}, sdlf_shape(3), SDLF_ERROR_SHAPE,
                  "and does not take float32");
    CHECK_FAILS(build_layer(&model, build_number, NULL, SDLF_BOOL, sdlf_shape(3), sdlf_shape(3), &y), SDLF_ERROR_SHAPE,
                "add does not take bool");
    sdlf_model_free(model);
    model = sdlf_model_create("select");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_select(model, x, x, x);
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "expected a condition of bool, found float32");
    sdlf_model_free(model);
}

/* x and a value that is trained, of that shape: slopes, scales, positions. */
typedef struct trained_value {
    sdlf_binary_layer_options binary;
    sdlf_shape shape;
} trained_value;

static sdlf_node build_trained(sdlf_model *model, const sdlf_node *x, const void *options)
{
    const trained_value *wanted = options;
    sdlf_value_options value = {.name = "value", .shape = wanted->shape, .trainable = true};
    return sdlf_binary(model, (const sdlf_node[]){x[0], sdlf_value(model, &value)}, 2, &wanted->binary);
}

static void trained_values_match(void)
{
    const trained_value values[] = {
        {{.function = SDLF_LAYER_PRELU}, {3, {3, 1, 1}}},    {{.function = SDLF_LAYER_PRELU}, {3, {1, 1, 1}}},
        {{.function = SDLF_LAYER_MULTIPLY}, {3, {3, 1, 1}}}, {{.function = SDLF_LAYER_ADD}, {4, {1, 3, 2, 4}}},
        {{.function = SDLF_LAYER_SUBTRACT}, {1, {4}}},       {{.function = SDLF_LAYER_MULTIPLY}, {.rank = 0}},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        check_gradients(&(layer_case){
            .what = "with a value", .build = build_trained, .options = &values[i], .input = {sdlf_shape(2, 3, 2, 4)}});
}

static void gradients_match(void)
{
    static const int functions[] = {SDLF_LAYER_ADD,     SDLF_LAYER_SUBTRACT, SDLF_LAYER_MULTIPLY,
                                    SDLF_LAYER_MINIMUM, SDLF_LAYER_MAXIMUM,  SDLF_LAYER_PRELU};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        sdlf_binary_layer_options options = {.function = functions[i]};
        check_gradients(&(layer_case){.what = "of two",
                                      .build = build,
                                      .options = &options,
                                      .input = {sdlf_shape(2, 3, 4), sdlf_shape(2, 3, 1)},
                                      .input_count = 2});
    }
    const layer_case cases[] = {
        {.what = "channels",
         .build = build_channels,
         .options = &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY},
         .input = {sdlf_shape(2, 3, 4)}},
        {.what = "power",
         .build = build_power,
         .options = &(sdlf_binary_layer_options){.function = SDLF_LAYER_POWER},
         .input = {sdlf_shape(2, 5), sdlf_shape(2, 5)},
         .input_count = 2},
        {.what = "quotient",
         .build = build_number,
         .options = &(sdlf_binary_layer_options){.function = SDLF_LAYER_DIVIDE, .scalar = 1.5f},
         .input = {sdlf_shape(2, 5)}},
        {.what = "difference from a number",
         .build = build_number,
         .options = &(sdlf_binary_layer_options){.function = SDLF_LAYER_SUBTRACT, .scalar = 3, .scalar_first = true},
         .input = {sdlf_shape(2, 5)}},
        {.what = "select",
         .build = build_select,
         .options = &(sdlf_binary_layer_options){.function = SDLF_LAYER_GREATER},
         .input = {sdlf_shape(2, 5)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(comparisons_are_right);
    RUN(shapes_follow);
    RUN(gradients_match);
    RUN(trained_values_match);
    return test_summary();
}
