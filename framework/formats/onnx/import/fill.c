/* SPDX-License-Identifier: MIT */
/* Allocates and fills parameters: each weight is read once, directly from the file into its parameter. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/fill.h"

static sdlf_status find(const onnx_import *import, const onnx_fill *fill, sdlf_parameter **parameter)
{
    const model_layer *layer = &import->model->layers[fill->layer];
    for (int i = 0; i < layer->parameter_count; i++) {
        *parameter = &import->model->parameters[layer->first_parameter + i];
        if (strcmp((*parameter)->spec.name, fill->parameter) == 0) return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "layer '%s' has no parameter '%s'", layer->layer.name, fill->parameter);
}

enum { CHUNK = ONNX_FILL_CHUNK };

/* Elements first .. first + count - 1 in the parameter's type. Elements still in the file are read into `room` first,
 * of CHUNK elements, and not kept: a large weight is never in memory twice. Without conversion they are read directly
 * to their destination. */
static sdlf_status bring(const onnx_tensor *tensor, int64_t first, int64_t count, sdlf_dtype to, void *room, void *out)
{
    size_t size = onnx_type_size(tensor->type), to_size = sdlf_dtype_size(to);
    sdlf_status status = SDLF_OK;
    if (tensor->map == NULL || tensor->uniform) {
        onnx_tensor_convert(tensor, first, count, to, out);
        return SDLF_OK;
    }
    const char *from = (const char *)tensor->data + (size_t)first * size;
    if (onnx_type_dtype(tensor->type) == to && tensor->type != ONNX_BOOL)
        return onnx_map_read(tensor->map, from, (uint64_t)count * size, out);
    for (int64_t i = 0; i < count && status == SDLF_OK; i += CHUNK) {
        int64_t length = count - i < CHUNK ? count - i : CHUNK;
        onnx_tensor piece = {.type = tensor->type, .count = length, .data = room};
        status = onnx_map_read(tensor->map, from + (size_t)i * size, (uint64_t)length * size, room);
        if (status == SDLF_OK) onnx_tensor_convert(&piece, 0, length, to, (char *)out + (size_t)i * to_size);
    }
    return status;
}

/* Transposes a row-major matrix (A,B) to (B,A): some rows at a time, in square blocks. */
static sdlf_status transpose(sdlf_shape shape, const onnx_tensor *tensor, int64_t first, void *room, float *out)
{
    enum { SIDE = 64, LEAST = 16 };
    int64_t rows = shape.dim[1], columns = shape.dim[0]; /* of the tensor */
    int64_t most = columns < CHUNK / SIDE ? SIDE : columns < CHUNK / LEAST ? CHUNK / columns : LEAST;
    if (most > rows) most = rows;
    float *strip = columns > 0 ? malloc((size_t)(most * columns) * sizeof *strip) : NULL;
    sdlf_status status = SDLF_OK;
    if (strip == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory filling a parameter");
    for (int64_t i = 0; i < rows && status == SDLF_OK; i += most) {
        int64_t length = rows - i < most ? rows - i : most;
        status = bring(tensor, first + i * columns, length * columns, SDLF_FLOAT32, room, strip);
        for (int64_t j = 0; j < columns && status == SDLF_OK; j += SIDE)
            for (int64_t r = 0; r < length; r++)
                for (int64_t k = j; k < columns && k < j + SIDE; k++) out[k * rows + i + r] = strip[r * columns + k];
    }
    free(strip);
    return status;
}

static void repeat(const onnx_tensor *tensor, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i += tensor->count) {
        int64_t length = count - i < tensor->count ? count - i : tensor->count;
        onnx_tensor_convert(tensor, 0, length, SDLF_FLOAT32, out + i);
    }
}

static sdlf_status bring_blocks(const onnx_fill *fill, int64_t count, void *room, float *out)
{
    sdlf_status status = SDLF_OK;
    for (int64_t i = 0; i < count / fill->block && status == SDLF_OK; i++)
        status = bring(&fill->tensor, fill->first + fill->order[i] * fill->block, fill->block, SDLF_FLOAT32, room,
                       out + i * fill->block);
    return status;
}

/* Checks that it fills the parameter. */
static sdlf_status check_fill(const onnx_fill *fill, const sdlf_parameter *parameter)
{
    const onnx_tensor *tensor = &fill->tensor;
    if (tensor->type == ONNX_UNDEFINED) return SDLF_OK;
    int64_t count = sdlf_shape_count(parameter->spec.shape);
    if (tensor->count - fill->first >= (fill->repeat ? 1 : count)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s of shape %s cannot be filled from '%s' of shape %s", parameter->name,
                     sdlf_shape_print(parameter->spec.shape).text, tensor->name, sdlf_shape_print(tensor->shape).text);
}

sdlf_status onnx_fill_find(const onnx_import *import, const onnx_fill *fill, sdlf_parameter **parameter)
{
    sdlf_status status = find(import, fill, parameter);
    if (status == SDLF_OK) status = check_fill(fill, *parameter);
    return sdlf_fail_context(status, "%s", import->file->path);
}

bool onnx_fill_is_straight(const onnx_fill *fill)
{
    return !fill->transpose && !fill->repeat && fill->block == 0;
}

sdlf_status onnx_fill_values(const onnx_fill *fill, sdlf_shape shape, int64_t first, int64_t count, void *room,
                             float *values)
{
    const onnx_tensor *tensor = &fill->tensor;
    if (tensor->type == ONNX_UNDEFINED) {
        for (int64_t i = 0; i < count; i++) values[i] = (float)fill->value;
        return SDLF_OK;
    }
    sdlf_status status = SDLF_OK;
    if (fill->transpose)
        status = transpose(shape, tensor, fill->first, room, values);
    else if (fill->repeat)
        repeat(tensor, count, values);
    else if (fill->block > 0)
        status = bring_blocks(fill, count, room, values);
    else
        status = bring(tensor, fill->first + first, count, SDLF_FLOAT32, room, values);
    if (fill->scale != 0 && fill->scale != 1)
        for (int64_t i = 0; i < count; i++) values[i] *= fill->scale;
    return status;
}

static sdlf_status fill_parameter(const onnx_import *import, const onnx_fill *fill, void *room)
{
    sdlf_parameter *parameter = NULL;
    sdlf_status status = onnx_fill_find(import, fill, &parameter);
    if (status != SDLF_OK) return status;
    status = onnx_fill_values(fill, parameter->spec.shape, 0, sdlf_tensor_count(&parameter->value), room,
                              parameter->value.data);
    return sdlf_fail_context(status, "%s", import->file->path);
}

sdlf_status onnx_fill_parameters(onnx_import *import)
{
    sdlf_status status = model_allocate(import->model, NULL);
    void *room = malloc((size_t)CHUNK * sizeof(double));
    if (status == SDLF_OK && room == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory filling parameters");
    for (int i = 0; i < import->fill_count && status == SDLF_OK; i++)
        status = fill_parameter(import, &import->fill[i], room);
    free(room);
    return status;
}
