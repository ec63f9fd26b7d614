/* SPDX-License-Identifier: MIT */
/* Changing the number of classes of a trained model. */
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static sdlf_model *classifier(bool convolutional)
{
    sdlf_model *net = sdlf_model_create("classifier");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = "first", .filters = 4, .kernel = {3, 3}});
    x = sdlf_relu(net, x);
    if (convolutional) {
        x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = "head", .filters = 10, .kernel = {1, 1}});
        x = sdlf_flatten(net, sdlf_global_avg_pool2d(net, x));
    } else {
        x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = "head", .units = 10});
    }
    sdlf_output(net, "class", sdlf_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static float first_value(sdlf_model *net, const char *name)
{
    const sdlf_parameter *parameter = sdlf_model_find_parameter(net, name);
    return parameter != NULL ? *(const float *)parameter->value.data : 0;
}

static void the_head_is_made_anew(void)
{
    for (int convolutional = 0; convolutional < 2; convolutional++) {
        sdlf_model *net = classifier(convolutional != 0), *same = classifier(convolutional != 0);
        const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
        CHECK_OK(sdlf_model_set_classes(net, names, 10));
        CHECK_EQUAL(sdlf_model_head(net), 3);
        CHECK_OK(sdlf_model_freeze(net, "head.bias", true));
        CHECK_OK(sdlf_model_replace_head(net, 3, 7));
        CHECK(sdlf_shape_equal(sdlf_model_node_shape(net, sdlf_model_output(net, 0)), sdlf_shape(1, 3)));
        CHECK_EQUAL(sdlf_model_class_count(net), 0);
        CHECK_CLOSE((double)first_value(net, "first.weight"), (double)first_value(same, "first.weight"), 0);
        CHECK(first_value(net, "head.weight") != first_value(same, "head.weight"));
        CHECK_EQUAL(sdlf_model_find_parameter(net, "head.weight")->value.shape.dim[0], 3);
        CHECK(sdlf_model_find_parameter(net, "head.bias")->spec.trainable);
        uint32_t hash = sdlf_model_hash(net);
        CHECK_OK(sdlf_model_set_classes(net, names, 3));
        CHECK_OK(sdlf_model_replace_head(net, 3, 8)); /* as many, and others */
        CHECK(sdlf_model_hash(net) != hash && sdlf_model_class_count(net) == 0);
        CHECK_OK(sdlf_model_replace_head(same, 3, 7)); /* the seed's */
        CHECK_EQUAL(sdlf_model_hash(same), hash);
        sdlf_model_free(same);
        sdlf_model_free(net);
    }
}

static void refused(sdlf_model *net, int classes, sdlf_status wanted, const char *words)
{
    CHECK_EQUAL(sdlf_model_replace_head(net, classes, 1), wanted);
    CHECK(strstr(sdlf_error_message(), words) != NULL);
}

static void what_has_no_head_is_refused(void)
{
    sdlf_model *net = classifier(false);
    refused(net, 0, SDLF_ERROR_ARGUMENT, "1 class");
    sdlf_plan *plan = NULL;
    sdlf_calculator *calculator = test_open("reference");
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    refused(net, 3, SDLF_ERROR_ARGUMENT, "without plans");
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(net);

    net = sdlf_model_create("normalised");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(2, 3, 3));
    sdlf_output(net, "y", sdlf_batch_norm2d(net, x, NULL));
    refused(net, 3, SDLF_ERROR_ARGUMENT, "built");
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_EQUAL(sdlf_model_head(net), -1);
    refused(net, 3, SDLF_ERROR_UNSUPPORTED, "'normalised' does not end in");
    sdlf_model_free(net);

    net = sdlf_model_create("fixed");
    x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(4));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
    sdlf_output(net, "y", sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(2, 3)}));
    CHECK_OK(sdlf_model_build(net, 1));
    refused(net, 5, SDLF_ERROR_SHAPE, "'fixed' with 5 classes");
    sdlf_model_free(net);
}

int main(void)
{
    RUN(the_head_is_made_anew);
    RUN(what_has_no_head_is_refused);
    return test_summary();
}
