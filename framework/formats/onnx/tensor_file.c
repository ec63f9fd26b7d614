/* SPDX-License-Identifier: MIT */
#include "framework/formats/onnx/tensor_file.h"

#include "framework/formats/onnx/tensor.h"

sdlf_status onnx_tensor_read_file(sdlf_tensor *tensor, const char *path)
{
    onnx_map map;
    read_budget budget;
    onnx_arena arena = {.budget = &budget};
    onnx_tensor read;
    sdlf_status status = onnx_map_open(&map, path);
    if (status != SDLF_OK) return status;
    if (map.size == 0) {
        onnx_map_close(&map);
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file is empty", path);
    }
    wire_reader reader = {.path = path,
                          .file = map.bytes,
                          .at = map.bytes,
                          .end = map.bytes + map.size,
                          .message = "TensorProto",
                          .map = &map};
    status = read_budget_make(&budget, (int64_t)map.size, 0);
    if (status == SDLF_OK) status = onnx_tensor_read(&read, reader, NULL, &arena);
    sdlf_dtype dtype = status == SDLF_OK ? onnx_type_computed(read.type) : SDLF_NONE;
    if (status == SDLF_OK && dtype == SDLF_NONE)
        status =
            sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: elements of %s are not supported", path, onnx_type_name(read.type));
    if (status == SDLF_OK) status = read_tensor_create(tensor, dtype, read.shape, path);
    if (status == SDLF_OK) onnx_tensor_convert(&read, 0, read.count, dtype, tensor->data);
    if (status == SDLF_OK) {
        status = onnx_map_check(&map);
        if (status != SDLF_OK) sdlf_tensor_release(tensor, NULL);
    }
    onnx_arena_release(&arena);
    onnx_map_close(&map);
    return status;
}
