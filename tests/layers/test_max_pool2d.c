/* SPDX-License-Identifier: MIT */
/* max_pool2d: shapes, rejected inputs, gradients, ties. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_max_pool2d(model, x[0], options);
}

/* Fused into one operation if a calculator supports it, but not if the image is reshaped in between. */
static sdlf_node build_after_conv(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node y = sdlf_conv2d(model, x[0], &(sdlf_conv2d_options){.filters = 2, .kernel = {2, 2}});
    return sdlf_max_pool2d(model, sdlf_relu(model, y), options);
}

static sdlf_node build_after_reshape(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node y = sdlf_conv2d(model, x[0], &(sdlf_conv2d_options){.filters = 1, .kernel = {1, 1}, .no_bias = true});
    y = sdlf_relu(model, sdlf_reshape(model, y, &(sdlf_reshape_options){.shape = sdlf_shape(1, 5, 4)}));
    return sdlf_max_pool2d(model, y, options); /* 2x2 windows: two by two of them either way */
}

static void shapes_follow(void)
{
    check_output(build, &(sdlf_pool2d_options){.window = {2, 2}}, sdlf_shape(3, 8, 7), sdlf_shape(3, 4, 3));
    check_output(build, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
                 sdlf_shape(1, 7, 8), sdlf_shape(1, 4, 4));
    check_output(build, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 2}, .padding_extra = {1, 1}},
                 sdlf_shape(1, 8, 8), sdlf_shape(1, 4, 4)); /* as "ceil mode" elsewhere */
    check_output(build, &(sdlf_pool2d_options){.window = {2, 2}, .stride = {1, 1}, .dilation = {3, 2}},
                 sdlf_shape(1, 8, 8), sdlf_shape(1, 5, 6));
}

static void nonsense_is_refused(void)
{
    sdlf_shape image = sdlf_shape(2, 5, 5);
    check_refused(build, NULL, image, SDLF_ERROR_ARGUMENT, "window (vertical): expected 1 to 65535, found 0");
    check_refused(build, &(sdlf_pool2d_options){.window = {7, 7}}, image, SDLF_ERROR_SHAPE,
                  "window 7x7 is larger than its input 5x5 (plus padding 0)");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}, .padding = {2, 0}}, image, SDLF_ERROR_SHAPE,
                  "padding 2 is not smaller than the window's side 2");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}, .padding_extra = {0, 2}}, image, SDLF_ERROR_SHAPE,
                  "padding 2 is not smaller than the window's side 2");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}, .dilation = {6, 6}, .padding = {1, 1}}, image,
                  SDLF_ERROR_SHAPE, "dilation 6 with padding is larger than its input's side 5");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}, .ties = 2}, image, SDLF_ERROR_ARGUMENT,
                  "ties: expected 0 to 1 (share, first), found 2");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}}, sdlf_shape(5), SDLF_ERROR_SHAPE, "(N,C,H,W)");
    check_integers_refused(build, &(sdlf_pool2d_options){.window = {2, 2}}, image);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "side by side",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {2, 2}},
         .input = {sdlf_shape(2, 2, 4, 6)}},
        {.what = "first wins, which is the same without ties",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {2, 2}, .ties = SDLF_TIES_FIRST},
         .input = {sdlf_shape(2, 2, 5, 5)}},
        {.what = "overlapping, padded",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 1}, .padding = {1, 1}},
         .input = {sdlf_shape(2, 1, 5, 6)}},
        {.what = "dilated, unevenly padded",
         .build = build,
         .options =
             &(sdlf_pool2d_options){
                 .window = {2, 3}, .stride = {1, 2}, .dilation = {2, 1}, .padding = {0, 1}, .padding_extra = {1, -1}},
         .input = {sdlf_shape(2, 2, 5, 5)}},
        {.what = "gaps between windows",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {2, 1}, .stride = {3, 2}},
         .input = {sdlf_shape(2, 2, 6, 5)}},
        {.what = "behind a convolution",
         .build = build_after_conv,
         .options = &(sdlf_pool2d_options){.window = {2, 2}},
         .input = {sdlf_shape(2, 1, 5, 5)}},
        {.what = "behind a reshaped convolution",
         .build = build_after_reshape,
         .options = &(sdlf_pool2d_options){.window = {2, 2}},
         .input = {sdlf_shape(2, 1, 4, 5)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

/* One window of equal values: which positions get the gradient. */
static void check_ties(const char *calculator_name, int ties, bool no_fusion)
{
    layer_case c = {.what = "ties",
                    .build = build,
                    .options = &(sdlf_pool2d_options){.window = {2, 2}, .ties = ties},
                    .input = {sdlf_shape(2, 1, 2, 2)}};
    sdlf_calculator *calculator = NULL;
    sdlf_binding binding;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = case_model(&c);
    set_parameters(&c, model);
    float *x = sdlf_model_find_parameter(model, "x0.weight")->value.data; /* (4,2): [element][sample] */
    for (int e = 0; e < 8; e++) x[e] = e == 4 ? 0.25f : 0.5f;             /* sample 0's element 2 is smaller */
    sdlf_plan *plan = case_plan(&c, model, calculator, SDLF_FLOAT32, no_fusion);
    CHECK_OK(sdlf_plan_step(plan, 0));
    CHECK_OK(sdlf_plan_gradient(plan, "x0.weight", &binding));
    float dx[8] = {0};
    test_download(&binding, dx);
    double whole[2] = {0};
    for (int e = 0; e < 8; e++) whole[e % 2] += (double)dx[e];
    for (int e = 0; e < 4; e++) {
        double shared = e == 2 ? 0 : whole[0] / 3, first = e == 0 ? whole[0] : 0;
        CHECK_CLOSE(dx[2 * e], ties == SDLF_TIES_FIRST ? first : shared, 1e-7);
        shared = whole[1] / 4;
        first = e == 0 ? whole[1] : 0;
        CHECK_CLOSE(dx[2 * e + 1], ties == SDLF_TIES_FIRST ? first : shared, 1e-7);
    }
    CHECK(fabs(whole[0]) > 1e-4 && fabs(whole[1]) > 1e-4);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void ties_are_shared_or_go_first(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++)
        for (int ties = SDLF_TIES_SHARE; ties <= SDLF_TIES_FIRST; ties++)
            for (int no_fusion = 0; no_fusion < 2; no_fusion++)
                check_ties(test_calculator_class_at(index)->name, ties, no_fusion);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    RUN(ties_are_shared_or_go_first);
    return test_summary();
}
