/* SPDX-License-Identifier: MIT */
/* Tensors: views, allocation, strides. */
#include <sdlf/calculator.h>
#include <sdlf/tensor.h>

#include "framework/heap.h"
#include "framework/require.h"

#include <inttypes.h>

sdlf_tensor sdlf_tensor_view(sdlf_dtype dtype, sdlf_shape shape, void *data)
{
    sdlf_tensor tensor = {.dtype = dtype, .shape = shape, .data = data};
    if (sdlf_shape_count(shape) < 0) return tensor; /* invalid: leave the strides 0; checks reject the shape */
    int64_t stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        tensor.stride[i] = stride;
        if (shape.dim[i] > 0) stride *= shape.dim[i];
    }
    return tensor;
}

/* ---- sparse matrices: offsets of their parts ---- */

enum { PART_ALIGNMENT = 64 };

/* The offset after `count` elements of `size` bytes at `before`, rounded up; -1 on overflow, or if `before` is -1. */
static int64_t after(int64_t before, int64_t count, int64_t size)
{
    const int64_t most = INT64_MAX - PART_ALIGNMENT;
    if (before < 0 || count < 0 || count > (most - before) / size) return -1;
    return (before + count * size + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

static int64_t columns_start(const sdlf_tensor *matrix)
{
    int64_t rows = matrix->shape.dim[0];
    return rows < 0 || rows == INT64_MAX ? -1 : after(0, rows + 1, (int64_t)sizeof(int64_t));
}

static int64_t values_start(const sdlf_tensor *matrix)
{
    return after(columns_start(matrix), matrix->stored, (int64_t)sizeof(int32_t));
}

static int64_t csr_bytes(const sdlf_tensor *matrix)
{
    if (sdlf_tensor_count(matrix) < 0 || sdlf_dtype_size(matrix->dtype) == 0) return -1;
    return after(values_start(matrix), matrix->stored, (int64_t)sdlf_dtype_size(matrix->dtype));
}

sdlf_tensor sdlf_csr_view(sdlf_dtype dtype, int64_t rows, int64_t columns, int64_t stored, void *data)
{
    return (sdlf_tensor){
        .dtype = dtype, .shape = sdlf_shape(rows, columns), .layout = SDLF_CSR, .stored = stored, .data = data};
}

int64_t *sdlf_csr_offsets(const sdlf_tensor *matrix)
{
    if (matrix == NULL) return NULL;
    return matrix->data;
}

int32_t *sdlf_csr_columns(const sdlf_tensor *matrix)
{
    if (matrix == NULL) return NULL;
    return matrix->data ? (int32_t *)((char *)matrix->data + columns_start(matrix)) : NULL;
}

void *sdlf_csr_values(const sdlf_tensor *matrix)
{
    if (matrix == NULL) return NULL;
    return matrix->data ? (char *)matrix->data + values_start(matrix) : NULL;
}

/* ---- all tensors ---- */

bool sdlf_tensor_present(const sdlf_tensor *tensor)
{
    if (tensor == NULL) return false;
    return tensor->dtype != SDLF_NONE;
}

int64_t sdlf_tensor_count(const sdlf_tensor *tensor)
{
    if (tensor == NULL) return 0;
    if (tensor->layout == SDLF_CSR)
        return tensor->stored >= 0 && sdlf_shape_count(tensor->shape) >= 0 ? tensor->stored : -1;
    return sdlf_tensor_present(tensor) ? sdlf_shape_count(tensor->shape) : 0;
}

/* -1 if the count is invalid or the bytes overflow. */
int64_t sdlf_tensor_bytes(const sdlf_tensor *tensor)
{
    if (tensor == NULL) return 0;
    if (tensor->layout == SDLF_CSR) return csr_bytes(tensor);
    int64_t count = sdlf_tensor_count(tensor), size = (int64_t)sdlf_dtype_size(tensor->dtype);
    if (count < 0 || (size > 0 && count > INT64_MAX / size)) return -1;
    return count * size;
}

/* Allocates memory for `made` and returns it. */
static sdlf_status create(sdlf_tensor *tensor, sdlf_tensor made, sdlf_calculator *calculator)
{
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    sdlf_dtype dtype = made.dtype;
    sdlf_shape shape = made.shape;
    if (sdlf_dtype_size(dtype) == 0) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "tensor: %d is not a dtype", (int)dtype);
    }
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

sdlf_status sdlf_tensor_create(sdlf_tensor *tensor, sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape)
{
    SDLF_REQUIRE(tensor);
    return create(tensor, sdlf_tensor_view(dtype, shape, NULL), calculator);
}

sdlf_status sdlf_csr_create(sdlf_tensor *matrix, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t rows,
                            int64_t columns, int64_t stored)
{
    SDLF_REQUIRE(matrix);
    return create(matrix, sdlf_csr_view(dtype, rows, columns, stored, NULL), calculator);
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
    if (tensor == NULL) return false;
    int64_t stride = 1;
    if (tensor->layout == SDLF_CSR || sdlf_tensor_count(tensor) == 0) return true;
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        if (tensor->shape.dim[i] != 1 && tensor->stride[i] != stride) return false;
        stride *= tensor->shape.dim[i];
    }
    return true;
}

/* The same elements in the same order, for a tensor with gaps: axes in both shapes keep their strides. Axes of size 1
 * get the stride that they would have without gaps. */
static sdlf_tensor reshape_with_gaps(sdlf_tensor tensor, sdlf_shape shape)
{
    int from = tensor.shape.rank - 1;
    sdlf_tensor result = tensor;
    result.shape = shape;
    for (int to = shape.rank - 1; to >= 0; to--) {
        result.stride[to] = to == shape.rank - 1 ? 1 : shape.dim[to + 1] * result.stride[to + 1];
        if (shape.dim[to] == 1) continue;
        while (from >= 0 && tensor.shape.dim[from] == 1) from--;
        if (from < 0 || tensor.shape.dim[from] != shape.dim[to]) return (sdlf_tensor){.dtype = SDLF_NONE};
        result.stride[to] = tensor.stride[from--];
    }
    return result;
}

sdlf_tensor sdlf_tensor_reshape(sdlf_tensor tensor, sdlf_shape shape)
{
    bool fits = tensor.layout == SDLF_DENSE && sdlf_shape_count(shape) == sdlf_tensor_count(&tensor);
    if (!fits) return (sdlf_tensor){.dtype = SDLF_NONE};
    if (!sdlf_tensor_is_contiguous(&tensor)) return reshape_with_gaps(tensor, shape);
    sdlf_tensor result = sdlf_tensor_view(tensor.dtype, shape, tensor.data);
    result.buffer = tensor.buffer;
    result.offset = tensor.offset;
    return result;
}

static bool has_axis(const sdlf_tensor *tensor, int axis)
{
    return tensor->layout == SDLF_DENSE && axis >= 0 && axis < tensor->shape.rank && axis < SDLF_MAX_RANK;
}

sdlf_tensor sdlf_tensor_narrow(sdlf_tensor tensor, int axis, int64_t start, int64_t length)
{
    bool fits = has_axis(&tensor, axis) && start >= 0 && length >= 0 && start <= tensor.shape.dim[axis] &&
                length <= tensor.shape.dim[axis] - start;
    if (!fits) return (sdlf_tensor){.dtype = SDLF_NONE};
    int64_t skipped = start * tensor.stride[axis] * (int64_t)sdlf_dtype_size(tensor.dtype);
    tensor.shape.dim[axis] = length;
    tensor.offset += skipped;
    if (tensor.data) tensor.data = (char *)tensor.data + skipped;
    return tensor;
}

sdlf_tensor sdlf_tensor_transpose(sdlf_tensor tensor, int axis_a, int axis_b)
{
    if (!has_axis(&tensor, axis_a) || !has_axis(&tensor, axis_b)) return (sdlf_tensor){.dtype = SDLF_NONE};
    int64_t dim = tensor.shape.dim[axis_a], stride = tensor.stride[axis_a];
    tensor.shape.dim[axis_a] = tensor.shape.dim[axis_b];
    tensor.stride[axis_a] = tensor.stride[axis_b];
    tensor.shape.dim[axis_b] = dim;
    tensor.stride[axis_b] = stride;
    return tensor;
}

/* The axes of (N,C,H,W) in channels-last order, innermost first. */
static const int innermost_first[4] = {1, 3, 2, 0};

bool sdlf_tensor_is_channels_last(const sdlf_tensor *tensor)
{
    if (tensor == NULL) return false;
    if (tensor->layout == SDLF_CSR || tensor->shape.rank != 4) return false;
    if (sdlf_tensor_count(tensor) == 0) return true;
    int64_t stride = 1;
    for (int i = 0; i < 4; i++) {
        int axis = innermost_first[i];
        if (tensor->shape.dim[axis] != 1 && tensor->stride[axis] != stride) return false;
        stride *= tensor->shape.dim[axis];
    }
    return true;
}

sdlf_tensor sdlf_tensor_channels_last(sdlf_tensor tensor)
{
    if (tensor.layout != SDLF_DENSE || tensor.shape.rank != 4) return (sdlf_tensor){.dtype = SDLF_NONE};
    int64_t stride = 1;
    for (int i = 0; i < 4; i++) {
        tensor.stride[innermost_first[i]] = stride;
        if (tensor.shape.dim[innermost_first[i]] > 0) stride *= tensor.shape.dim[innermost_first[i]];
    }
    return tensor;
}

sdlf_tensor sdlf_tensor_broadcast(sdlf_tensor tensor, sdlf_shape shape)
{
    int missing = shape.rank - tensor.shape.rank;
    if (missing < 0 || shape.rank > SDLF_MAX_RANK || tensor.shape.rank < 0) return (sdlf_tensor){.dtype = SDLF_NONE};
    sdlf_tensor result = tensor;
    result.shape = shape;
    for (int axis = 0; axis < shape.rank; axis++) {
        int64_t dim = axis < missing ? 1 : tensor.shape.dim[axis - missing];
        if (dim != shape.dim[axis] && dim != 1) return (sdlf_tensor){.dtype = SDLF_NONE};
        result.stride[axis] = dim == shape.dim[axis] && axis >= missing ? tensor.stride[axis - missing] : 0;
    }
    return result;
}
