/* SPDX-License-Identifier: MIT */
/* matmul, conv_transpose2d, layer_norm, group_norm, lrn, top_k, resize, and pad's modes: values, rejected inputs,
 * gradients. */
#include "layers/gradients.h"

static sdlf_node build_matmul(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_matmul(model, x[0], x[1], options);
}

/* A matrix of the network's own on the right. */
static sdlf_node build_projected(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node matrix = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(4, 2), .trainable = true});
    return sdlf_matmul(model, x[0], matrix, options);
}

/* Batches with a batch of matrices of the network's own, broadcast over the plan's. */
static sdlf_node build_broadcast(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node matrix = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(3, 2, 4), .trainable = true});
    return sdlf_matmul(model, x[0], matrix, options);
}

static sdlf_node build_transpose(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_conv_transpose2d(model, x[0], options);
}

static sdlf_node build_layer_norm(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_layer_norm(model, x[0], options);
}

static sdlf_node build_group_norm(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_group_norm(model, x[0], options);
}

static sdlf_node build_lrn(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_lrn(model, x[0], options);
}

static sdlf_node build_top_k(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_top_k(model, x[0], options);
}

static sdlf_node build_resize(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_resize(model, x[0], options);
}

static sdlf_node build_pad(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_pad(model, x[0], options);
}

/* ---- values ---- */

/* y of x = 1, 2, ... in that shape, one sample, on every calculator. */
static void check_values(layer_builder *build, const void *options, sdlf_shape shape, const double *expected, int count)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        float x[64], y[64];
        for (int e = 0; e < 64; e++) x[e] = (float)(e + 1);
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        sdlf_model *model = sdlf_model_create("values");
        sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, shape);
        sdlf_output(model, "y", build(model, &in, options));
        if (CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", y));
            for (int e = 0; e < count; e++) CHECK_CLOSE(y[e], expected[e], 1e-5 * (1 + fabs(expected[e])));
        }
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

static void values_match(void)
{
    sdlf_resize_options twice = {.axes = {1, {-1}}, .scale = 2};
    check_values(build_resize, &twice, sdlf_shape(3), (const double[]){1, 1, 2, 2, 3, 3}, 6);
    twice.mode = 1;
    check_values(build_resize, &twice, sdlf_shape(3), (const double[]){1, 1.25, 1.75, 2.25, 2.75, 3}, 6);
    twice.coordinates = SDLF_COORDINATES_ALIGN_CORNERS;
    check_values(build_resize, &twice, sdlf_shape(3), (const double[]){1, 1.4, 1.8, 2.2, 2.6, 3}, 6);
    sdlf_resize_options half = {.axes = {1, {1}}, .sizes = {1, {2}}, .mode = 1, .antialias = true};
    check_values(build_resize, &half,
                 sdlf_shape(4), /* weights 1, 3, 3, 1 around 0.5, the first element again before it */
                 (const double[]){(1.0 + 3 + 6 + 3) / 8, (2.0 + 9 + 12 + 4) / 8}, 2);
    sdlf_pad_options around = {.before = {2, {0, 2}}, .after = {2, {0, 3}}, .mode = 1};
    check_values(build_pad, &around, sdlf_shape(3), (const double[]){1, 1, 1, 2, 3, 3, 3, 3}, 8);
    around.mode = 2;
    check_values(build_pad, &around, sdlf_shape(3), (const double[]){3, 2, 1, 2, 3, 2, 1, 2}, 8);
    around.mode = 3;
    check_values(build_pad, &around, sdlf_shape(3), (const double[]){2, 3, 1, 2, 3, 1, 2, 3}, 8);
    check_values(build_top_k, &(sdlf_top_k_layer_options){.k = 2}, sdlf_shape(2, 3), (const double[]){3, 2, 6, 5}, 4);
    check_values(build_top_k, &(sdlf_top_k_layer_options){.k = 1, .smallest = true}, sdlf_shape(2, 3),
                 (const double[]){1, 4}, 2);
    double s = 1 / sqrt(2.0 / 3 + 1e-5);
    check_values(build_layer_norm, NULL, sdlf_shape(2, 3), (const double[]){-s, 0, s, -s, 0, s}, 6);
    check_values(build_group_norm, NULL, sdlf_shape(2, 3), (const double[]){-s, 0, s, -s, 0, s}, 6);
    check_values(build_lrn, &(sdlf_lrn_options){.size = 2, .alpha = 2, .beta = 1}, sdlf_shape(3),
                 (const double[]){1.0 / 6, 2.0 / 14, 3.0 / 10}, 3);
}

static void nonsense_is_refused(void)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK_FAILS(build_layer(&model, build_matmul, NULL, SDLF_FLOAT32, sdlf_shape(2, 3), sdlf_shape(4, 3), &y),
                SDLF_ERROR_SHAPE, "1x2x3 and 1x4x3 cannot be multiplied");
    sdlf_model_free(model);
    CHECK_OK(build_layer(&model, build_matmul, &(sdlf_matmul_options){.transpose_b = true}, SDLF_FLOAT32,
                         sdlf_shape(2, 3), sdlf_shape(4, 3), &y));
    CHECK_TEXT(sdlf_shape_print(sdlf_model_node_shape(model, y)).text, "1x2x4");
    sdlf_model_free(model);
    sdlf_conv_transpose2d_options conv = {.filters = 4, .kernel = {3, 3}, .stride = {2, 2}, .output_padding = {2, 1}};
    check_refused(build_transpose, &conv, sdlf_shape(2, 3, 3), SDLF_ERROR_SHAPE, "output_padding 2 is not less than");
    conv.output_padding[0] = 1;
    check_output(build_transpose, &conv, sdlf_shape(2, 3, 3), sdlf_shape(4, 8, 8));
    conv.groups = 3;
    check_refused(build_transpose, &conv, sdlf_shape(2, 3, 3), SDLF_ERROR_SHAPE, "do not divide into 3 groups");
    check_refused(build_layer_norm, &(sdlf_layer_norm_options){.axis = 4}, sdlf_shape(2, 3), SDLF_ERROR_SHAPE,
                  "axis 4");
    check_refused(build_group_norm, &(sdlf_group_norm_options){.groups = 2}, sdlf_shape(3, 3), SDLF_ERROR_SHAPE,
                  "3 channels do not divide into 2 groups");
    check_refused(build_lrn, NULL, sdlf_shape(3), SDLF_ERROR_ARGUMENT, "size: expected 1");
    check_refused(build_top_k, &(sdlf_top_k_layer_options){.k = 4}, sdlf_shape(3), SDLF_ERROR_SHAPE, "k is 4");
    check_refused(build_resize, NULL, sdlf_shape(3, 4, 4), SDLF_ERROR_SHAPE, "expected a scale, or a size");
    check_refused(build_resize, &(sdlf_resize_options){.scale = 0.2f}, sdlf_shape(3, 4, 4), SDLF_ERROR_SHAPE,
                  "with no elements");
    check_output(build_resize, &(sdlf_resize_options){.scale = 1.5f}, sdlf_shape(3, 4, 5), sdlf_shape(3, 6, 7));
}

static void gradients_match(void)
{
    const sdlf_conv_transpose2d_options conv = {
        .filters = 4, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .output_padding = {1, 0}, .groups = 2};
    const sdlf_resize_options linear = {.scale = 1.75f, .mode = 1}, nearest = {.sizes = {2, {5, 2}}},
                              cubic = {.sizes = {2, {2, 5}}, .mode = 2, .antialias = true};
    const sdlf_pad_options reflect = {.before = {3, {0, 2, 0}}, .after = {3, {0, 1, 3}}, .mode = 2},
                           edge = {.before = {3, {0, 1, -1}}, .after = {3, {0, 0, 2}}, .mode = 1};
    const layer_case cases[] = {
        {.what = "products",
         .build = build_matmul,
         .input = {sdlf_shape(2, 3, 4), sdlf_shape(2, 4, 2)},
         .input_count = 2},
        {.what = "turned products",
         .build = build_matmul,
         .options = &(sdlf_matmul_options){.transpose_a = true, .transpose_b = true},
         .input = {sdlf_shape(2, 4, 3), sdlf_shape(2, 2, 4)},
         .input_count = 2},
        {.what = "projection", .build = build_projected, .input = {sdlf_shape(2, 3, 4)}},
        {.what = "broadcast products",
         .build = build_broadcast,
         .options = &(sdlf_matmul_options){.transpose_b = true},
         .input = {sdlf_shape(2, 1, 5, 4)}},
        {.what = "conv_transpose2d", .build = build_transpose, .options = &conv, .input = {sdlf_shape(2, 2, 3, 3)}},
        {.what = "layer_norm", .build = build_layer_norm, .input = {sdlf_shape(2, 3, 5)}},
        {.what = "layer_norm of two axes",
         .build = build_layer_norm,
         .options = &(sdlf_layer_norm_options){.axis = 1, .epsilon = 0.01f},
         .input = {sdlf_shape(2, 3, 2)}},
        {.what = "instance_norm", .build = build_group_norm, .input = {sdlf_shape(2, 3, 2, 2)}},
        {.what = "group_norm",
         .build = build_group_norm,
         .options = &(sdlf_group_norm_options){.groups = 2},
         .input = {sdlf_shape(2, 4, 3)}},
        {.what = "lrn",
         .build = build_lrn,
         .options = &(sdlf_lrn_options){.size = 3, .alpha = 0.5f},
         .input = {sdlf_shape(2, 4, 2, 2)}},
        {.what = "linear", .build = build_resize, .options = &linear, .input = {sdlf_shape(2, 1, 3, 2)}},
        {.what = "nearest", .build = build_resize, .options = &nearest, .input = {sdlf_shape(2, 1, 3, 4)}},
        {.what = "cubic", .build = build_resize, .options = &cubic, .input = {sdlf_shape(2, 1, 5, 3)}},
        {.what = "reflected", .build = build_pad, .options = &reflect, .input = {sdlf_shape(2, 3, 4)}},
        {.what = "edges", .build = build_pad, .options = &edge, .input = {sdlf_shape(2, 2, 4)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(values_match);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
