/* SPDX-License-Identifier: MIT */
/* Lowering of layers to steps: each live layer emits its forward pass once, and the operations are recorded.
 *
 * Values are numbered: 0 is none, followed by the outputs of all layers, the model's parameters, and the layers'
 * temporaries. An identity layer, and a batch normalisation that is folded, aliases its output to its input; a
 * parameter that a layer outputs unchanged (`value`) is that output. */
#include "framework/formats/c/c_export.h"

#include <stdlib.h>

#include "framework/input_layer.h"
#include "framework/sink.h"

typedef struct c_sink {
    layer_sink base;
    c_export *e;
    int layer;
} c_sink;

int c_output_value(sdlf_node node)
{
    return 1 + node.layer * SDLF_MAX_LAYER_OUTPUTS + node.output;
}

int c_parameter_value(const c_export *e, int parameter)
{
    return 1 + e->model->layer_count * SDLF_MAX_LAYER_OUTPUTS + parameter;
}

int c_root(const c_export *e, int value)
{
    while (e->value[value].root != value) value = e->value[value].root;
    return value;
}

bool c_is_whole(const c_export *e, const sdlf_tensor *tensor)
{
    return tensor->offset == 0 && sdlf_tensor_is_contiguous(tensor) &&
           sdlf_tensor_count(tensor) == e->value[tensor->buffer].count;
}

/* ---- values ---- */

static void set_value(c_export *e, int layer, int value, sdlf_dtype dtype, sdlf_shape shape)
{
    int64_t count = sdlf_shape_count(shape);
    if (count == 0) c_refuse(e, layer, "shape %s is empty; C has no empty arrays", sdlf_shape_print(shape).text);
    if (count < 0 || count > INT32_MAX / 4)
        c_refuse(e, layer, "%s are %lld elements, more than its loops count", sdlf_shape_print(shape).text,
                 (long long)count);
    e->value[value] = (c_value){.dtype = dtype, .count = count, .root = value, .first = -1, .last = -1};
}

static sdlf_tensor tensor_of(int value, sdlf_dtype dtype, sdlf_shape shape)
{
    sdlf_tensor tensor = sdlf_tensor_view(dtype, shape, NULL);
    tensor.buffer = value;
    return tensor;
}

/* Adds a temporary value of a layer. */
static sdlf_status add_value(c_export *e, int layer, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor)
{
    if (!c_ok(e)) return e->status;
    if (e->value_count == e->value_capacity) {
        int capacity = e->value_capacity * 2;
        c_value *grown = realloc(e->value, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            c_no_memory(e);
            return e->status;
        }
        e->value = grown;
        e->value_capacity = capacity;
    }
    set_value(e, layer, e->value_count, dtype, shape);
    *tensor = tensor_of(e->value_count++, dtype, shape);
    return e->status;
}

static sdlf_status scratch(layer_sink *base, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor)
{
    c_sink *sink = (c_sink *)base;
    return add_value(sink->e, sink->layer, dtype, shape, tensor);
}

/* ---- steps ---- */

/* True for a parameter output unchanged, possibly as another type: its elements are then written as that. */
static bool aliases_parameter(c_export *e, const sdlf_operation *operation)
{
    const sdlf_tensor *from = &operation->in[0], *to = &operation->out[0];
    if (operation->kind != SDLF_COPY || e->value[from->buffer].kind != C_WEIGHTS) return false;
    if (!c_is_whole(e, from) || !c_is_whole(e, to)) return false;
    e->value[to->buffer].root = from->buffer;
    e->value[from->buffer].dtype = to->dtype;
    return true;
}

static bool takes(const layer_sink *base, const sdlf_operation *operation)
{
    (void)base;
    return c_supports(operation->kind);
}

static sdlf_status emit(layer_sink *base, const sdlf_operation *operation)
{
    c_sink *sink = (c_sink *)base;
    c_export *e = sink->e;
    sdlf_status status = sdlf_operation_check(operation);
    if (status != SDLF_OK) return e->status = status;
    if (!c_supports(operation->kind))
        c_refuse(e, sink->layer, "networks as C have no operation '%s'", sdlf_operation_type(operation)->name);
    if (!c_ok(e) || aliases_parameter(e, operation)) return e->status;
    if (e->step_count == e->step_capacity) {
        int capacity = e->step_capacity > 0 ? e->step_capacity * 2 : 64;
        c_step *grown = realloc(e->step, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            c_no_memory(e);
            return e->status;
        }
        e->step = grown;
        e->step_capacity = capacity;
    }
    e->step[e->step_count++] = (c_step){*operation, sink->layer};
    return SDLF_OK;
}

/* ---- layers ---- */

static void make_values(c_export *e)
{
    const sdlf_model *model = e->model;
    for (int i = 0; i < model->layer_count && c_ok(e); i++)
        for (int k = 0; e->state[i].live && k < c_at(e, i)->output_count; k++)
            set_value(e, i, c_output_value((sdlf_node){i, k}), c_at(e, i)->output_dtype[k],
                      c_at(e, i)->output_shape[k]);
    for (int p = 0; p < model->parameter_count && c_ok(e); p++) {
        int value = c_parameter_value(e, p);
        set_value(e, model->parameters[p].layer, value, SDLF_FLOAT32, model->parameters[p].spec.shape);
        e->value[value].kind = C_WEIGHTS;
        e->value[value].index = p;
    }
}

/* The context of the layer's forward pass, including tensors that it saves. */
static sdlf_status describe(c_export *e, int layer, c_sink *sink)
{
    const model_layer *at = c_at(e, layer);
    sdlf_signature signature = {.batch = 1, .input_count = at->input_count, .dtype = SDLF_FLOAT32};
    sdlf_tensor input[SDLF_MAX_LAYER_INPUTS], output[SDLF_MAX_LAYER_OUTPUTS], parameter[SDLF_MAX_LAYER_PARAMETERS];
    sdlf_tensor saved[SDLF_MAX_LAYER_SAVED];
    for (int i = 0; i < at->input_count; i++) {
        const model_layer *from = c_at(e, at->inputs[i].layer);
        int k = at->inputs[i].output;
        signature.input_shape[i] = from->output_shape[k];
        signature.input_dtype[i] = from->output_dtype[k];
        signature.input_sparse[i] = from->output_sparse[k];
        input[i] = tensor_of(c_output_value(at->inputs[i]), from->output_dtype[k], from->output_shape[k]);
    }
    sdlf_status status = model_layer_infer(&at->layer, layer, NULL, &signature);
    for (int k = 0; k < at->output_count; k++)
        output[k] = tensor_of(c_output_value((sdlf_node){layer, k}), at->output_dtype[k], at->output_shape[k]);
    for (int p = 0; p < at->parameter_count; p++)
        parameter[p] = tensor_of(c_parameter_value(e, at->first_parameter + p), SDLF_FLOAT32,
                                 e->model->parameters[at->first_parameter + p].spec.shape);
    for (int i = 0; i < signature.saved_count && status == SDLF_OK; i++)
        status = add_value(e, layer, signature.saved_dtype[i], signature.saved_shape[i], &saved[i]);
    sdlf_layer_context context = {
        .input = input,
        .output = output,
        .parameter = parameter,
        .saved = saved,
        .input_count = at->input_count,
        .sink = sink,
    };
    if (status == SDLF_OK) status = at->layer.type->forward(&at->layer, &context);
    return status == SDLF_OK ? sink->base.status : status;
}

static bool does_nothing(const sdlf_layer *layer)
{
    return layer->type->forward == NULL ||
           (layer->type->is_identity_in_inference != NULL && layer->type->is_identity_in_inference(layer));
}

static void lower_layer(c_export *e, int layer)
{
    const model_layer *at = c_at(e, layer);
    c_sink sink = {.base = {.emit = emit, .takes = takes, .scratch = scratch}, .e = e, .layer = layer};
    for (int k = 0; k < at->output_count; k++)
        if (at->output_sparse[k])
            c_refuse(e, layer, "a sparse matrix is as large as its graph, and C's arrays are fixed");
    if (at->layer.type->is_loss) c_refuse(e, layer, "losses are not exported, but something reads this one");
    if (!c_ok(e) || at->layer.type == &sdlf_input_layer_class) return;
    if (does_nothing(&at->layer) || e->state[layer].folded) {
        e->value[c_output_value((sdlf_node){layer, 0})].root = c_output_value(at->inputs[0]);
        return;
    }
    sdlf_status status = describe(e, layer, &sink);
    if (status != SDLF_OK && c_ok(e)) e->status = status;
}

void c_lower(c_export *e)
{
    e->value_count = c_parameter_value(e, e->model->parameter_count);
    e->value_capacity = e->value_count + 16;
    e->value = calloc((size_t)e->value_capacity, sizeof *e->value);
    if (e->value == NULL) c_no_memory(e);
    if (c_ok(e)) make_values(e);
    for (int i = 0; i < e->model->layer_count && c_ok(e); i++)
        if (e->state[i].live) lower_layer(e, i);
}
