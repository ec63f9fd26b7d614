/* The built-in networks: their sizes, their shapes, and that a file can hold each. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

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
    };
    for (int i = 0; i < 4; i++) {
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
        CHECK(sdlf_shape_equal(shape, sdlf_shape(1, 10)));
        sdlf_model_free(model);
    }
    CHECK(sdlf_network_builtin_name(4) == NULL && sdlf_network_builtin_summary(-1) == NULL);
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
        "unknown network 'lenet' (did you mean 'lenet5'?); the built-in ones are simple_cnn, lenet5, mlp, fast_cnn");
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
    RUN(files_hold_them);
    RUN(unknown_names);
    RUN(every_allocation);
    return test_summary();
}
