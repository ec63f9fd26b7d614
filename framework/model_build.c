/* SPDX-License-Identifier: MIT */
/* Shape inference of a model. */
#include "framework/model_internal.h"

#include <sdlf/machine.h>
#include <stdio.h>
#include <string.h>

/* Sparse matrices are allowed only at inputs that require them. */
static sdlf_status check_sparse(const sdlf_layer_class *type, const sdlf_signature *signature)
{
    for (int i = 0; i < signature->input_count; i++) {
        bool wanted = type->sparse_inputs >> i & 1;
        if (signature->input_sparse[i] == wanted) continue;
        return sdlf_fail(SDLF_ERROR_SHAPE, "input %d is %s, expected a %s", i, wanted ? "dense" : "a sparse matrix",
                         wanted ? "sparse matrix" : "dense tensor");
    }
    return SDLF_OK;
}

/* Layers need elements to compute with: tensors without any can only be outputs of a network. */
static sdlf_status check_elements(const sdlf_signature *signature)
{
    for (int i = 0; i < signature->input_count; i++) {
        if (sdlf_shape_count(signature->input_shape[i]) == 0)
            return sdlf_fail(SDLF_ERROR_SHAPE, "input %d has no elements: its shape is %s", i,
                             sdlf_shape_print(signature->input_shape[i]).text);
    }
    return SDLF_OK;
}

sdlf_status model_layer_infer(const sdlf_layer *layer, int position, const sdlf_layer *producer,
                              sdlf_signature *signature)
{
    sdlf_status status = check_sparse(layer->type, signature);
    if (status == SDLF_OK) status = check_elements(signature);
    if (status == SDLF_OK) status = layer->type->infer(layer, signature);
    for (int i = 0; status == SDLF_OK && i < signature->output_count; i++) {
        if (sdlf_shape_count(signature->output_shape[i]) < 0)
            status = sdlf_fail(SDLF_ERROR_SHAPE, "output %s has too many elements",
                               sdlf_shape_print(signature->output_shape[i]).text);
    }
    for (int i = 0; status == SDLF_OK && i < signature->parameter_count; i++) {
        int64_t count = sdlf_shape_count(signature->parameter[i].shape);
        if (count < 0 || count > INT64_MAX / 64)
            status = sdlf_fail(SDLF_ERROR_SHAPE, "parameter %s of shape %s has too many elements",
                               signature->parameter[i].name, sdlf_shape_print(signature->parameter[i].shape).text);
    }
    if (status == SDLF_OK) return SDLF_OK;
    char from[256] = "";
    if (producer != NULL) snprintf(from, sizeof from, "; from %s '%s'", producer->type->name, producer->name);
    char at[256] = "";
    if (layer->origin != NULL) snprintf(at, sizeof at, "; at %s", layer->origin);
    if (layer->origin != NULL && status == SDLF_ERROR_ARGUMENT)
        status = SDLF_ERROR_FORMAT; /* an error of the file, not of a caller */
    return sdlf_fail(status, "layer %d '%s' (%s): %s%s%s", position, layer->name, layer->type->name,
                     sdlf_error_message(), from, at);
}

sdlf_status model_infer_layer(sdlf_model *model, int index, sdlf_signature *signature)
{
    model_layer *entry = &model->layers[index];
    *signature = (sdlf_signature){.batch = 1, .input_count = entry->input_count, .dtype = SDLF_FLOAT32};
    for (int i = 0; i < entry->input_count; i++) {
        sdlf_node node = entry->inputs[i];
        const model_layer *source = &model->layers[node.layer];
        if (node.output >= source->output_count)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "layer %d '%s': input %d is output %d of '%s', which has %d", index,
                             entry->layer.name, i, node.output, source->layer.name, source->output_count);
        signature->input_shape[i] = source->output_shape[node.output];
        signature->input_dtype[i] = source->output_dtype[node.output];
        signature->input_sparse[i] = source->output_sparse[node.output];
    }
    const sdlf_layer *producer = entry->input_count > 0 ? &model->layers[entry->inputs[0].layer].layer : NULL;
    sdlf_status status = model_layer_infer(&entry->layer, index, producer, signature);
    if (status != SDLF_OK) return status;
    entry->output_count = signature->output_count;
    memcpy(entry->output_shape, signature->output_shape, sizeof entry->output_shape);
    memcpy(entry->output_dtype, signature->output_dtype, sizeof entry->output_dtype);
    memcpy(entry->output_sparse, signature->output_sparse, sizeof entry->output_sparse);
    return SDLF_OK;
}

/* Adds the bytes of a layer's parameters to `total`. An amount that this process cannot have is rejected before any of
 * it is allocated, since systems that overcommit memory would kill the process later. The memory already used may be
 * these very parameters. A megabyte is always available: for so little nothing is queried, which would open files.
 * `machine` is zero until it is. */
static sdlf_status count_parameters(const sdlf_layer *layer, const sdlf_signature *signature, sdlf_machine *machine,
                                    double *total)
{
    enum { LITTLE = 1 << 20 };
    for (int i = 0; i < signature->parameter_count; i++)
        *total += (double)sdlf_shape_count(signature->parameter[i].shape) * sizeof(float);
    if (*total <= LITTLE) return SDLF_OK;
    sdlf_status status = machine->processors == 0 ? sdlf_machine_look(machine) : SDLF_OK;
    if (status != SDLF_OK) return status;
    double memory = (double)machine->available + (double)machine->held;
    if (*total <= memory) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_MEMORY,
        "model: the parameters up to layer '%s' (%s) take %.4g GB, and %.4g GB of memory is available (%s)%s%s",
        layer->name, layer->type->name, *total * 1e-9, memory * 1e-9, machine->available_by,
        layer->origin != NULL ? "; at " : "", layer->origin != NULL ? layer->origin : "");
}

sdlf_status model_infer(sdlf_model *model)
{
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (model->layer_count == 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "model '%s' has no layers", model->name);
    double bytes = 0;
    sdlf_machine machine = {0};
    for (int i = 0; i < model->layer_count && status == SDLF_OK; i++) {
        sdlf_signature signature;
        status = model_infer_layer(model, i, &signature);
        if (status == SDLF_OK) status = count_parameters(&model->layers[i].layer, &signature, &machine, &bytes);
    }
    for (int i = 0; i < model->output_count && status == SDLF_OK; i++) {
        sdlf_node node = model->outputs[i].node;
        const model_layer *source = &model->layers[node.layer];
        if (node.output >= source->output_count)
            status = sdlf_fail(SDLF_ERROR_ARGUMENT, "output '%s' is output %d of layer '%s', which has %d",
                               model->outputs[i].name, node.output, source->layer.name, source->output_count);
    }
    return status;
}
