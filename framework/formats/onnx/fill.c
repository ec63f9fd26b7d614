/* Parameters get their memory and their values: each weight is read once, from the file's mapping into its parameter. */
#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/import.h"

static sdlf_parameter *find(const onnx_import *import, const onnx_fill *fill)
{
    const model_layer *layer = &import->model->layers[fill->layer];
    for (int i = 0; i < layer->parameter_count; i++) {
        sdlf_parameter *parameter = &import->model->parameters[layer->first_parameter + i];
        if (strcmp(parameter->spec.name, fill->parameter) == 0) return parameter;
    }
    return NULL;
}

/* Element by element in blocks of a row-major matrix (A,B), which becomes (B,A). */
static void transpose(sdlf_tensor *value, const onnx_tensor *tensor, int64_t first)
{
    int64_t rows = value->shape.dim[1], columns = value->shape.dim[0]; /* of the tensor */
    enum { SIDE = 64 };
    float strip[SIDE];
    float *out = value->data;
    for (int64_t j = 0; j < columns; j += SIDE) {
        int64_t length = columns - j < SIDE ? columns - j : SIDE;
        for (int64_t i = 0; i < rows; i++) {
            onnx_tensor_convert(tensor, first + i * columns + j, length, SDLF_FLOAT32, strip);
            for (int64_t k = 0; k < length; k++) out[(j + k) * rows + i] = strip[k];
        }
    }
}

static void repeat(sdlf_tensor *value, const onnx_tensor *tensor)
{
    char *out = value->data;
    size_t size = sdlf_dtype_size(value->dtype);
    int64_t count = sdlf_tensor_count(value);
    for (int64_t i = 0; i < count; i += tensor->count) {
        int64_t length = count - i < tensor->count ? count - i : tensor->count;
        onnx_tensor_convert(tensor, 0, length, value->dtype, out + (size_t)i * size);
    }
}

/* Elements in their order; what has been copied from a mapped file leaves memory at once, so that never both copies of a large
 * weight are there. */
static void copy(sdlf_tensor *value, const onnx_tensor *tensor, int64_t first)
{
    enum { CHUNK = 1 << 20 };
    int64_t count = sdlf_tensor_count(value);
    size_t size = sdlf_dtype_size(value->dtype), from_size = onnx_type_size(tensor->type);
    for (int64_t i = 0; i < count; i += CHUNK) {
        int64_t length = count - i < CHUNK ? count - i : CHUNK;
        onnx_tensor_convert(tensor, first + i, length, value->dtype, (char *)value->data + (size_t)i * size);
        if (tensor->mapped)
            onnx_map_done((const char *)tensor->data + (size_t)(first + i) * from_size, (uint64_t)length * from_size);
    }
}

static sdlf_status fill_parameter(const onnx_import *import, const onnx_fill *fill)
{
    sdlf_parameter *parameter = find(import, fill);
    if (parameter == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "layer '%s' has no parameter '%s'",
                         import->model->layers[fill->layer].layer.name, fill->parameter);
    sdlf_tensor *value = &parameter->value;
    const onnx_tensor *tensor = &fill->tensor;
    int64_t count = sdlf_tensor_count(value);
    if (tensor->type == ONNX_UNDEFINED) {
        for (int64_t i = 0; i < count; i++) ((float *)value->data)[i] = (float)fill->value;
        return SDLF_OK;
    }
    if (tensor->count - fill->first < (fill->repeat ? 1 : count))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s of shape %s cannot be filled from '%s' of shape %s", parameter->name,
                         sdlf_shape_print(value->shape).text, tensor->name, sdlf_shape_print(tensor->shape).text);
    if (fill->transpose)
        transpose(value, tensor, fill->first);
    else if (fill->repeat)
        repeat(value, tensor);
    else
        copy(value, tensor, fill->first);
    if (fill->scale != 0 && fill->scale != 1)
        for (int64_t i = 0; i < count; i++) ((float *)value->data)[i] *= fill->scale;
    if (tensor->mapped) onnx_map_done(tensor->data, (uint64_t)tensor->count * onnx_type_size(tensor->type));
    return SDLF_OK;
}

sdlf_status onnx_fill_parameters(onnx_import *import)
{
    sdlf_status status = model_allocate(import->model, NULL);
    for (int i = 0; i < import->fill_count && status == SDLF_OK; i++) {
        status = fill_parameter(import, &import->fill[i]);
        if (status != SDLF_OK) return sdlf_fail_context(status, "%s", import->file->path);
    }
    return status;
}
