/* SPDX-License-Identifier: MIT */
/* Converts the graph's inputs to inputs of the model. */
#include "framework/formats/onnx/import/report.h"
#include "framework/formats/text.h"
#include "framework/input_layer.h"

#include <stdio.h>
#include <string.h>

/* True if the open dimension `i` of the input has that name. A dimension without a name in the file is called
 * "image:2", by input and index. */
static bool is_called(const Onnx__ValueInfoProto *input, int i, const char *name)
{
    const char *own = input->type->tensor_type->shape->dim[i]->dim_param;
    if (own != NULL && own[0] != '\0') return strcmp(own, name) == 0;
    size_t length = input->name != NULL ? strlen(input->name) : 0;
    char place[16];
    snprintf(place, sizeof place, ":%d", i);
    return length > 0 && strncmp(name, input->name, length) == 0 && strcmp(name + length, place) == 0;
}

/* Dimension `i` of the shape given for the input, if its rank matches; -1: none is given. */
static int64_t size_given(const sdlf_onnx_options *options, const Onnx__ValueInfoProto *input, int i)
{
    const Onnx__TensorShapeProto *shape = input->type->tensor_type->shape;
    for (int k = 0; k < options->shape_count; k++) {
        const sdlf_onnx_shape *given = &options->shapes[k];
        bool is = input->name != NULL && strcmp(given->name, input->name) == 0;
        if (is && given->shape.rank >= 0 && (size_t)given->shape.rank == shape->n_dim) return given->shape.dim[i];
    }
    return -1;
}

/* The size of an open dimension: as given for it, or by its input's shape, or by the shape of another input that has a
 * dimension of the same name; -1: not given. */
static int64_t size_of(const onnx_import *import, const Onnx__ValueInfoProto *input, int i)
{
    const sdlf_onnx_options *options = import->options;
    for (int k = 0; k < options->dimension_count; k++)
        if (is_called(input, i, options->dimensions[k].name)) return options->dimensions[k].size;
    int64_t size = i > 0 ? size_given(options, input, i) : -1;
    const char *own = input->type->tensor_type->shape->dim[i]->dim_param;
    for (int k = 0; i > 0 && size < 0 && own != NULL && own[0] != '\0' && k < import->file->input_count; k++) {
        const Onnx__ValueInfoProto *other = import->file->input[k];
        const Onnx__TypeProto *type = other->type;
        const Onnx__TensorShapeProto *shape = type && type->tensor_type ? type->tensor_type->shape : NULL;
        for (int d = 1; shape != NULL && d < (int)shape->n_dim && d < SDLF_MAX_RANK && size < 0; d++)
            if (!shape->dim[d]->has_dim_value && is_called(other, d, own)) size = size_given(options, other, d);
    }
    return size;
}

static sdlf_status fail_open(const onnx_import *import, const Onnx__ValueInfoProto *input, int i)
{
    const char *own = input->type->tensor_type->shape->dim[i]->dim_param, *path = import->file->path;
    if (own != NULL && own[0] != '\0')
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "%s: input '%s': dimension %d, '%s', is open: a model is made for sizes, so give it one, as in "
            "--dim %s=224",
            path, text_show(input->name).text, i, text_show(own).text, text_show(own).text);
    return sdlf_fail(
        SDLF_ERROR_ARGUMENT,
        "%s: input '%s': dimension %d is open, and has no name: a model is made for sizes, so give it one, as in "
        "--dim %s:%d=224",
        path, text_show(input->name).text, i, text_show(input->name).text, i);
}

static sdlf_status fail(const onnx_import *import, const char *name, sdlf_status status, const char *text)
{
    return sdlf_fail(status, "%s: input '%s' %s", import->file->path, text_show(name).text, text);
}

static sdlf_status out_of_memory(const onnx_import *import, const char *name)
{
    return sdlf_fail_context(read_budget_fail(&import->file->budget), "%s: input '%s'", import->file->path,
                             text_show(name).text);
}

/* The shape in the file, with open dimensions filled in. `batched`: the first one is the batch, chosen by the plan. */
static sdlf_status read_shape(onnx_import *import, const Onnx__ValueInfoProto *input, sdlf_shape *shape, bool *batched)
{
    const Onnx__TensorShapeProto *from = input->type->tensor_type->shape;
    *batched = false;
    *shape = SDLF_SCALAR;
    if (from == NULL) return fail(import, input->name, SDLF_ERROR_UNSUPPORTED, "has no shape in the file");
    if (from->n_dim > SDLF_MAX_RANK)
        return fail(import, input->name, SDLF_ERROR_UNSUPPORTED, "has more than 8 dimensions");
    shape->rank = (int)from->n_dim;
    for (int i = 0; i < shape->rank; i++) {
        const Onnx__Dimension *dim = from->dim[i];
        int64_t size = dim->has_dim_value ? dim->dim_value : size_of(import, input, i);
        bool open = !dim->has_dim_value && size < 0;
        if (i == 0 && open && import->options->batch > 0) size = import->options->batch;
        if (i == 0 && import->options->batch == 0 && (open || size == 1)) {
            *batched = true;
            import->open_batch = import->open_batch || open;
            size = 1;
        }
        if (size < 0 && dim->has_dim_value)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: input '%s': dimension %d is %lld", import->file->path,
                             text_show(input->name).text, i, (long long)size);
        if (size < 0) return fail_open(import, input, i);
        if (i == 0 && size == import->options->batch) import->takes_batch = true;
        shape->dim[i] = size;
    }
    return SDLF_OK;
}

static sdlf_status add_layer(onnx_import *import, const Onnx__ValueInfoProto *input, onnx_value *value)
{
    int type = input->type->tensor_type->elem_type;
    sdlf_input_options options = {.name = input->name};
    bool batched;
    sdlf_status status = read_shape(import, input, &options.shape, &batched);
    if (status != SDLF_OK) return status;
    if (onnx_type_computed(type) == SDLF_NONE)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: input '%s' has elements of %s, which are not supported",
                         import->file->path, text_show(input->name).text, onnx_type_name(type));
    if (sdlf_shape_count(options.shape) == 0) { /* nothing about it is unknown */
        value->kind = ONNX_CONSTANT;
        value->tensor = (onnx_tensor){
            .name = value->name, .type = (onnx_type)type, .shape = options.shape, .data = "", .batched = batched};
        return SDLF_OK;
    }
    options.dtype = (int)onnx_type_computed(type);
    if (onnx_type_dtype(type) == SDLF_NONE) value->narrow = (onnx_type)type;
    options.whole = !batched;
    if (batched) options.shape = sdlf_shape_without(options.shape, 0);
    import->batched = import->batched || batched;
    sdlf_node node = sdlf_model_add(import->model, &sdlf_input_layer_class, &options, NULL, 0);
    status = sdlf_model_status(import->model);
    sdlf_signature signature;
    if (status == SDLF_OK) status = model_infer_layer(import->model, node.layer, &signature);
    if (status != SDLF_OK) {
        model_forget_error(import->model);
        if (status == SDLF_ERROR_ARGUMENT) status = SDLF_ERROR_FORMAT; /* the file's error, not the caller's */
        return sdlf_fail_context(status, "%s", import->file->path);
    }
    if (!onnx_name_table_put(&import->layers, input->name, node.layer) || !onnx_batch_note(import, node.layer))
        return out_of_memory(import, input->name);
    value->kind = ONNX_FLOW;
    value->flow = (onnx_flow){node, signature.output_dtype[0], signature.output_shape[0]};
    return SDLF_OK;
}

static bool has_open_dimension(const onnx_file *file, const char *name)
{
    for (int i = 0; i < file->input_count; i++) {
        const Onnx__TypeProto *type = file->input[i]->type;
        const Onnx__TensorShapeProto *shape = type && type->tensor_type ? type->tensor_type->shape : NULL;
        for (size_t k = 0; shape != NULL && k < shape->n_dim; k++)
            if (!shape->dim[k]->has_dim_value && is_called(file->input[i], (int)k, name)) return true;
    }
    return false;
}

/* Lists with a count must have a pointer; a size for a dimension that no input has is also an error. */
static sdlf_status check_options(const onnx_import *import)
{
    const sdlf_onnx_options *options = import->options;
    if (options->dimension_count > 0 && options->dimensions == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: options->dimensions is NULL", import->file->path);
    if (options->known_count > 0 && options->known == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: options->known is NULL", import->file->path);
    if (options->shape_count > 0 && options->shapes == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: options->shapes is NULL", import->file->path);
    for (int i = 0; i < options->shape_count; i++) {
        if (options->shapes[i].name == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: options->shapes[%d].name is NULL", import->file->path, i);
    }
    for (int i = 0; i < options->known_count; i++) {
        if (options->known[i].name == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: options->known[%d].name is NULL", import->file->path, i);
    }
    for (int i = 0; i < options->dimension_count; i++) {
        const char *name = options->dimensions[i].name;
        if (name == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: options->dimensions[%d].name is NULL", import->file->path, i);
        if (!has_open_dimension(import->file, name))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: no input leaves a dimension '%s' open", import->file->path,
                             text_show(name).text);
    }
    return SDLF_OK;
}

/* The elements that the caller supplies for an input, if any. They are borrowed until the import is done: weights that
 * a plan takes over later are copied. */
static sdlf_status make_known(const onnx_import *import, onnx_value *value)
{
    for (int i = 0; i < import->options->known_count; i++) {
        const sdlf_onnx_known *known = &import->options->known[i];
        if (strcmp(known->name, value->name) != 0) continue;
        const void *data = known->tensor.data;
        if (import->options->leave_weights && data != NULL) {
            size_t bytes = (size_t)sdlf_tensor_bytes(&known->tensor);
            void *copy = onnx_arena_take(&import->file->arena, bytes + 1);
            if (copy == NULL) return out_of_memory(import, value->name);
            data = memcpy(copy, data, bytes);
        }
        value->kind = ONNX_CONSTANT;
        value->tensor = (onnx_tensor){.name = value->name,
                                      .type = onnx_type_of(known->tensor.dtype),
                                      .shape = known->tensor.shape,
                                      .count = sdlf_tensor_count(&known->tensor),
                                      .data = data};
        break;
    }
    return SDLF_OK;
}

sdlf_status onnx_import_inputs(onnx_import *import)
{
    const onnx_file *file = import->file;
    int read = 0; /* inputs that are also inputs of the model */
    sdlf_status checked = check_options(import);
    if (checked != SDLF_OK) return checked;
    for (int i = 0; i < file->input_count; i++) {
        const Onnx__ValueInfoProto *input = file->input[i];
        if (input->name == NULL || input->name[0] == '\0')
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: input %d has no name", file->path, i);
        onnx_value *value = onnx_value_named(import, input->name);
        if (value == NULL) return out_of_memory(import, input->name);
        sdlf_status status = value->kind == ONNX_CONSTANT ? SDLF_OK : make_known(import, value);
        if (status != SDLF_OK) return status;
        if (value->kind == ONNX_CONSTANT) continue;
        if (value->kind == ONNX_FLOW || value->producer >= 0)
            return fail(import, input->name, SDLF_ERROR_FORMAT, "is duplicated");
        if (input->type == NULL || input->type->tensor_type == NULL)
            return fail(import, input->name, SDLF_ERROR_UNSUPPORTED, "is not a tensor");
        if (value->must_be_known)
            status = fail(import, input->name, SDLF_ERROR_UNSUPPORTED,
                          "must be known when the model is made: shapes or weights follow from its elements");
        else
            status = add_layer(import, input, value);
        if (status != SDLF_OK && (import->report == NULL || status == SDLF_ERROR_MEMORY)) return status;
        if (status != SDLF_OK) {
            onnx_report_failure(import->report, status);
            value->failed = true; /* dependents are reported as waiting */
        }
        read++;
    }
    if (read > 0 && import->options->batch > 1 && !import->takes_batch)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: no input leaves its first dimension open, so that there is no batch of %lld", file->path,
                         (long long)import->options->batch);
    return SDLF_OK;
}
