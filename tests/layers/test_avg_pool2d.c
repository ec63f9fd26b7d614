/* SPDX-License-Identifier: MIT */
/* avg_pool2d and global_avg_pool2d: shapes, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_avg_pool2d(model, x[0], options);
}

static sdlf_node build_global(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_global_avg_pool2d(model, x[0]);
}

static void shapes_follow(void)
{
    check_output(build, &(sdlf_pool2d_options){.window = {2, 3}}, sdlf_shape(3, 8, 7), sdlf_shape(3, 4, 2));
    check_output(build, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {1, 2}, .padding = {1, 1}},
                 sdlf_shape(1, 7, 8), sdlf_shape(1, 7, 4));
    check_output(build_global, NULL, sdlf_shape(5, 7, 3), sdlf_shape(5, 1, 1));
}

static void nonsense_is_refused(void)
{
    sdlf_shape image = sdlf_shape(2, 5, 5);
    check_refused(build, &(sdlf_pool2d_options){.window = {6, 1}}, image, SDLF_ERROR_SHAPE, "window 6x1 is larger");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}, .padding = {2, 2}}, image, SDLF_ERROR_SHAPE,
                  "padding 2 is not smaller");
    check_refused(build, &(sdlf_pool2d_options){.window = {2, 2}, .dilation = {2, 1}}, image, SDLF_ERROR_ARGUMENT,
                  "average pooling has no dilation, found 2");
    check_refused(build_global, NULL, sdlf_shape(5), SDLF_ERROR_SHAPE, "expected an input (N,C,H,W), found 1x5");
    check_integers_refused(build_global, NULL, image);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "side by side",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {2, 2}},
         .input = {sdlf_shape(2, 2, 4, 5)}},
        {.what = "padded, padding left out",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
         .input = {sdlf_shape(2, 1, 5, 4)}},
        {.what = "padded, padding counted",
         .build = build,
         .options = &(sdlf_pool2d_options){.window = {3, 2},
                                           .stride = {1, 2},
                                           .padding = {1, 1},
                                           .padding_extra = {-1, 0},
                                           .count_padding = true},
         .input = {sdlf_shape(2, 2, 4, 4)}},
        {.what = "global", .build = build_global, .input = {sdlf_shape(2, 3, 3, 4)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
