/* SPDX-License-Identifier: MIT */
/* The built-in networks: their sizes and shapes, and storing each in a file. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

#include "framework/model_internal.h"

static void sizes(void)
{
    static const struct {
        const char *name;
        int64_t parameters;
    } expected[] = {
        {"simple_cnn", 26 * 32 + (14 * 14 * 32 + 1) * 1024 + 1025 * 10},
        {"lenet5", 26 * 6 + (25 * 6 + 1) * 16 + (5 * 5 * 16 + 1) * 120 + 121 * 84 + 85 * 10},
        {"mlp", 785 * 256 + 257 * 128 + 129 * 10},
        {"fast_cnn", 26 * 16 + (25 * 16 + 1) * 32 + (4 * 4 * 32 + 1) * 128 + 129 * 10},
        {"cifar_fast", 24 + 9 * (24 * 64 + 64 * 64 + 64 * 256 + 3 * 256 * 256) + 2 * (64 + 256 + 256) + 256 * 10},
        {"resnet20", 272474}, /* the paper's 0.27 million, and the shortcuts' convolutions */
        {"resnet18", 11173962},
        {"resnet50", 23520842},
        {"vgg11_bn", 9231114},
        {"mobilenet_v2", 2236682},
        {"vit_tiny", (3 * 16 + 1 + 64) * 192 + 6 * (12 * 192 * 192 + 13 * 192) + 2 * 192 + 193 * 10},
        {"char_gpt", (96 + 128) * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128 + 129 * 96},
    };
    enum { COUNT = sizeof expected / sizeof expected[0] };
    for (int i = 0; i < COUNT; i++) {
        sdlf_model *model;
        CHECK_TEXT(sdlf_network_builtin_name(i), expected[i].name);
        CHECK(strlen(sdlf_network_builtin_summary(i)) > 10);
        if (!CHECK_OK(sdlf_network_builtin(&model, expected[i].name))) continue;
        CHECK_TEXT(sdlf_model_name(model), expected[i].name);
        CHECK_EQUAL(sdlf_model_input_count(model), 1);
        CHECK_TEXT(sdlf_model_output_name(model, 0), "class");
        CHECK_OK(sdlf_model_build(model, 1));
        CHECK_EQUAL(sdlf_model_trainable_count(model), expected[i].parameters);
        sdlf_shape shape = sdlf_model_node_shape(model, sdlf_model_output(model, 0));
        bool sequential = strcmp(expected[i].name, "char_gpt") == 0;
        CHECK(sdlf_shape_equal(shape, sequential ? sdlf_shape(1, 128, 96) : sdlf_shape(1, 10)));
        sdlf_model_free(model);
    }
    CHECK(sdlf_network_builtin_name(COUNT) == NULL && sdlf_network_builtin_summary(-1) == NULL);
}

static int64_t size_for(const char *name, sdlf_shape sample, int classes)
{
    sdlf_model *model;
    if (!CHECK_OK(sdlf_network_builtin_for(&model, name, sample, classes))) return 0;
    CHECK_OK(model_describe(model)); /* without values, which may be hundreds of millions */
    int64_t count = sdlf_model_trainable_count(model);
    sdlf_shape shape = sdlf_model_node_shape(model, sdlf_model_output(model, 0));
    CHECK(sdlf_shape_equal(shape, sdlf_shape(1, classes)));
    sdlf_model_free(model);
    return count;
}

/* The numbers of parameters are those of torchvision. */
static void sizes_for_imagenet(void)
{
    const sdlf_shape sample = sdlf_shape(3, 224, 224);
    CHECK_EQUAL(size_for("resnet18", sample, 1000), 11689512);
    CHECK_EQUAL(size_for("resnet50", sample, 1000), 25557032);
    CHECK_EQUAL(size_for("mobilenet_v2", sample, 1000), 3504872);
    CHECK_EQUAL(size_for("vgg11_bn", sample, 1000), 132868840);
    CHECK_EQUAL(size_for("vit_tiny", sample, 1000), 5717416 - 2 * 192); /* minus the class token and its position */
}

static void other_shapes(void)
{
    static const char *const names[] = {"simple_cnn", "lenet5",   "mlp",      "fast_cnn",     "resnet20",
                                        "resnet18",   "resnet50", "vgg11_bn", "mobilenet_v2", "vit_tiny"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(size_for(names[i], sdlf_shape(1, 32, 40), 3) > 0);
        CHECK(size_for(names[i], sdlf_shape(5, 75, 33), 2) > 0);
    }
    sdlf_model *model;
    CHECK_FAILS(sdlf_network_builtin_for(&model, "vgg11_bn", sdlf_shape(3, 32, 31), 10), SDLF_ERROR_SHAPE,
                "network 'vgg11_bn' expects pictures CxHxW of 32x32 pixels or more, found samples 3x32x31; 'mlp'");
    CHECK(model == NULL);
    CHECK(size_for("lenet5", sdlf_shape(1, 12, 12), 2) > 0 && size_for("fast_cnn", sdlf_shape(1, 16, 16), 2) > 0);
    CHECK(size_for("resnet50", sdlf_shape(1, 1, 1), 2) > 0 && size_for("mobilenet_v2", sdlf_shape(1, 1, 1), 2) > 0);
    CHECK_FAILS(sdlf_network_builtin_for(&model, "fast_cnn", sdlf_shape(1, 15, 16), 10), SDLF_ERROR_SHAPE, "16x16");
    CHECK_FAILS(sdlf_network_builtin_for(&model, "char_gpt", sdlf_shape(1, 8, 8), 10), SDLF_ERROR_SHAPE,
                "network 'char_gpt' expects sequences of tokens, found samples 1x8x8");
    CHECK(size_for("mlp", sdlf_shape(7), 10) > 0);
    CHECK_FAILS(sdlf_network_builtin_for(&model, "lenet5", sdlf_shape(7), 10), SDLF_ERROR_SHAPE, "samples 7");
    CHECK_FAILS(sdlf_network_builtin_for(&model, "mlp", sdlf_shape(1, 1, 1), 1), SDLF_ERROR_SHAPE,
                "network 'mlp' needs 2 scores or more, found 1");
    if (CHECK_OK(sdlf_network_builtin_for_targets(&model, "mlp", sdlf_shape(7), 1)))
        CHECK_TEXT(sdlf_model_output_name(model, 0), "value");
    sdlf_model_free(model);
}

static void files_hold_them(void)
{
    for (int i = 0; sdlf_network_builtin_name(i) != NULL; i++) {
        sdlf_model *model, *again = NULL;
        char *text = NULL, *second = NULL;
        if (!CHECK_OK(sdlf_network_builtin(&model, sdlf_network_builtin_name(i)))) continue;
        CHECK_OK(sdlf_network_write(model, &text));
        if (text != NULL) CHECK_OK(sdlf_network_parse(&again, text, strlen(text), "again"));
        if (again != NULL) CHECK_OK(sdlf_network_write(again, &second));
        CHECK_TEXT(second, text);
        free(text);
        free(second);
        sdlf_model_free(model);
        sdlf_model_free(again);
    }
}

static void unknown_names(void)
{
    sdlf_model *model;
    CHECK_FAILS(
        sdlf_network_builtin(&model, "lenet"), SDLF_ERROR_ARGUMENT,
        "unknown network 'lenet' (did you mean 'lenet5'?); the built-in ones are simple_cnn, lenet5, mlp, fast_cnn, "
        "cifar_fast, resnet20, resnet18, resnet50, vgg11_bn, mobilenet_v2, vit_tiny, char_gpt");
    CHECK(model == NULL);
    CHECK_FAILS(sdlf_network_builtin(&model, ""), SDLF_ERROR_ARGUMENT, "unknown network ''");
}

static sdlf_status make(void *name)
{
    sdlf_model *model;
    sdlf_status status = sdlf_network_builtin(&model, name);
    sdlf_model_free(model);
    return status;
}

static void every_allocation(void)
{
    test_every_allocation("builtin", make, (void *)"lenet5");
}

int main(void)
{
    RUN(sizes);
    RUN(sizes_for_imagenet);
    RUN(other_shapes);
    RUN(files_hold_them);
    RUN(unknown_names);
    RUN(every_allocation);
    return test_summary();
}
