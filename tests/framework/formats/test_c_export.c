/* SPDX-License-Identifier: MIT */
/* Networks exported as C: the file is compiled with strict warnings, run, and compared with the model.
 * test_c_export_layers.c covers every layer. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/formats/c_program.h"

static float drawn(int64_t i, int stream)
{
    return (float)((i * 7919 + stream * 104729 + 12345) % 20011) / 10005.0f - 1;
}

static void runs_as_the_model(sdlf_model *model)
{
    CHECK_OK(sdlf_model_build(model, 3));
    for (int p = 0; p < sdlf_model_parameter_count(model); p++) { /* so that no bias and no statistic is 0 or 1 */
        sdlf_parameter *parameter = sdlf_model_parameter(model, p);
        bool variance = strcmp(parameter->spec.name, "running_var") == 0;
        float *value = parameter->value.data;
        for (int64_t i = 0; parameter->spec.shape.rank == 1 && i < sdlf_tensor_count(&parameter->value); i++)
            value[i] = drawn(i, p) * 0.5f + (variance ? 1.0f : 0);
    }
    c_program_check_model(model);
    sdlf_model_free(model);
}

/* ---- networks ---- */

static void built_in_networks(void)
{
    static const char *const names[] = {"lenet5", "mlp", "fast_cnn"}; /* simple_cnn takes compilers too long */
    for (int i = 0; i < 3; i++) {
        sdlf_model *model = NULL;
        CHECK_OK(sdlf_network_builtin(&model, names[i]));
        runs_as_the_model(model);
    }
}

static sdlf_node norm(sdlf_model *net, sdlf_node x)
{
    return sdlf_batch_norm2d(net, x, &(sdlf_batch_norm2d_options){.epsilon = 1e-3f});
}

/* Residual blocks, normalisation folded and not, all options of windows, and concatenated branches. */
static void a_residual_network(void)
{
    sdlf_model *net = sdlf_model_create("residual net-7"); /* not an identifier */
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(4, 13, 11)), y, z;
    y = sdlf_conv2d(
        net, x,
        &(sdlf_conv2d_options){
            .name = "a.1", .filters = 8, .kernel = {3, 3}, .no_bias = true, .padding = {1, 1}, .groups = 2});
    y = sdlf_relu6(net, norm(net, y)); /* folded */
    z = sdlf_conv2d(net, y,
                    &(sdlf_conv2d_options){.name = "a_1",
                                           .filters = 8,
                                           .kernel = {3, 5},
                                           .stride = {2, 3},
                                           .padding = {3, 2},
                                           .padding_extra = {-2, 1},
                                           .dilation = {2, 1}});
    z = sdlf_relu(net, z);
    y = sdlf_conv2d(net, y, &(sdlf_conv2d_options){.filters = 8, .kernel = {3, 3}, .padding = {1, 1}, .groups = 8});
    y = sdlf_add(net, norm(net, y), x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {1, 1}}));
    x = sdlf_relu(net, norm(net, y)); /* of a sum: separate */
    sdlf_node parts[3] = {
        sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {3, 2}, .stride = {2, 2}, .padding = {1, 1}}),
        sdlf_avg_pool2d(net, x, &(sdlf_pool2d_options){.window = {3, 2}, .stride = {2, 2}, .padding = {1, 1}}),
        sdlf_avg_pool2d(
            net, x,
            &(sdlf_pool2d_options){.window = {3, 2}, .stride = {2, 2}, .padding = {1, 1}, .count_padding = true})};
    y = sdlf_concat(net, parts, 3, NULL);
    sdlf_output(net, "joined", y);
    sdlf_output(net, "strided", z);
    y = sdlf_dropout(net, sdlf_flatten(net, sdlf_global_avg_pool2d(net, y)),
                     &(sdlf_dropout_options){.probability = 0.5f});
    y = sdlf_fully_connected(net, y, &(sdlf_fully_connected_options){.units = 12, .no_bias = true});
    y = sdlf_tanh(net, norm(net, y));
    sdlf_output(net, "features", y);
    sdlf_output(net, "again", sdlf_reshape(net, y, &(sdlf_reshape_options){.shape = sdlf_shape(3, 4)}));
    sdlf_output(net, "scores", sdlf_softmax(net, y));
    runs_as_the_model(net);
}

static void functions_of_elements(void)
{
    sdlf_node piece[SDLF_UNARY_FUNCTION_COUNT + 5];
    const sdlf_layer_class *softmax = sdlf_layer_class_find("softmax");
    sdlf_model *net = sdlf_model_create("functions");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(3, 5)),
              y = sdlf_input(net, "y", SDLF_FLOAT32, sdlf_shape(3, 5));
    sdlf_node positive = sdlf_sigmoid(net, x);
    x = sdlf_add(net, sdlf_add(net, x, y), x);
    for (int f = 0; f < SDLF_UNARY_FUNCTION_COUNT; f++) {
        bool root = f == SDLF_UNARY_SQRT || f == SDLF_UNARY_LOG || f == SDLF_UNARY_RECIPROCAL;
        piece[f] = sdlf_unary(net, root ? positive : x, &(sdlf_unary_options){.function = f});
    }
    int count = SDLF_UNARY_FUNCTION_COUNT;
    piece[count++] = sdlf_clip(net, x, &(sdlf_clip_options){.low = -0.5f, .high = 1});
    piece[count++] = sdlf_leaky_relu(net, x, &(sdlf_leaky_relu_options){.slope = 0.2f});
    piece[count++] = sdlf_log_softmax(net, x);
    piece[count++] = sdlf_model_add(net, softmax, &(sdlf_softmax_options){.axis = -1}, &x, 1);
    piece[count++] = sdlf_softmax(net, x);
    sdlf_output(net, "first", sdlf_concat(net, piece, 13, &(sdlf_concat_options){.axis = 2}));
    sdlf_output(net, "second", sdlf_concat(net, piece + 13, 13, NULL));
    sdlf_output(net, "third", sdlf_concat(net, piece + 26, count - 26, NULL));
    sdlf_output(net, "x", positive);
    runs_as_the_model(net);
}

/* An input that is also an output, and a value that is two outputs. */
static void copies(void)
{
    sdlf_model *net = sdlf_model_create("2 copies");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(3, 5)), y = sdlf_relu(net, x);
    sdlf_output(net, "same", x);
    sdlf_output(net, "one", y);
    sdlf_output(net, "two", sdlf_flatten(net, y));
    sdlf_output(net, "three", sdlf_unary(net, y, &(sdlf_unary_options){.function = SDLF_UNARY_NEGATE}));
    runs_as_the_model(net);
}

/* Values with disjoint lifetimes share memory: a chain needs at most twice its largest value. */
static void memory_is_used_again(void)
{
    sdlf_model *net = sdlf_model_create("chain");
    sdlf_c_exported result = {.bytes = 0};
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(100));
    for (int i = 0; i < 10; i++)
        x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 100}));
    sdlf_output(net, "y", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 1}));
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_to_c(net, test_path("net.c"), NULL, &result));
    CHECK_EQUAL(result.scratch_bytes, 200 * 4);
    CHECK_EQUAL(result.parameter_count, 10 * 101 * 100 + 101);
    sdlf_model_free(net);
}

/* ---- what is refused ---- */

static void what_cannot_be_said_is_refused(void)
{
    char bytes[32] = "";
    const char *path = test_path("refused.c");
    test_write_file(path, "old", 3);
    sdlf_model *net = sdlf_model_create("refused");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(4, 4));
    sdlf_node edges = sdlf_sparse_input(net, "edges");
    x = sdlf_flatten(net, x);
    sdlf_output(net, "y", sdlf_graph_conv(net, x, edges, &(sdlf_graph_conv_options){.units = 2}));
    CHECK_FAILS(sdlf_model_to_c(net, path, NULL, NULL), SDLF_ERROR_ARGUMENT, "build it first");
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_FAILS(sdlf_model_to_c(net, path, NULL, NULL), SDLF_ERROR_UNSUPPORTED,
                "layer 1 'edges' (input) cannot be written as C: a sparse matrix is as large as its graph");
    sdlf_model_free(net);
    CHECK_OK(sdlf_network_builtin(&net, "simple_cnn"));
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_FAILS(sdlf_model_to_c(net, path, NULL, NULL), SDLF_ERROR_UNSUPPORTED,
                "has 6434634 parameters, and 2000000 is the limit for a C file");
    sdlf_model_free(net);
    CHECK_OK(sdlf_network_builtin(&net, "mlp"));
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_FAILS(sdlf_model_to_c(net, path, &(sdlf_c_export_options){.max_parameters = 1000}, NULL),
                SDLF_ERROR_UNSUPPORTED, "1000 is the limit");
    CHECK_FAILS(sdlf_model_to_c(net, path, &(sdlf_c_export_options){.name = "a-b"}, NULL), SDLF_ERROR_ARGUMENT,
                "'a-b' cannot be the name of a function");
    CHECK_FAILS(sdlf_model_to_c(net, "/dev/full", NULL, NULL), SDLF_ERROR_IO, "No space left on device");
    CHECK_FAILS(sdlf_model_to_c(net, test_path("absent/x.c"), NULL, NULL), SDLF_ERROR_IO, "absent");
    CHECK_FAILS(sdlf_model_to_c(NULL, path, NULL, NULL), SDLF_ERROR_MEMORY, "");
    sdlf_model_free(net);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fread(bytes, 1, sizeof bytes, file) == 3 && memcmp(bytes, "old", 3) == 0);
    if (file != NULL) fclose(file);
}

static sdlf_status export_again(void *model)
{
    return sdlf_model_to_c(model, test_path("memory.c"), NULL, NULL);
}

static void every_allocation(void)
{
    sdlf_model *net = NULL;
    CHECK_OK(sdlf_network_builtin(&net, "lenet5"));
    CHECK_OK(sdlf_model_build(net, 1));
    test_every_allocation("export", export_again, net);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(built_in_networks);
    RUN(a_residual_network);
    RUN(functions_of_elements);
    RUN(copies);
    RUN(memory_is_used_again);
    RUN(what_cannot_be_said_is_refused);
    RUN(every_allocation);
    return test_summary();
}
