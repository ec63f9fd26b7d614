/* SPDX-License-Identifier: MIT */
/* NULL pointers passed to functions for models and for layers appended to them. A NULL model is one that could not be
 * allocated. */
#include "framework/nulls/nulls.h"

#include "framework/plan/networks.h"

static const sdlf_node somewhere = {0, 0};

static bool is_none(sdlf_node node)
{
    return node.layer < 0;
}

static void no_model(void)
{
    sdlf_normalization *no_normalization = NULL;
    const sdlf_layer_class *relu = sdlf_layer_class_find("relu");
    GIVES(sdlf_model_name(NULL), NULL);
    GIVES(is_none(sdlf_input(NULL, "x", SDLF_FLOAT32, sdlf_shape(1))), true);
    GIVES(is_none(sdlf_sparse_input(NULL, "x")), true);
    GIVES(is_none(sdlf_model_add(NULL, relu, NULL, &somewhere, 1)), true);
    DOES_NOTHING(sdlf_output(NULL, "y", somewhere));
    DOES_NOTHING(sdlf_output_length(NULL, "y", 0, "n"));
    GIVES(sdlf_model_output_is_length(NULL, 0), false);
    DOES_NOTHING(sdlf_model_clear_outputs(NULL));
    DOES_NOTHING(sdlf_model_set_origin(NULL, "here"));
    DOES_NOTHING(sdlf_model_free(NULL));
    NO_MODEL(sdlf_model_status(NULL));
    NO_MODEL(sdlf_model_build(NULL, 1));
    NO_MODEL(sdlf_model_require_states(NULL, 1));
    NO_MODEL(sdlf_model_freeze(NULL, "conv2d.weight", true));
    NO_MODEL(sdlf_model_replace_head(NULL, 3, 1));
    NO_MODEL(sdlf_model_set_loss(NULL, SDLF_LOSS_MSE));
    CHECK_EQUAL(sdlf_model_loss(NULL), SDLF_LOSS_CROSS_ENTROPY);
    CHECK(!sdlf_model_takes_tokens(NULL));
    NO_MODEL(sdlf_model_set_huber_delta(NULL, 1));
    CHECK(sdlf_model_huber_delta(NULL) == 1);
    CHECK(!sdlf_model_parameter_matches(NULL, 0, "trunk"));
    GIVES(sdlf_model_head(NULL), -1);
    NO_MODEL(sdlf_model_set_classes(NULL, (const char *const[]){"a"}, 1));
    GIVES(sdlf_model_class_count(NULL), 0);
    GIVES(sdlf_model_class_name(NULL, 0), NULL);
    GIVES(sdlf_model_normalization(NULL), no_normalization);
    GIVES(sdlf_model_layer_count(NULL), 0);
    GIVES(sdlf_model_layer(NULL, 0), NULL);
    GIVES(sdlf_model_layer_input_count(NULL, 0), 0);
    GIVES(is_none(sdlf_model_layer_input(NULL, 0, 0)), true);
    GIVES(sdlf_model_input_count(NULL), 0);
    GIVES(is_none(sdlf_model_input(NULL, 0)), true);
    GIVES(sdlf_model_output_count(NULL), 0);
    GIVES(is_none(sdlf_model_output(NULL, 0)), true);
    GIVES(sdlf_model_output_name(NULL, 0), NULL);
    GIVES(sdlf_model_node_shape(NULL, somewhere).rank, 0);
    GIVES(sdlf_model_parameter_count(NULL), 0);
    GIVES(sdlf_model_parameter(NULL, 0), NULL);
    GIVES(sdlf_model_find_parameter(NULL, "conv2d.weight"), NULL);
    GIVES(sdlf_model_trainable_count(NULL), 0);
    GIVES(sdlf_model_hash(NULL), 0);
    GIVES(sdlf_model_training_state(NULL), NULL);
    sdlf_model *unnamed = sdlf_model_create(NULL); /* the name may be omitted */
    CHECK(unnamed != NULL);
    sdlf_model_free(unnamed);
}

static void no_model_for_layers(void)
{
    const sdlf_node x = somewhere;
    GIVES(is_none(sdlf_reduce(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_arg_reduce(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_top_k(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_gather(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_resize(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_softmax(NULL, x)), true);
    GIVES(is_none(sdlf_log_softmax(NULL, x)), true);
    GIVES(is_none(sdlf_relu(NULL, x)), true);
    GIVES(is_none(sdlf_relu6(NULL, x)), true);
    GIVES(is_none(sdlf_sigmoid(NULL, x)), true);
    GIVES(is_none(sdlf_tanh(NULL, x)), true);
    GIVES(is_none(sdlf_clip(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_leaky_relu(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_unary(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_dropout(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_add(NULL, x, x)), true);
    GIVES(is_none(sdlf_binary(NULL, &x, 1, NULL)), true);
    GIVES(is_none(sdlf_select(NULL, x, x, x)), true);
    GIVES(is_none(sdlf_dynamic_quantize(NULL, x)), true);
    GIVES(is_none(sdlf_softmax_cross_entropy(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_softmax_cross_entropy_weighted(NULL, x, x, x, NULL)), true);
    GIVES(is_none(sdlf_mse(NULL, x, x)), true);
    GIVES(is_none(sdlf_mae(NULL, x, x)), true);
    GIVES(is_none(sdlf_huber(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_bce_with_logits(NULL, x, x)), true);
    GIVES(is_none(sdlf_batch_norm2d(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_layer_norm(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_rms_norm(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_embedding(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_position_embedding(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_rotary_embedding(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_multi_head_attention(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_multi_head_attention_masked(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_lstm(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_lstm_from(NULL, x, x, x, NULL)), true);
    GIVES(is_none(sdlf_gru(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_gru_from(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_group_norm(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_lrn(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_fully_connected(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_matmul(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_graph_conv(NULL, x, x, NULL)), true);
    GIVES(is_none(sdlf_graph_conv_directed(NULL, x, x, x, NULL)), true);
    GIVES(is_none(sdlf_flatten(NULL, x)), true);
    GIVES(is_none(sdlf_reshape(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_transpose(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_concat(NULL, &x, 1, NULL)), true);
    GIVES(is_none(sdlf_slice(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_pad(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_expand(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_tile(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_depth_to_space(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_space_to_depth(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_value(NULL, NULL)), true);
    GIVES(is_none(sdlf_cast(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_conv2d(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_conv_transpose2d(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_max_pool2d(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_avg_pool2d(NULL, x, NULL)), true);
    GIVES(is_none(sdlf_global_avg_pool2d(NULL, x)), true);
}

/* Omitted options are defaults: for a required member, a layer reports the same error as for a member left at
 * zero. */
static void layers_without_options(void)
{
    for (int i = 0; sdlf_layer_class_at(i) != NULL; i++) {
        const sdlf_layer_class *type = sdlf_layer_class_at(i);
        sdlf_model *net = sdlf_model_create("net");
        sdlf_node inputs[SDLF_MAX_LAYER_INPUTS];
        for (int j = 0; j < type->minimum_inputs; j++) {
            char name[32];
            snprintf(name, sizeof name, "input%d", j);
            inputs[j] = sdlf_input(net, name, SDLF_FLOAT32, sdlf_shape(2, 4, 4));
        }
        nulls_begin(type->name);
        sdlf_output(net, "y", sdlf_model_add(net, type, NULL, inputs, type->minimum_inputs));
        sdlf_status status = sdlf_model_build(net, 1);
        if (!CHECK(status == SDLF_OK || strstr(sdlf_error_message(), type->name) != NULL))
            printf("    %s: %s\n", type->name, sdlf_error_message());
        sdlf_model_free(net);
    }
}

/* A NULL argument while building is recorded as the model's first error. */
static void building(void)
{
    const sdlf_layer_class *relu = sdlf_layer_class_find("relu");
    const sdlf_layer_class *no_class = NULL;
    for (int i = 0; i < 9; i++) {
        static const char *const expected[] = {
            "sdlf_input: name is NULL",       "sdlf_sparse_input: name is NULL",  "sdlf_output: name is NULL",
            "sdlf_model_add: type is NULL",   "sdlf_model_add: inputs is NULL",   "sdlf_model_add: inputs is NULL",
            "sdlf_model_add: inputs is NULL", "sdlf_output_length: name is NULL", "sdlf_output_length: name is NULL"};
        sdlf_model *net = sdlf_model_create("net");
        sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(1));
        nulls_begin(expected[i]);
        if (i == 0) CHECK(is_none(sdlf_input(net, NULL, SDLF_FLOAT32, sdlf_shape(1))));
        if (i == 1) CHECK(is_none(sdlf_sparse_input(net, NULL)));
        if (i == 2) sdlf_output(net, NULL, x);
        if (i == 3) CHECK(is_none(sdlf_model_add(net, no_class, NULL, &x, 1)));
        if (i == 4) CHECK(is_none(sdlf_model_add(net, relu, NULL, NULL, 1)));
        if (i == 5) CHECK(is_none(sdlf_concat(net, NULL, 2, NULL)));
        if (i == 6) CHECK(is_none(sdlf_binary(net, NULL, 2, NULL)));
        if (i == 7) sdlf_output_length(net, NULL, 0, "n");
        if (i == 8) sdlf_output_length(net, "y", 0, NULL);
        CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, expected[i]);
        CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_ARGUMENT, expected[i]);
        sdlf_model_free(net);
    }
}

static void names(void)
{
    sdlf_model *net = small_cnn();
    CHECK_OK(sdlf_model_build(net, 1));
    GIVES(sdlf_model_find_parameter(net, NULL), NULL);
    GIVES(sdlf_layer_class_find(NULL), NULL);
    CHECK_FAILS(sdlf_register_layer(NULL), SDLF_ERROR_ARGUMENT, "sdlf_register_layer_sized: type is NULL");
    REFUSED(sdlf_register_layer_sized(NULL, sizeof(sdlf_layer_class)), "type");
    REFUSED(sdlf_model_freeze(net, NULL, true), "parameter");
    REFUSED(sdlf_model_set_classes(net, NULL, 1), "names");
    DOES_NOTHING(sdlf_model_set_origin(net, NULL)); /* from nowhere */
    CHECK_OK(sdlf_model_status(net));
    sdlf_model_free(net);
}

/* Functions for authors of layers. */
static void signatures(void)
{
    sdlf_operation operation = {.kind = SDLF_FILL};
    sdlf_layer_context context = {.sink = NULL};
    REFUSED(sdlf_signature_add_output(NULL, SDLF_FLOAT32, sdlf_shape(1)), "signature");
    REFUSED(sdlf_signature_add_parameter(NULL, (sdlf_parameter_spec){.name = "weight"}), "signature");
    REFUSED(sdlf_signature_add_saved(NULL, SDLF_FLOAT32, sdlf_shape(1)), "signature");
    REFUSED(sdlf_emit(NULL, &operation), "context");
    REFUSED(sdlf_emit(&context, NULL), "operation");
    GIVES(sdlf_layer_supports(NULL, NULL), false);
    GIVES(sdlf_scratch(NULL, SDLF_FLOAT32, sdlf_shape(1)).dtype, SDLF_NONE);
}

/* Indices that are too small or too large. */
static void numbers_beyond(void)
{
    sdlf_model *net = small_cnn();
    static const int wrong[] = {-1, 1000, -2147483647 - 1, 2147483647};
    for (int i = 0; i < 4; i++) {
        int at = wrong[i];
        GIVES(sdlf_model_layer(net, at), NULL);
        GIVES(sdlf_model_layer_input_count(net, at), 0);
        GIVES(is_none(sdlf_model_layer_input(net, at, 0)), true);
        GIVES(is_none(sdlf_model_layer_input(net, 1, at)), true);
        GIVES(is_none(sdlf_model_input(net, at)), true);
        GIVES(is_none(sdlf_model_output(net, at)), true);
        GIVES(sdlf_model_output_name(net, at), NULL);
        GIVES(sdlf_model_node_shape(net, (sdlf_node){at, 0}).rank, 0);
        GIVES(sdlf_model_node_shape(net, (sdlf_node){1, at}).rank, 0);
        GIVES(sdlf_model_parameter(net, at), NULL);
    }
    int last = sdlf_model_layer_count(net) - 1; /* the last valid index, and the first invalid one */
    CHECK(sdlf_model_layer(net, last) != NULL && sdlf_model_layer(net, last + 1) == NULL);
    CHECK_EQUAL(sdlf_model_layer_input_count(net, last), 1);
    CHECK_EQUAL(sdlf_model_layer_input(net, last, 0).layer, last - 1);
    CHECK(is_none(sdlf_model_layer_input(net, last, 1)));
    CHECK_EQUAL(sdlf_model_layer_input_count(net, last + 1), 0);
    CHECK_EQUAL(sdlf_model_layer_input_count(net, 0), 0); /* an input */
    sdlf_model_free(net);
}

int main(void)
{
    RUN(no_model);
    RUN(no_model_for_layers);
    RUN(layers_without_options);
    RUN(numbers_beyond);
    RUN(building);
    RUN(names);
    RUN(signatures);
    return test_summary();
}
