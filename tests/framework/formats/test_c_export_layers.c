/* SPDX-License-Identifier: MIT */
/* Every layer class exported as C: the networks of the ONNX export test, which contain all of them; batches of several
 * samples; user-defined layers; names that are not valid in C. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/formats/c_program.h"

static void every_layer(void)
{
    for (const export_case *at = export_cases; at->name != NULL; at++) {
        sdlf_model *model = export_case_model(at, NULL);
        if (!CHECK(model != NULL)) continue;
        if (strcmp(at->name, "graph") == 0)
            CHECK_FAILS(sdlf_model_to_c(model, test_path("graph.c"), NULL, NULL), SDLF_ERROR_UNSUPPORTED,
                        "'matrix' (input) cannot be written as C: a sparse matrix is as large as its graph");
        else
            c_program_check_model(model);
        sdlf_model_free(model);
    }
}

static void check(sdlf_model *net)
{
    if (CHECK_OK(sdlf_model_build(net, 7))) c_program_check_model(net);
    sdlf_model_free(net);
}

/* Inside a network the first axis may have more than one sample: kernels then run for each of them. */
static void several_samples(void)
{
    sdlf_model *net = sdlf_model_create("batches");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(6, 7, 5));
    sdlf_node y = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(3, 2, 7, 5), .whole = true});
    sdlf_node z = sdlf_conv2d(net, y, &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 2}, .stride = {2, 1}});
    sdlf_output(net, "normalised", sdlf_batch_norm2d(net, y, NULL));
    sdlf_output(net, "folded", sdlf_batch_norm2d(net, z, NULL));
    sdlf_output(net, "transposed",
                sdlf_conv_transpose2d(net, y, &(sdlf_conv_transpose2d_options){.filters = 4, .kernel = {2, 3}}));
    sdlf_output(net, "largest", sdlf_max_pool2d(net, y, &(sdlf_pool2d_options){.window = {2, 2}, .padding = {1, 0}}));
    sdlf_output(net, "mean", sdlf_avg_pool2d(net, y, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {1, 2}}));
    sdlf_output(net, "means", sdlf_global_avg_pool2d(net, y));
    sdlf_output(net, "units", sdlf_fully_connected(net, y, &(sdlf_fully_connected_options){.units = 5}));
    sdlf_output(net, "softmax", sdlf_softmax(net, y));
    check(net);
}

/* Batched matrix products, with either operand broadcast over several matrices of the other. */
static void broadcast_products(void)
{
    sdlf_model *net = sdlf_model_create("matrices");
    sdlf_node a = sdlf_input(net, "a", SDLF_FLOAT32, sdlf_shape(1, 3, 4, 2));
    sdlf_node b = sdlf_input(net, "b", SDLF_FLOAT32, sdlf_shape(5, 1, 2, 3));
    sdlf_node c = sdlf_input(net, "c", SDLF_FLOAT32, sdlf_shape(5, 3, 7, 2)), vector = sdlf_flatten(net, a);
    sdlf_output(net, "both", sdlf_matmul(net, a, b, NULL));
    sdlf_output(net, "turned", sdlf_matmul(net, a, c, &(sdlf_matmul_options){.transpose_b = true}));
    sdlf_output(net, "left", sdlf_matmul(net, b, c, &(sdlf_matmul_options){.transpose_a = true, .transpose_b = true}));
    vector = sdlf_slice(net, vector,
                        &(sdlf_slice_options){.axes = sdlf_shape(-1), .start = {.rank = 1}, .end = sdlf_shape(2)});
    vector = sdlf_reshape(net, vector, &(sdlf_reshape_options){.shape = sdlf_shape(2), .whole = true});
    sdlf_output(net, "vector", sdlf_matmul(net, vector, b, NULL));
    check(net);
}

/* A value must not be overwritten while it is still read, or read in another order. */
static void values_in_use(void)
{
    sdlf_model *net = sdlf_model_create("in use");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(4, 4));
    sdlf_node y = sdlf_relu(net, x),
              turned = sdlf_transpose(net, y, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1)});
    sdlf_node scores = sdlf_reduce(net, y, &(sdlf_reduce_options){.axes = sdlf_shape(-1), .keep = true});
    sdlf_node parts[2];
    sdlf_binary_layer_options minus = {.function = SDLF_LAYER_SUBTRACT}, plus = {.function = SDLF_LAYER_ADD};
    parts[0] = sdlf_binary(net, (const sdlf_node[]){y, turned}, 2, &minus);
    parts[1] = sdlf_binary(net, (const sdlf_node[]){scores, parts[0]}, 2, &plus);
    sdlf_node last = sdlf_concat(net, parts, 2, &(sdlf_concat_options){.axis = -2});
    sdlf_node columns = sdlf_reduce(net, last, &(sdlf_reduce_options){.axes = sdlf_shape(1), .keep = true});
    last = sdlf_binary(net, (const sdlf_node[]){last, columns}, 2, &minus);
    sdlf_output(net, "y", sdlf_sigmoid(net, sdlf_tanh(net, last)));
    check(net);
}

/* ---- a layer of somebody's own: x times 2, plus 1, in a tensor of its own ---- */

static sdlf_status own_infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_status status = sdlf_signature_add_output(signature, signature->dtype, signature->input_shape[0]);
    if (status != SDLF_OK) return status;
    return sdlf_signature_add_parameter(
        signature, (sdlf_parameter_spec){.name = "channels", .shape = sdlf_shape(1), .initializer = SDLF_INIT_ONE});
}

static sdlf_status own_forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    sdlf_tensor x = context->input[0], twice = sdlf_scratch(context, x.dtype, x.shape);
    sdlf_operation times = {
        .kind = SDLF_BINARY, .in = {x}, .out = {twice}, .binary = {.function = SDLF_BINARY_MULTIPLY, .scalar = 2}};
    sdlf_operation plus = {.kind = SDLF_BINARY,
                           .in = {twice, sdlf_tensor_broadcast(context->parameter[0], x.shape)},
                           .out = {context->output[0]},
                           .binary = {.function = SDLF_BINARY_ADD}};
    sdlf_status status = sdlf_emit(context, &times);
    return status == SDLF_OK ? sdlf_emit(context, &plus) : status;
}

static sdlf_status random_forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_emit(context, &(sdlf_operation){.kind = SDLF_RANDOM_UNIFORM, .out = {context->output[0]}});
}

typedef struct own_options {
    const char *name;
} own_options;
static const sdlf_field own_fields[] = {{.name = NULL}};
static const sdlf_layer_class own_class = {.name = "own",
                                           .options_size = sizeof(own_options),
                                           .fields = own_fields,
                                           .minimum_inputs = 1,
                                           .maximum_inputs = 1,
                                           .infer = own_infer,
                                           .forward = own_forward};
static const sdlf_layer_class random_class = {.name = "random",
                                              .options_size = sizeof(own_options),
                                              .fields = own_fields,
                                              .minimum_inputs = 1,
                                              .maximum_inputs = 1,
                                              .infer = own_infer,
                                              .forward = random_forward};

static void a_layer_of_ones_own(void)
{
    sdlf_model *net = sdlf_model_create("own");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(5));
    /* with its parameter, this would be the name of a kernel */
    x = sdlf_model_add(net, &own_class, &(own_options){.name = "scale"}, &x, 1);
    sdlf_output(net, "y", x);
    sdlf_output(net, "z", sdlf_batch_norm2d(net, x, NULL));
    check(net);
    net = sdlf_model_create("random");
    x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_output(net, "y", sdlf_model_add(net, &random_class, &(own_options){.name = "dice"}, &x, 1));
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_FAILS(sdlf_model_to_c(net, test_path("random.c"), NULL, NULL), SDLF_ERROR_UNSUPPORTED,
                "layer 1 'dice' (random) cannot be written as C: networks as C have no operation 'random_uniform'");
    sdlf_model_free(net);
}

/* Layers and networks whose names mean other things in C. */
static void names(void)
{
    static const char *const layers[] = {"int", "scratch", "input", "conv2d", "main",
                                         "a b", "a-b",     "9",     "",       "\xc3\xa4*/"};
    sdlf_model *net = sdlf_model_create("for");
    sdlf_node x = sdlf_input(net, "static", SDLF_FLOAT32, sdlf_shape(2, 5, 5));
    for (int i = 0; i < 10; i++)
        x = sdlf_conv2d(
            net, x,
            &(sdlf_conv2d_options){
                .name = layers[i][0] != '\0' ? layers[i] : NULL, .filters = 2, .kernel = {3, 1}, .padding = {1, 0}});
    sdlf_output(net, "return */ 1",
                sdlf_value(net, &(sdlf_value_options){.name = "scratch_int64", .shape = sdlf_shape(2)}));
    sdlf_output(net, "if", x);
    check(net);
}

/* Arrays computed from batch normalisations, for layers whose names become the same in C, and for one whose name already
 * ends in a number. */
static void names_of_normalisations(void)
{
    static const char *const layers[] = {"a.b", "a_b", "a_b__1", "a-b"};
    sdlf_model *net = sdlf_model_create("norms");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(2, 4, 4));
    for (int i = 0; i < 4; i++) {
        x = sdlf_relu(net, x);
        x = sdlf_batch_norm2d(net, x, &(sdlf_batch_norm2d_options){.name = layers[i]});
    }
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%s", layers[i]);
        x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = name, .filters = 2, .kernel = {1, 1}, .no_bias = true});
        x = sdlf_batch_norm2d(net, x, NULL);
    }
    sdlf_output(net, "y", x);
    check(net);
}

static sdlf_status export_again(void *model)
{
    return sdlf_model_to_c(model, test_path("memory.c"), NULL, NULL);
}

static void every_allocation(void)
{
    const export_case *at = export_cases;
    while (strcmp(at->name, "normalisations") != 0) at++;
    sdlf_model *model = export_case_model(at, NULL);
    test_every_allocation("export", export_again, model);
    sdlf_model_free(model);
}

int main(void)
{
    RUN(every_layer);
    RUN(several_samples);
    RUN(broadcast_products);
    RUN(values_in_use);
    RUN(a_layer_of_ones_own);
    RUN(names);
    RUN(names_of_normalisations);
    RUN(every_allocation);
    return test_summary();
}
