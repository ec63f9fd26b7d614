/* SPDX-License-Identifier: MIT */
/* reduce, arg_reduce and gather: values, shapes, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_reduce(model, x[0], options);
}

/* Away from 0, where norms, logarithms and quotients are smooth. */
static sdlf_node build_positive(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_reduce(model, sdlf_unary(model, x[0], &(sdlf_unary_options){.function = SDLF_UNARY_EXP}), options);
}

static sdlf_node build_arg(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_arg_reduce(model, x[0], options);
}

static sdlf_node build_gather(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node first = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(2, 2), .dtype = 2}); /* zeros */
    return sdlf_gather(model, x[0], first, options);
}

static void shapes_follow(void)
{
    check_output(build, &(sdlf_reduce_options){.axes = {2, {1, -1}}}, sdlf_shape(3, 4, 5), sdlf_shape(4));
    check_output(build, &(sdlf_reduce_options){.axes = {2, {1, -1}}, .keep = true}, sdlf_shape(3, 4, 5),
                 sdlf_shape(1, 4, 1));
    check_refused(build, &(sdlf_reduce_options){.axes = {1, {4}}}, sdlf_shape(3, 4, 5), SDLF_ERROR_SHAPE,
                  "axis 4 is not one of its input 1x3x4x5");
    check_refused(build, &(sdlf_reduce_options){.axes = {2, {1, -3}}}, sdlf_shape(3, 4, 5), SDLF_ERROR_SHAPE,
                  "axis 1 is named twice");
    check_integers_refused(build, NULL, sdlf_shape(3));
    check_output(build_arg, &(sdlf_arg_reduce_layer_options){.axis = -1}, sdlf_shape(3, 4), sdlf_shape(3));
    check_output(build_arg, &(sdlf_arg_reduce_layer_options){.axis = 1, .keep = true}, sdlf_shape(3, 4),
                 sdlf_shape(1, 4));
    check_refused(build_arg, &(sdlf_arg_reduce_layer_options){.axis = 3}, sdlf_shape(3, 4), SDLF_ERROR_SHAPE, "axis 3");
    check_output(build_gather, &(sdlf_gather_options){.axis = 1}, sdlf_shape(6, 4), sdlf_shape(2, 2, 4));
    sdlf_model *model = sdlf_model_create("gather");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_gather(model, x, x, NULL);
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "expected indices of int32 or int64, found float32");
    sdlf_model_free(model);
}

/* Of (1,2,3,4; -5,6,7,8; 1,1,1,-2) over the last axis, and over everything. */
static void values_match(void)
{
    static const float x[12] = {1, 2, 3, 4, -5, 6, 7, 8, 1, 1, 1, -2};
    static const double expected[SDLF_REDUCE_LAYER_FUNCTION_COUNT][4] = {
        {10, 16, 1, 27},
        {2.5, 4, 0.25, 2.25},
        {4, 8, 1, 8},
        {1, -5, -2, -5},
        {24, -1680, -2, 80640},
        {10, 26, 5, 41},
        {5.4772255750516612, 13.190905958272919, 2.6457513110645907, 14.52583904633395},
        {30, 174, 7, 211},
        {2.3025850929940459, 2.7725887222397811, 0, 3.2958368660043291},
        {4.440189698561196, 8.407607468106944, 2.1150717745323533, 8.428166960347925}};
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        for (int function = 0; function < SDLF_REDUCE_LAYER_FUNCTION_COUNT; function++) {
            sdlf_plan *plan = NULL;
            float rows[3], all;
            sdlf_model *model = sdlf_model_create("values");
            sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(4));
            sdlf_reduce_options options = {.function = function};
            sdlf_output(model, "all", sdlf_reduce(model, in, &options));
            options.axes = sdlf_shape(-1);
            sdlf_output(model, "rows", sdlf_reduce(model, in, &options));
            CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 3, .forward = calculator}));
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "rows", rows));
            CHECK_OK(test_plan_read(plan, "all", &all));
            const double *wanted = expected[function];
            for (int row = 0; row < 3; row++) CHECK_CLOSE(rows[row], wanted[row], 2e-6 * (1 + fabs(wanted[row])));
            CHECK_CLOSE(all, wanted[3], 2e-4);
            sdlf_plan_free(plan);
            sdlf_model_free(model);
        }
        sdlf_calculator_close(calculator);
    }
}

static void gradients_match(void)
{
    for (int function = 0; function < SDLF_REDUCE_LAYER_FUNCTION_COUNT; function++) {
        sdlf_reduce_options options = {.function = function, .axes = {2, {1, 3}}};
        check_gradients(&(layer_case){
            .what = "reduce", .build = build_positive, .options = &options, .input = {sdlf_shape(2, 3, 4, 2)}});
    }
    const layer_case cases[] = {
        {.what = "norm",
         .build = build,
         .options = &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_L1, .axes = {1, {1}}, .keep = true},
         .input = {sdlf_shape(2, 5, 3)}},
        {.what = "gather",
         .build = build_gather,
         .options = &(sdlf_gather_options){.axis = -1},
         .input = {sdlf_shape(2, 3, 4)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(values_match);
    RUN(gradients_match);
    return test_summary();
}
