/* Tensors: views, allocation, strides. */
#include <sdlf/calculator.h>
#include <sdlf/tensor.h>

#include "framework/heap.h"

#include <assert.h>
#include <inttypes.h>

sdlf_tensor sdlf_tensor_view(sdlf_dtype dtype, sdlf_shape shape, void *data)
{
    sdlf_tensor tensor = {.dtype = dtype, .shape = shape, .data = data};
    if (sdlf_shape_count(shape) < 0) return tensor; /* no strides to speak of; checks refuse the shape */
    int64_t stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        tensor.stride[i] = stride;
        if (shape.dim[i] > 0) stride *= shape.dim[i];
    }
    return tensor;
}

bool sdlf_tensor_present(const sdlf_tensor *tensor)
{
    return tensor->dtype != SDLF_NONE;
}

int64_t sdlf_tensor_count(const sdlf_tensor *tensor)
{
    return sdlf_tensor_present(tensor) ? sdlf_shape_count(tensor->shape) : 0;
}

/* -1 where the count is invalid or the bytes overflow. */
int64_t sdlf_tensor_bytes(const sdlf_tensor *tensor)
{
    int64_t count = sdlf_tensor_count(tensor), size = (int64_t)sdlf_dtype_size(tensor->dtype);
    if (count < 0 || (size > 0 && count > INT64_MAX / size)) return -1;
    return count * size;
}

sdlf_status sdlf_tensor_create(sdlf_tensor *tensor, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape)
{
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    if (sdlf_dtype_size(dtype) == 0) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "tensor: %d is no dtype", (int)dtype);
    }
    sdlf_tensor made = sdlf_tensor_view(dtype, shape, NULL);
    int64_t bytes = sdlf_tensor_bytes(&made);
    if (bytes < 0) {
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "tensor: %s of shape %s has a negative side or more bytes than can be counted",
                         sdlf_dtype_name(dtype), sdlf_shape_print(shape).text);
    }
    if (calculator) {
        sdlf_status status = calculator->type->allocate(calculator, bytes, &made.data);
        if (status != SDLF_OK) return sdlf_fail_context(status, "tensor of shape %s", sdlf_shape_print(shape).text);
    } else {
        made.data = sdlf_heap_allocate(bytes);
        if (!made.data) {
            return sdlf_fail(SDLF_ERROR_MEMORY, "tensor of shape %s: no memory for %" PRId64 " bytes",
                             sdlf_shape_print(shape).text, bytes);
        }
    }
    *tensor = made;
    return SDLF_OK;
}

void sdlf_tensor_release(sdlf_tensor *tensor, sdlf_calculator *calculator)
{
    if (!tensor) return;
    if (calculator) {
        if (tensor->data) calculator->type->deallocate(calculator, tensor->data);
    } else {
        sdlf_heap_free(tensor->data);
    }
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
}

bool sdlf_tensor_is_contiguous(const sdlf_tensor *tensor)
{
    int64_t stride = 1;
    if (sdlf_tensor_count(tensor) == 0) return true;
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        if (tensor->shape.dim[i] != 1 && tensor->stride[i] != stride) return false;
        stride *= tensor->shape.dim[i];
    }
    return true;
}

sdlf_tensor sdlf_tensor_reshape(sdlf_tensor tensor, sdlf_shape shape)
{
    assert(sdlf_tensor_is_contiguous(&tensor));
    assert(sdlf_shape_count(shape) == sdlf_tensor_count(&tensor));
    sdlf_tensor result = sdlf_tensor_view(tensor.dtype, shape, tensor.data);
    result.buffer = tensor.buffer;
    result.offset = tensor.offset;
    return result;
}

sdlf_tensor sdlf_tensor_narrow(sdlf_tensor tensor, int axis, int64_t start, int64_t length)
{
    assert(axis >= 0 && axis < tensor.shape.rank);
    assert(start >= 0 && length >= 0 && start + length <= tensor.shape.dim[axis]);
    int64_t skipped = start * tensor.stride[axis] * (int64_t)sdlf_dtype_size(tensor.dtype);
    tensor.shape.dim[axis] = length;
    tensor.offset += skipped;
    if (tensor.data) tensor.data = (char *)tensor.data + skipped;
    return tensor;
}

sdlf_tensor sdlf_tensor_transpose(sdlf_tensor tensor, int axis_a, int axis_b)
{
    assert(axis_a >= 0 && axis_a < tensor.shape.rank && axis_b >= 0 && axis_b < tensor.shape.rank);
    int64_t dim = tensor.shape.dim[axis_a], stride = tensor.stride[axis_a];
    tensor.shape.dim[axis_a] = tensor.shape.dim[axis_b];
    tensor.stride[axis_a] = tensor.stride[axis_b];
    tensor.shape.dim[axis_b] = dim;
    tensor.stride[axis_b] = stride;
    return tensor;
}
