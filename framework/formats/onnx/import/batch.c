/* SPDX-License-Identifier: MIT */
/* The plan's batch in a graph that is imported for a batch of 1: its position in each value, and views that keep it.
 *
 * Every layer's shapes are inferred a second time, for a batch size that occurs in no network by chance. An axis that
 * grows by exactly that factor contains the batch, possibly merged with other dimensions: (17 N, 8), where each of 17
 * tokens has N rows, or (2 N, 17, 4), where each sample has 2 heads. `inside` distinguishes them: how many elements of
 * the axis precede the batch, 17 and 1. A view keeps elements in place, so samples stay separate if as many elements
 * precede the batch afterwards. If samples were concatenated or repeated along the axis, views must keep that axis, and
 * an operator that takes a part of it is valid for one batch size only. */
#include "framework/formats/onnx/import/import.h"

#include <string.h>

typedef onnx_batch batches[SDLF_MAX_LAYER_OUTPUTS];

static const onnx_batch no_batch = {.axis = -1};

static onnx_batch *entry(const onnx_import *import, sdlf_node node)
{
    return &((batches *)import->batches)[node.layer][node.output];
}

onnx_batch onnx_batch_of(const onnx_context *c, onnx_flow x)
{
    return onnx_ok(c) && x.node.layer >= 0 && c->import->batches != NULL ? *entry(c->import, x.node) : no_batch;
}

int onnx_batch_axis(const onnx_context *c, onnx_flow x)
{
    return onnx_batch_of(c, x).axis;
}

/* The number of elements that precede the batch. */
static int64_t before(sdlf_shape shape, onnx_batch batch)
{
    return sdlf_shape_span(shape, 0, batch.axis) * batch.inside;
}

/* The batch in that axis, preceded by that many elements; none if impossible. */
static onnx_batch behind(sdlf_shape shape, int axis, int64_t elements)
{
    int64_t span = axis >= 0 ? sdlf_shape_span(shape, 0, axis) : 0;
    if (span < 1 || elements % span != 0 || shape.dim[axis] % (elements / span) != 0) return no_batch;
    return (onnx_batch){.axis = axis, .inside = elements / span};
}

/* The batch of x in that axis of another shape with the same elements; none if impossible. */
static onnx_batch moved(sdlf_shape x, onnx_batch batch, sdlf_shape shape, int axis)
{
    if (batch.axis < 0 || axis < 0) return no_batch;
    if (batch.inside > 0) return behind(shape, axis, before(x, batch));
    bool stays =
        sdlf_shape_span(x, 0, batch.axis) == sdlf_shape_span(shape, 0, axis) && x.dim[batch.axis] == shape.dim[axis];
    return stays ? (onnx_batch){.axis = axis, .inside = 0} : no_batch;
}

/* ---- in layers ---- */

/* The axis that grows by exactly the batch; -1: none. */
static int larger_axis(sdlf_shape shape, sdlf_shape wide)
{
    int found = -1;
    for (int i = 0; i < shape.rank; i++) {
        if (wide.dim[i] == shape.dim[i]) continue;
        if (found >= 0 || wide.dim[i] != MODEL_OTHER_BATCH * shape.dim[i]) return -1;
        found = i;
    }
    return found;
}

/* For concat and tile: true if the samples of each input are innermost along the axis; then so they are in the output. */
static bool are_innermost(const onnx_import *import, const model_layer *layer)
{
    const char *name = layer->layer.type->name;
    if (strcmp(name, "concat") != 0 && strcmp(name, "tile") != 0) return false;
    for (int i = 0; i < layer->input_count; i++) {
        sdlf_node node = layer->inputs[i];
        onnx_batch batch = *entry(import, node);
        if (batch.axis < 0 ||
            batch.inside != import->model->layers[node.layer].output_shape[node.output].dim[batch.axis])
            return false;
    }
    return true;
}

/* The batch in an output's axis. If the axis differs in length from that of an input, that was concatenated or expanded
 * along it: then the order of its samples differs. */
static onnx_batch find_batch(const onnx_import *import, const model_layer *layer, sdlf_shape shape, int axis)
{
    onnx_batch found = no_batch;
    bool view = layer->layer.type->forward == NULL && layer->input_count == 1, any = false;
    if (axis < 0) return no_batch;
    for (int i = 0; i < layer->input_count; i++) {
        sdlf_node node = layer->inputs[i];
        onnx_batch batch = *entry(import, node);
        if (batch.axis < 0) continue;
        sdlf_shape x = import->model->layers[node.layer].output_shape[node.output];
        if (view) return moved(x, batch, shape, axis);
        if (x.dim[batch.axis] != shape.dim[axis] || (any && batch.inside != found.inside))
            return (onnx_batch){.axis = axis, .inside = are_innermost(import, layer) ? shape.dim[axis] : 0};
        found = (onnx_batch){.axis = axis, .inside = batch.inside};
        any = true;
    }
    if (!any && shape.dim[axis] == 1)
        found = (onnx_batch){.axis = axis, .inside = 1}; /* an input, or created per sample */
    return found;
}

/* Ensures capacity for one more layer. */
static bool reserve(onnx_import *import, int layer)
{
    if (layer < import->batch_capacity) return true;
    int capacity = 2 * layer + 64;
    batches *larger = onnx_arena_array(&import->file->arena, (size_t)capacity, sizeof *larger);
    if (larger == NULL) return false;
    if (import->batch_capacity > 0) memcpy(larger, import->batches, (size_t)import->batch_capacity * sizeof *larger);
    import->batches = larger;
    import->batch_capacity = capacity;
    return true;
}

bool onnx_batch_note(onnx_import *import, int index)
{
    const model_layer *layer = &import->model->layers[index];
    if (!reserve(import, index)) return false;
    for (int i = 0; i < SDLF_MAX_LAYER_OUTPUTS; i++) *entry(import, (sdlf_node){index, i}) = no_batch;
    if (!import->batched) return true;
    sdlf_signature signature = {.batch = MODEL_OTHER_BATCH, .input_count = layer->input_count, .dtype = SDLF_FLOAT32};
    for (int i = 0; i < layer->input_count; i++) {
        sdlf_node node = layer->inputs[i];
        const model_layer *from = &import->model->layers[node.layer];
        int axis = entry(import, node)->axis;
        signature.input_shape[i] = from->output_shape[node.output];
        if (axis >= 0) signature.input_shape[i].dim[axis] *= MODEL_OTHER_BATCH;
        signature.input_dtype[i] = from->output_dtype[node.output];
    }
    if (layer->layer.type->infer(&layer->layer, &signature) != SDLF_OK) return true; /* it supports no other batch */
    for (int i = 0; i < layer->output_count; i++) {
        int axis = larger_axis(layer->output_shape[i], signature.output_shape[i]);
        *entry(import, (sdlf_node){index, i}) = find_batch(import, layer, layer->output_shape[i], axis);
    }
    return true;
}

/* ---- views ---- */

onnx_flow onnx_batch_fixed(onnx_context *c, onnx_flow x)
{
    return onnx_layer(c, "reshape", &(sdlf_reshape_options){.shape = x.shape, .whole = true}, &x, 1);
}

onnx_flow onnx_reshape_batch(onnx_context *c, onnx_flow x, sdlf_shape shape, int axis)
{
    onnx_batch from = onnx_batch_of(c, x), to = moved(x.shape, from, shape, axis);
    if (!onnx_ok(c) || (sdlf_shape_equal(x.shape, shape) && from.axis == to.axis)) return x;
    bool whole = x.shape.rank == 0 || shape.rank == 0 || x.shape.dim[0] != shape.dim[0];
    if (from.axis >= 0) whole = whole || from.axis != 0 || to.axis != 0;
    if (to.axis >= 0 && whole) shape.dim[axis] = -1;
    return onnx_layer(c, "reshape",
                      &(sdlf_reshape_options){.shape = whole ? shape : sdlf_shape_without(shape, 0), .whole = whole},
                      &x, 1);
}

/* Ranks an axis as the batch if the shape allows several: an axis of 1 is the batch itself; then the given one; then
 * one that starts with the batch; the last axis, of features, is avoided while there is another. */
static int goodness(sdlf_shape shape, onnx_batch batch, int told)
{
    if (batch.axis < 0) return 0;
    if (shape.dim[batch.axis] == 1) return 5;
    if (batch.axis == told) return 4;
    if (batch.axis == shape.rank - 1) return 1;
    return batch.inside == 1 ? 3 : 2;
}

/* True if an adjacent axis of 1 could be the batch as well, so that the axis whose samples are reordered is ambiguous. */
static bool is_open(sdlf_shape shape, onnx_batch batch, int told)
{
    if (batch.axis < 0 || batch.inside > 0) return false;
    int before = batch.axis - 1, behind = batch.axis + 1;
    return (told >= 0 && told != batch.axis) || (before >= 0 && shape.dim[before] == 1) ||
           (behind < shape.rank && shape.dim[behind] == 1);
}

onnx_flow onnx_reshape_told(onnx_context *c, onnx_flow x, sdlf_shape shape, int told)
{
    onnx_batch from = onnx_batch_of(c, x);
    int axis = -1, best = 0;
    for (int i = 0; i < shape.rank && from.axis >= 0; i++) {
        onnx_batch to = moved(x.shape, from, shape, i);
        int now = is_open(shape, to, told) ? 0 : goodness(shape, to, told);
        if (now <= best) continue;
        best = now;
        axis = i;
    }
    return onnx_reshape_batch(c, x, shape, axis);
}

onnx_flow onnx_reshape(onnx_context *c, onnx_flow x, sdlf_shape shape)
{
    return onnx_reshape_told(c, x, shape, -1);
}
