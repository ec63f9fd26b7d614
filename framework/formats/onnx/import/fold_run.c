/* SPDX-License-Identifier: MIT */
/* Folds an operator that has no folding function by execution: its layers are built in a separate model, which runs
 * once, in float64, on the reference calculator. Its cost is bounded beforehand; if it is rejected, or would take too
 * long, it becomes layers of the network itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/dynamic_length.h"
#include "framework/formats/onnx/import/fold.h"

enum { MOST_ELEMENTS = 1 << 20 }; /* of the inputs, or as many as the file's weights have */

static int64_t most_work(const onnx_import *import)
{
    return ONNX_FOLD_TOTAL + ONNX_FOLD_TIMES * import->weight_elements;
}

/* True if reading the file may take that many bytes more. */
static bool within_budget(const read_budget *budget, int64_t bytes)
{
    return budget->most <= 0 || bytes <= budget->limit - budget->taken;
}

/* Copies the node's values, so that the layers that they become are not mistaken for the network's. */
static bool copy_values(onnx_context *own, const onnx_context *c)
{
    onnx_arena *arena = &c->import->file->arena;
    onnx_value *values = onnx_arena_array(arena, (size_t)(c->input_count + c->output_count), sizeof *values);
    own->input = onnx_arena_array(arena, (size_t)c->input_count + 1, sizeof(void *));
    own->output = onnx_arena_array(arena, (size_t)c->output_count + 1, sizeof(void *));
    if (values == NULL || own->input == NULL || own->output == NULL) return false;
    for (int i = 0; i < c->input_count; i++) {
        if (c->input[i] == NULL) continue;
        own->input[i] = &values[i];
        values[i] = *c->input[i];
        values[i].flow.node.layer = -1;
    }
    for (int i = 0; i < c->output_count; i++) {
        if (c->output[i] == NULL) continue;
        own->output[i] = &values[c->input_count + i];
        *own->output[i] = *c->output[i];
        own->output[i]->readers = 0; /* prevents the fusion of a following node */
    }
    return true;
}

static int64_t elements_of(const sdlf_model *model, sdlf_node node)
{
    return sdlf_shape_count(model->layers[node.layer].output_shape[node.output]);
}

/* A bound of the cost: elements of all outputs or of the inputs, if these are more, for products times the number of terms. */
static int64_t work_of(const sdlf_model *model, int64_t most)
{
    int64_t work = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const model_layer *layer = &model->layers[i];
        const char *type = layer->layer.type->name;
        bool product =
            strstr(type, "conv") != NULL || strcmp(type, "matmul") == 0 || strcmp(type, "fully_connected") == 0;
        int64_t read = 0;
        for (int j = 0; j < layer->input_count; j++) {
            const int64_t count = elements_of(model, layer->inputs[j]);
            if (count < 0 || count > most - read) return most + 1;
            read += count;
        }
        for (int o = 0; o < layer->output_count; o++) {
            const int64_t made = sdlf_shape_count(layer->output_shape[o]), count = made > read || product ? made : read;
            const int64_t terms = product && layer->input_count > 0 ? elements_of(model, layer->inputs[0]) : 1;
            if (made < 0 || terms < 0 || (terms > 0 && count > (most - work) / terms)) return most + 1;
            work += count * terms;
        }
    }
    return work;
}

/* Elements of all outputs, once work_of has bounded them. */
static int64_t outputs_of(const sdlf_model *model)
{
    int64_t elements = 0;
    for (int i = 0; i < model->layer_count; i++)
        for (int o = 0; o < model->layers[i].output_count; o++)
            elements += sdlf_shape_count(model->layers[i].output_shape[o]);
    return elements;
}

/* The float type of the results: that of the inputs. */
static onnx_type float_type(const onnx_context *c)
{
    for (int i = 0; i < c->input_count; i++)
        if (onnx_is_constant(c, i) && sdlf_dtype_is_float(onnx_type_dtype(c->input[i]->tensor.type)))
            return c->input[i]->tensor.type;
    return ONNX_FLOAT;
}

static sdlf_status take_output(onnx_context *c, const onnx_value *made, sdlf_plan *plan, const char *name, int output)
{
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_output(plan, name, &binding);
    void *raw = status == SDLF_OK ? malloc((size_t)sdlf_tensor_bytes(&binding.tensor) + 1) : NULL;
    if (status == SDLF_OK && raw == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    if (status == SDLF_OK)
        status = sdlf_plan_read(plan, name, raw, binding.tensor.dtype, sdlf_tensor_bytes(&binding.tensor));
    sdlf_tensor found = {.data = raw};
    if (status == SDLF_OK) {
        found = sdlf_tensor_view(binding.tensor.dtype, binding.tensor.shape, raw);
        status = sdlf_plan_trim(plan, name, &found);
    }
    if (status == SDLF_OK) {
        sdlf_dtype dtype = binding.tensor.dtype;
        bool real = sdlf_dtype_is_float(dtype);
        onnx_type type = real ? float_type(c) : made->narrow != ONNX_UNDEFINED ? made->narrow : onnx_type_of(dtype);
        onnx_numbers numbers = onnx_new_numbers(c, real, found.shape);
        sdlf_convert(real ? SDLF_FLOAT64 : SDLF_INT64, real ? (void *)numbers.number : (void *)numbers.integer, dtype,
                     raw, numbers.count);
        onnx_tensor tensor = onnx_store_numbers(c, &numbers, type);
        onnx_set_output_constant(c, output, &tensor);
    }
    free(raw);
    return status;
}

static sdlf_status run(onnx_context *c, const onnx_context *own, onnx_import *import)
{
    char name[16];
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    for (int i = 0; i < own->output_count; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (own->output[i] != NULL && own->output[i]->kind == ONNX_FLOW)
            sdlf_output(import->model, name, own->output[i]->flow.node);
    }
    for (int i = 0; i < own->output_count; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (own->output[i] != NULL) onnx_dynamic_length_output(import, name, own->output[i]);
    }
    sdlf_status status = sdlf_model_status(import->model);
    if (status == SDLF_OK) status = model_describe(import->model);
    if (status == SDLF_OK) status = onnx_fill_parameters(import);
    if (status == SDLF_OK) status = sdlf_calculator_open(&calculator, "reference", NULL);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&plan, import->model,
                                  &(sdlf_plan_options){.batch = 1, .forward = calculator, .dtype = SDLF_FLOAT64});
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    for (int i = 0; i < own->output_count && status == SDLF_OK; i++) {
        snprintf(name, sizeof name, "%d", i);
        const onnx_value *made = own->output[i];
        if (made == NULL || made->kind == ONNX_UNMADE) continue;
        if (made->kind == ONNX_CONSTANT)
            onnx_set_output_constant(c, i, &made->tensor);
        else
            status = take_output(c, made, plan, name, i);
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    return status == SDLF_OK ? c->status : status;
}

bool onnx_fold_by_running(onnx_context *c)
{
    const int64_t weights = c->import->weight_elements, most = weights > MOST_ELEMENTS ? weights : MOST_ELEMENTS;
    int64_t elements = 0;
    for (int i = 0; i < c->input_count; i++) {
        const int64_t count = c->input[i] != NULL ? c->input[i]->tensor.count : 0;
        if (count > most - elements) return false;
        elements += count;
    }
    if (elements == 0) return false;
    onnx_arena *arena = &c->import->file->arena;
    sdlf_onnx_options options = *c->import->options;
    options.leave_weights = false;
    onnx_import import = {.file = c->import->file,
                          .options = &options,
                          .names = {.arena = arena},
                          .layers = {.arena = arena},
                          .weight_elements = weights,
                          .weights = c->import->weights,
                          .folded = c->import->folded,
                          .fills = true};
    onnx_context own = *c;
    own.import = &import;
    if (!copy_values(&own, c)) return false;
    import.model = sdlf_model_create("constant");
    if (import.model == NULL) return false;
    onnx_type narrow = onnx_narrow_check(&own);
    if (onnx_ok(&own)) own.type->convert(&own);
    if (onnx_ok(&own)) onnx_narrow_outputs(&own, narrow);
    bool all = onnx_ok(&own);
    for (int i = 0; i < own.output_count; i++)
        all = all && (own.output[i] == NULL || own.output[i]->kind != ONNX_UNMADE);
    int64_t work = all ? work_of(import.model, most_work(c->import)) : 0;
    c->import->folded = import.folded; /* constants of its layers are folded too */
    /* float32 parameters and their float64 copies, and what is computed of them */
    bool done = all && work <= most_work(c->import) - c->import->elements_run &&
                within_budget(&c->import->file->budget, 12 * elements + 8 * outputs_of(import.model));
    if (done) {
        c->import->elements_run += work;
        done = run(c, &own, &import) == SDLF_OK;
    }
    if (!done) { /* discards everything */
        c->status = SDLF_OK;
        for (int i = 0; i < c->output_count; i++)
            if (c->output[i] != NULL) c->output[i]->kind = ONNX_UNMADE;
    }
    sdlf_model_free(import.model);
    return done;
}
