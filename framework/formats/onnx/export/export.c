/* SPDX-License-Identifier: MIT */
/* The export as a whole: builds a graph in the lowest opset that suffices, and writes it. See export.h. */
#include "framework/formats/onnx/export/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "framework/formats/text.h"
#include "framework/input_layer.h"
#include "framework/require.h"

/* ---- failing ---- */

bool export_ok(const onnx_export *e)
{
    return e->status == SDLF_OK && e->needed_opset == 0;
}

void export_no_memory(onnx_export *e)
{
    if (e->status == SDLF_OK)
        e->status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for the graph of model '%s'", e->model->name);
}

void export_refuse(onnx_export *e, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    if (!export_ok(e)) return;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    const sdlf_layer *layer = &e->now->layer;
    e->status = sdlf_fail(SDLF_ERROR_UNSUPPORTED, "layer %d '%s' (%s) cannot be written as ONNX: %s%s%s", e->position,
                          text_show(layer->name).text, layer->type->name, reason,
                          layer->origin != NULL ? "; from " : "", layer->origin != NULL ? layer->origin : "");
}

bool export_needs(onnx_export *e, int opset, const char *what)
{
    if (e->opset >= opset) return true;
    export_refuse(e, "%s needs opset %d, and opset %d was asked for", what, opset, e->opset);
    if (e->needed_opset < opset) e->needed_opset = opset;
    return false;
}

void export_needs_fixed_batch(onnx_export *e)
{
    e->fixed_batch = true;
}

void export_check_samples(onnx_export *e)
{
    for (int axis = 1; axis < export_in_shape(e, 0).rank; axis++)
        if (export_varies(e, 0, axis)) export_needs_fixed_batch(e);
}

/* ---- a writer's view of its layer ---- */

const void *export_options(const onnx_export *e)
{
    return e->now->layer.options;
}

static const model_layer *source(const onnx_export *e, int input)
{
    return &e->model->layers[e->now->inputs[input].layer];
}

int export_in_count(const onnx_export *e)
{
    return e->now->input_count;
}

const char *export_in(const onnx_export *e, int input)
{
    sdlf_node node = e->now->inputs[input];
    return e->layer[node.layer].value[node.output];
}

sdlf_shape export_in_shape(const onnx_export *e, int input)
{
    return source(e, input)->output_shape[e->now->inputs[input].output];
}

sdlf_dtype export_in_dtype(const onnx_export *e, int input)
{
    return source(e, input)->output_dtype[e->now->inputs[input].output];
}

sdlf_shape export_out_shape(const onnx_export *e)
{
    return e->now->output_shape[0];
}

bool export_varies(const onnx_export *e, int input, int axis)
{
    sdlf_node node = e->now->inputs[input];
    return !e->fixed_batch && e->layer[node.layer].wide[node.output].dim[axis] != export_in_shape(e, input).dim[axis];
}

int export_axis(const onnx_export *e, int64_t axis)
{
    return (int)(axis < 0 ? axis + export_in_shape(e, 0).rank : axis);
}

/* ---- the graph ---- */

static void write_layer(onnx_export *e, int position)
{
    const model_layer *layer = &e->model->layers[position];
    if (!e->layer[position].live || layer->layer.type == &sdlf_input_layer_class) return;
    e->now = layer;
    e->position = position;
    e->steps = 0;
    e->named = false;
    if (layer->layer.type->is_loss)
        export_refuse(e, "losses are not exported, but something reads this one");
    else
        export_writer_of(layer->layer.type)(e);
}

void export_collect(onnx_export *e)
{
    e->graph.node = (Onnx__NodeProto **)e->nodes.item;
    e->graph.n_node = e->nodes.count;
    e->graph.initializer = (Onnx__TensorProto **)e->weights.item;
    e->graph.n_initializer = e->weights.count;
    e->graph.input = (Onnx__ValueInfoProto **)e->inputs.item;
    e->graph.n_input = e->inputs.count;
    e->graph.output = (Onnx__ValueInfoProto **)e->outputs.item;
    e->graph.n_output = e->outputs.count;
}

static sdlf_status make(onnx_export *e)
{
    e->status = export_prepare(e);
    if (e->status != SDLF_OK) return e->status;
    e->graph = (Onnx__GraphProto)ONNX__GRAPH_PROTO__INIT;
    e->graph.name = e->model->name;
    export_inputs(e);
    if (e->normalize) export_normalization(e);
    bool fixed = e->fixed_batch;
    for (int i = 0; i < e->model->layer_count && e->status == SDLF_OK && e->fixed_batch == fixed; i++)
        write_layer(e, i);
    if (e->fixed_batch == fixed) export_outputs(e);
    export_collect(e);
    return e->status;
}

void export_release(onnx_export *e)
{
    onnx_arena_release(&e->arena);
}

sdlf_status export_run(onnx_export *e, const sdlf_model *model, int opset, bool normalize)
{
    bool fixed = false;
    int now = opset > 0 ? opset : EXPORT_FIRST_OPSET;
    for (;;) { /* each turn either finishes, raises the opset, or fixes the batch: at most seven turns */
        *e = (onnx_export){.model = model, .opset = now, .fixed_batch = fixed, .normalize = normalize};
        sdlf_status status = make(e);
        bool again = (opset == 0 && e->needed_opset > now) || e->fixed_batch != fixed;
        if (!again || status == SDLF_ERROR_MEMORY) return status;
        if (opset == 0 && e->needed_opset > now) now = e->needed_opset;
        fixed = e->fixed_batch;
        export_release(e);
    }
}

sdlf_status export_check(const sdlf_model *model, int opset)
{
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (!model->built)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "model '%s' has no parameters to export yet: build it first",
                         model->name);
    if (opset == 0 || (opset >= EXPORT_FIRST_OPSET && opset <= EXPORT_LAST_OPSET)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "opset %d: ONNX is written in opsets %d to %d", opset, EXPORT_FIRST_OPSET,
                     EXPORT_LAST_OPSET);
}

sdlf_status sdlf_model_to_onnx(const sdlf_model *model, const char *path, const sdlf_onnx_export_options *options,
                               sdlf_onnx_exported *result)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    static const sdlf_onnx_export_options none = {0};
    sdlf_onnx_exported ignored;
    if (options == NULL) options = &none;
    if (result == NULL) result = &ignored;
    *result = (sdlf_onnx_exported){0};
    sdlf_status status = export_check(model, options->opset);
    if (status != SDLF_OK) return status;
    if (options->normalize && !model->normalization.known)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "model '%s' does not say how its samples are normalised", model->name);
    onnx_export e;
    status = export_run(&e, model, options->opset, options->normalize);
    if (status == SDLF_OK) status = export_write(&e, path, options->external_data, result);
    if (status == SDLF_OK) {
        result->opset = e.opset;
        result->node_count = (int)e.nodes.count;
        result->parameter_count = e.parameter_count;
        result->fixed_batch = e.fixed_batch;
    }
    export_release(&e);
    return status;
}
