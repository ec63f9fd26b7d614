/* SPDX-License-Identifier: MIT */
/* Converts elements of an ONNX tensor to one of SDLF's dtypes, in blocks, since they may be unaligned. */
#include <string.h>

#include "framework/formats/onnx/tensor.h"

enum { BLOCK = 512 };

static int64_t widen(onnx_type type, const uint8_t *bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, bytes, onnx_type_size(type)); /* the host is little-endian, like the file */
    switch (type) {
    case ONNX_INT8:
    case ONNX_INT4:
    case ONNX_INT2: return (int8_t)(uint8_t)bits;
    case ONNX_INT16: return (int16_t)(uint16_t)bits;
    case ONNX_UINT64: return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    default: return (int64_t)bits;
    }
}

static void convert_block(const onnx_tensor *tensor, const uint8_t *from, int64_t count, sdlf_dtype to, void *out)
{
    sdlf_dtype dtype = onnx_type_dtype(tensor->type);
    size_t size = onnx_type_size(tensor->type);
    int64_t block[BLOCK];
    if (onnx_type_is_small_float(tensor->type)) {
        float *value = (float *)block;
        for (int64_t i = 0; i < count; i++) value[i] = onnx_small_float_decode(tensor->type, from[i]);
        sdlf_convert(to, out, SDLF_FLOAT32, value, count);
        return;
    }
    if (dtype == SDLF_NONE) {
        for (int64_t i = 0; i < count; i++) block[i] = widen(tensor->type, from + (size_t)i * size);
        sdlf_convert(to, out, SDLF_INT64, block, count);
        return;
    }
    memcpy(block, from, (size_t)count * size);
    if (tensor->type == ONNX_BOOL)
        for (int64_t i = 0; i < count; i++) ((uint8_t *)block)[i] = ((uint8_t *)block)[i] != 0;
    sdlf_convert(to, out, dtype, block, count);
}

void onnx_tensor_load(const onnx_tensor *tensor, int64_t first, int64_t count)
{
    size_t size = onnx_type_size(tensor->type);
    if (tensor->map == NULL || count <= 0) return;
    if (tensor->uniform) first = 0, count = 1;
    (void)onnx_map_need(tensor->map, (const char *)tensor->data + (size_t)first * size, (uint64_t)count * size);
}

void onnx_tensor_convert(const onnx_tensor *tensor, int64_t first, int64_t count, sdlf_dtype to, void *out)
{
    size_t size = onnx_type_size(tensor->type), to_size = sdlf_dtype_size(to);
    if (count <= 0) return;
    onnx_tensor_load(tensor, first, count);
    const uint8_t *from = (const uint8_t *)tensor->data + (tensor->uniform ? 0 : (size_t)first * size);
    if (tensor->uniform) {
        convert_block(tensor, tensor->data, 1, to, out);
        for (int64_t i = 1; i < count; i++) memcpy((char *)out + (size_t)i * to_size, out, to_size);
        return;
    }
    if (onnx_type_dtype(tensor->type) == to && tensor->type != ONNX_BOOL) {
        memcpy(out, from, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t length = count - i < BLOCK ? count - i : BLOCK;
        convert_block(tensor, from + (size_t)i * size, length, to, (char *)out + (size_t)i * to_size);
    }
}
