/* SPDX-License-Identifier: MIT */
/* See generate_cached.h: a second network with the same layers, for one position and the cache of earlier ones. */
#include "apps/generate_cached.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

enum { MOST_BLOCKS = 256, NAME = 300 };

struct cached_network {
    sdlf_model *from;
    sdlf_stateful *stateful;
    int64_t length;
    int classes;
    sdlf_state state[2 * MOST_BLOCKS];
    int state_count;
};

/* ---- layers: names of those that are added are not ones that others have ---- */

/* Options of layers whose only option is a name. */
typedef struct named_options {
    const char *name;
} named_options;

typedef struct making {
    cached_network *network;
    sdlf_model *net;
    sdlf_node position;
    sdlf_node *made; /* of each original layer */
    int64_t past;
} making;

static sdlf_node input_of(const making *m, int layer, int index)
{
    return m->made[sdlf_model_layer_input(m->network->from, layer, index).layer];
}

/* Extracts a third (query, key or value) of the projection, (N,1,H D), as heads (N,H,1,D). */
static sdlf_node cut_heads(const making *m, sdlf_node projected, int third, int64_t channels, int64_t heads)
{
    sdlf_slice_options part = {
        .axes = sdlf_shape(2), .start = sdlf_shape(third * channels), .end = sdlf_shape((third + 1) * channels)};
    sdlf_node x = sdlf_slice(m->net, projected, &part);
    x = sdlf_reshape(m->net, x, &(sdlf_reshape_options){.shape = sdlf_shape(1, heads, channels / heads)});
    return sdlf_transpose(m->net, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1, 3)});
}

/* Appends the new position to the cached ones. */
static sdlf_node append_to_cache(making *m, const char *layer, const char *what, sdlf_node x, int64_t heads,
                                 int64_t depth)
{
    char past[NAME], present[NAME];
    snprintf(past, sizeof past, "%s.past_%s", layer, what);
    snprintf(present, sizeof present, "%s.present_%s", layer, what);
    sdlf_node both[] = {sdlf_input(m->net, past, SDLF_FLOAT32, sdlf_shape(heads, m->past, depth)), x};
    sdlf_node y = sdlf_concat(m->net, both, 2, &(sdlf_concat_options){.axis = 2});
    sdlf_output(m->net, present, y);
    return y;
}

/* Adds attention. The scale of the queries is folded into their weights. */
static sdlf_node add_attention(making *m, int index, const sdlf_layer *layer)
{
    const sdlf_multi_head_attention_options *options = layer->options;
    char in[NAME], out[NAME], share[NAME];
    snprintf(share, sizeof share, "%s.softmax", layer->name);
    snprintf(in, sizeof in, "%s.in_proj", layer->name);
    snprintf(out, sizeof out, "%s.out_proj", layer->name);
    int64_t channels =
        sdlf_model_node_shape(m->network->from, sdlf_model_layer_input(m->network->from, index, 0)).dim[2];
    int64_t heads = options->heads, depth = channels / heads;
    sdlf_fully_connected_options linear = {
        .name = in, .units = (int)(3 * channels), .no_bias = options->no_bias, .axis = -1};
    sdlf_node projected = sdlf_fully_connected(m->net, input_of(m, index, 0), &linear);
    sdlf_node q = cut_heads(m, projected, 0, channels, heads);
    sdlf_node k = append_to_cache(m, layer->name, "key", cut_heads(m, projected, 1, channels, heads), heads, depth);
    sdlf_node v = append_to_cache(m, layer->name, "value", cut_heads(m, projected, 2, channels, heads), heads, depth);
    sdlf_node p = sdlf_matmul(m->net, q, k, &(sdlf_matmul_options){.transpose_b = true});
    sdlf_softmax_options softmax = {.name = share, .axis = -1};
    p = sdlf_model_add(m->net, sdlf_layer_class_find("softmax"), &softmax, &p, 1);
    sdlf_node y = sdlf_matmul(m->net, p, v, NULL);
    y = sdlf_transpose(m->net, y, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1, 3)});
    y = sdlf_reshape(m->net, y, &(sdlf_reshape_options){.shape = sdlf_shape(1, channels)});
    linear =
        (sdlf_fully_connected_options){.name = out, .units = (int)channels, .no_bias = options->no_bias, .axis = -1};
    return sdlf_fully_connected(m->net, y, &linear);
}

/* Adds a position table, from which one row is gathered. */
static sdlf_node add_position(making *m, int index, const sdlf_layer *layer)
{
    const cached_network *network = m->network;
    int64_t channels = sdlf_model_node_shape(network->from, (sdlf_node){index, 0}).dim[2];
    sdlf_embedding_options table = {.name = layer->name, .vocabulary = (int)network->length, .units = (int)channels};
    const sdlf_node terms[] = {input_of(m, index, 0), sdlf_embedding(m->net, m->position, &table)};
    char sum[NAME];
    snprintf(sum, sizeof sum, "%s.sum", layer->name);
    return sdlf_model_add(m->net, sdlf_layer_class_find("add"), &(named_options){.name = sum}, terms, 2);
}

static void add_layer(making *m, int index)
{
    const sdlf_layer *layer = sdlf_model_layer(m->network->from, index);
    sdlf_node inputs[SDLF_MAX_LAYER_INPUTS];
    int count = sdlf_model_layer_input_count(m->network->from, index);
    for (int i = 0; i < count; i++) inputs[i] = input_of(m, index, i);
    if (strcmp(layer->type->name, "multi_head_attention") == 0)
        m->made[index] = add_attention(m, index, layer);
    else if (strcmp(layer->type->name, "position_embedding") == 0)
        m->made[index] = add_position(m, index, layer);
    else
        m->made[index] = sdlf_model_add(m->net, layer->type, layer->options, inputs, count);
}

/* ---- weights ---- */

/* The original name of a parameter: "a.in_proj.weight" was "a.in_proj_weight". */
static void old_name(char *to, const char *name)
{
    static const char *const own[] = {".in_proj.", ".out_proj."};
    snprintf(to, NAME, "%s", name);
    for (int i = 0; i < 2; i++) {
        char *at = strstr(to, own[i]);
        if (at != NULL) at[strlen(own[i]) - 1] = '_';
    }
}

/* Scales the query rows by 1 / sqrt(depth). */
static void scale_queries(const making *m, const char *name, sdlf_tensor *value)
{
    const char *end = strstr(name, ".in_proj_");
    for (int i = 0; end != NULL && i < sdlf_model_layer_count(m->network->from); i++) {
        const sdlf_layer *layer = sdlf_model_layer(m->network->from, i);
        if (strlen(layer->name) != (size_t)(end - name) || strncmp(layer->name, name, (size_t)(end - name)) != 0)
            continue;
        int64_t channels = value->shape.dim[0] / 3, count = sdlf_tensor_count(value) / 3;
        double depth = (double)(channels / ((const sdlf_multi_head_attention_options *)layer->options)->heads);
        for (int64_t e = 0; e < count; e++)
            ((float *)value->data)[e] = (float)(((float *)value->data)[e] / sqrt(depth));
    }
}

static sdlf_status copy_weights(const making *m)
{
    char name[NAME];
    sdlf_status status = sdlf_model_build(m->net, 1);
    for (int i = 0; i < sdlf_model_parameter_count(m->net) && status == SDLF_OK; i++) {
        sdlf_tensor *to = &sdlf_model_parameter(m->net, i)->value;
        old_name(name, sdlf_model_parameter(m->net, i)->name);
        const sdlf_parameter *from = sdlf_model_find_parameter(m->network->from, name);
        if (from == NULL || sdlf_tensor_count(&from->value) != sdlf_tensor_count(to))
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "no parameter %s to continue with", name);
        memcpy(to->data, from->value.data, (size_t)sdlf_tensor_bytes(to));
        scale_queries(m, name, to);
    }
    return status;
}

static sdlf_status make_network(void *user, int64_t length, bool weights, sdlf_model **model)
{
    cached_network *network = user;
    int count = sdlf_model_layer_count(network->from), token = sdlf_model_input(network->from, 0).layer;
    making m = {.network = network, .net = *model = sdlf_model_create("cached"), .past = length};
    if (m.net == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    m.made = memory_allocate((size_t)count * sizeof *m.made + 1);
    m.made[token] = sdlf_input(m.net, "token", SDLF_FLOAT32, sdlf_shape(1));
    m.position = sdlf_input(m.net, "position", SDLF_FLOAT32, sdlf_shape(1));
    sdlf_node scores = sdlf_model_output(network->from, 0);
    for (int i = 0; i < count; i++)
        if (i != token) add_layer(&m, i);
    sdlf_output(m.net, "scores", m.made[scores.layer]);
    free(m.made);
    sdlf_status status = sdlf_model_status(m.net);
    return status == SDLF_OK && weights ? copy_weights(&m) : status;
}

/* ---- which networks ---- */

/* True if the layer is position-wise, or depends on earlier positions in a way supported here. */
static bool is_known(const sdlf_layer *layer)
{
    static const char *const alone[] = {
        "input", "embedding", "position_embedding", "add", "unary", "relu", "rms_norm", "dropout", "sigmoid",
        "tanh",  NULL};
    const char *type = layer->type->name;
    for (int i = 0; alone[i] != NULL; i++)
        if (strcmp(type, alone[i]) == 0) return true;
    if (strcmp(type, "fully_connected") == 0) return ((const sdlf_fully_connected_options *)layer->options)->axis == -1;
    if (strcmp(type, "layer_norm") == 0) return ((const sdlf_layer_norm_options *)layer->options)->axis == -1;
    if (strcmp(type, "softmax") == 0 || strcmp(type, "log_softmax") == 0)
        return ((const sdlf_softmax_options *)layer->options)->axis == -1;
    const sdlf_multi_head_attention_options *attention = layer->options;
    return strcmp(type, "multi_head_attention") == 0 && attention->causal && !attention->rotary;
}

static void add_states(cached_network *network, const char *layer)
{
    static const char *const what[] = {"key", "value"};
    for (int i = 0; i < 2; i++)
        network->state[network->state_count++] = (sdlf_state){.input = memory_print("%s.past_%s", layer, what[i]),
                                                              .output = memory_print("%s.present_%s", layer, what[i])};
}

static bool find_states(cached_network *network)
{
    const sdlf_model *from = network->from;
    for (int i = 0; i < sdlf_model_layer_count(from); i++) {
        const sdlf_layer *layer = sdlf_model_layer(from, i);
        bool attention = strcmp(layer->type->name, "multi_head_attention") == 0;
        if (!is_known(layer) || strlen(layer->name) > NAME - 20) return false;
        if (!attention) continue;
        if (sdlf_model_layer_input_count(from, i) != 1 || network->state_count == 2 * MOST_BLOCKS) return false;
        add_states(network, layer->name);
    }
    return network->state_count > 0;
}

cached_network *cached_network_create(sdlf_model *model, sdlf_calculator *calculator, int64_t length, int classes)
{
    cached_network *network = memory_allocate(sizeof *network);
    *network = (cached_network){.from = model, .length = length, .classes = classes};
    bool made = sdlf_calculator_is_on_host(calculator) && find_states(network) && length <= INT32_MAX;
    made = made && sdlf_stateful_create_with(&network->stateful, make_network, network,
                                             &(sdlf_stateful_options){.calculator = calculator,
                                                                      .states = network->state,
                                                                      .state_count = network->state_count,
                                                                      .capacity = length}) == SDLF_OK;
    if (made) return network;
    cached_network_free(network);
    return NULL;
}

void cached_network_free(cached_network *network)
{
    if (network == NULL) return;
    sdlf_stateful_free(network->stateful);
    for (int i = 0; i < network->state_count; i++) {
        free((char *)network->state[i].input);
        free((char *)network->state[i].output);
    }
    free(network);
}

sdlf_status cached_network_step(cached_network *network, int32_t token, int64_t position, float *scores)
{
    sdlf_plan *plan;
    float number = (float)token, place = (float)position;
    sdlf_status status = sdlf_stateful_rewind(network->stateful, position);
    if (status == SDLF_OK) status = sdlf_stateful_prepare(network->stateful, &plan);
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "token", &number, SDLF_FLOAT32, sizeof number);
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "position", &place, SDLF_FLOAT32, sizeof place);
    if (status == SDLF_OK) status = sdlf_stateful_run(network->stateful);
    if (status != SDLF_OK) return status;
    return sdlf_plan_read(plan, "scores", scores, SDLF_FLOAT32, network->classes * (int64_t)sizeof *scores);
}
