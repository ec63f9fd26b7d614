/* SPDX-License-Identifier: MIT */
/* Weights and other constants: initializers of the graph. Parameters remain in the model's memory. */
#include "framework/formats/onnx/export/export.h"

#include <stdio.h>
#include <string.h>

const char *export_initializer(onnx_export *e, const char *wanted, onnx_type type, sdlf_shape shape, const void *data)
{
    size_t packed = (size_t)onnx_type_packed((int)type), count = (size_t)sdlf_shape_count(shape);
    if (!export_ok(e)) return "";
    const char *name = export_name(e, wanted);
    Onnx__TensorProto *tensor = onnx_arena_take(&e->arena, sizeof *tensor);
    if (name == NULL) return "";
    bool ok = tensor != NULL;
    if (ok) {
        onnx__tensor_proto__init(tensor);
        tensor->name = (char *)name;
        tensor->n_dims = (size_t)shape.rank;
        tensor->dims = onnx_arena_array(&e->arena, tensor->n_dims + 1, sizeof *tensor->dims);
        tensor->has_data_type = true;
        tensor->data_type = (int32_t)type;
        tensor->has_raw_data = true;
        tensor->raw_data = (ProtobufCBinaryData){
            .len = (count + packed - 1) / packed * onnx_type_size((int)type),
            .data = (uint8_t *)data,
        };
        ok = tensor->dims != NULL && data != NULL;
    }
    if (ok && shape.rank > 0) memcpy(tensor->dims, shape.dim, tensor->n_dims * sizeof *tensor->dims);
    if (ok && export_list_add(&e->weights, &e->arena, tensor)) return name;
    export_no_memory(e);
    return "";
}

/* ---- parameters ---- */

static const sdlf_parameter *find(const onnx_export *e, const char *name)
{
    for (int i = 0; i < e->now->parameter_count; i++) {
        const sdlf_parameter *parameter = &e->model->parameters[e->now->first_parameter + i];
        if (strcmp(parameter->spec.name, name) == 0) return parameter;
    }
    return NULL;
}

const char *export_parameter(onnx_export *e, const char *name)
{
    const sdlf_parameter *parameter = find(e, name);
    if (parameter == NULL) return NULL;
    return export_parameter_as(e, name, SDLF_FLOAT32, parameter->spec.shape);
}

const char *export_parameter_as(onnx_export *e, const char *name, sdlf_dtype dtype, sdlf_shape shape)
{
    const sdlf_parameter *parameter = find(e, name);
    if (parameter == NULL) return NULL;
    int64_t count = sdlf_tensor_count(&parameter->value);
    const void *data = parameter->value.data;
    if (dtype != SDLF_FLOAT32) {
        void *converted = onnx_arena_array(&e->arena, (size_t)count, sdlf_dtype_size(dtype));
        if (converted != NULL) sdlf_convert(dtype, converted, SDLF_FLOAT32, data, count);
        data = converted;
    }
    e->parameter_count += count;
    return export_initializer(e, parameter->name, onnx_type_of(dtype), shape, data);
}

/* ---- other values ---- */

/* An existing constant of equal type, shape and elements; "": none. Parameters are not shared: each is trained
 * independently. */
static const char *find_constant(const onnx_export *e, onnx_type type, sdlf_shape shape, const void *data, size_t size)
{
    for (size_t i = 0; i < e->constants.count; i++) {
        const Onnx__TensorProto *tensor = e->constants.item[i];
        bool equal = tensor->data_type == (int32_t)type && tensor->n_dims == (size_t)shape.rank &&
                     tensor->raw_data.len == size && memcmp(tensor->raw_data.data, data, size) == 0;
        for (int axis = 0; axis < shape.rank && equal; axis++) equal = tensor->dims[axis] == shape.dim[axis];
        if (equal) return tensor->name;
    }
    return "";
}

static const char *add_step(onnx_export *e, sdlf_dtype dtype, sdlf_shape shape, const void *data)
{
    char wanted[512];
    size_t size = (size_t)sdlf_shape_count(shape) * sdlf_dtype_size(dtype);
    if (!export_ok(e)) return "";
    const char *name = find_constant(e, onnx_type_of(dtype), shape, data, size);
    if (name[0] != '\0') return name;
    snprintf(wanted, sizeof wanted, "%.480s/%d", e->now->layer.name, ++e->steps);
    void *copy = onnx_arena_take(&e->arena, size);
    if (copy != NULL) memcpy(copy, data, size);
    name = export_initializer(e, wanted, onnx_type_of(dtype), shape, copy);
    if (export_ok(e) && !export_list_add(&e->constants, &e->arena, e->weights.item[e->weights.count - 1]))
        export_no_memory(e);
    return name;
}

const char *export_nothing(onnx_export *e, sdlf_dtype dtype, sdlf_shape shape)
{
    return add_step(e, dtype, shape, "");
}

const char *export_number(onnx_export *e, double number, sdlf_dtype dtype)
{
    int64_t bytes[1] = {0}; /* large enough for any element */
    sdlf_convert(dtype, bytes, SDLF_FLOAT64, &number, 1);
    return add_step(e, dtype, SDLF_SCALAR, bytes);
}

const char *export_list_integers(onnx_export *e, const int64_t *numbers, int count)
{
    return add_step(e, SDLF_INT64, sdlf_shape(count), numbers);
}

const char *export_shape(onnx_export *e, sdlf_shape numbers)
{
    return export_list_integers(e, numbers.dim, numbers.rank);
}

const char *export_list_reals(onnx_export *e, const float *numbers, int count)
{
    return export_reals(e, numbers, sdlf_shape(count));
}

const char *export_reals(onnx_export *e, const float *numbers, sdlf_shape shape)
{
    return add_step(e, SDLF_FLOAT32, shape, numbers);
}
