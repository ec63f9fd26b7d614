/* SPDX-License-Identifier: MIT */
/* Element types of ONNX tensors. */
#include "framework/formats/onnx/tensor.h"

static const struct {
    const char *name;
    size_t size;
    sdlf_dtype dtype;
} types[ONNX_TYPE_COUNT] = {
    [ONNX_UNDEFINED] = {"undefined", 0, SDLF_NONE},
    [ONNX_FLOAT] = {"float", 4, SDLF_FLOAT32},
    [ONNX_UINT8] = {"uint8", 1, SDLF_UINT8},
    [ONNX_INT8] = {"int8", 1, SDLF_INT8},
    [ONNX_UINT16] = {"uint16", 2, SDLF_NONE},
    [ONNX_INT16] = {"int16", 2, SDLF_NONE},
    [ONNX_INT32] = {"int32", 4, SDLF_INT32},
    [ONNX_INT64] = {"int64", 8, SDLF_INT64},
    [ONNX_STRING] = {"string", 0, SDLF_NONE},
    [ONNX_BOOL] = {"bool", 1, SDLF_BOOL},
    [ONNX_FLOAT16] = {"float16", 2, SDLF_FLOAT16},
    [ONNX_DOUBLE] = {"double", 8, SDLF_FLOAT64},
    [ONNX_UINT32] = {"uint32", 4, SDLF_NONE},
    [ONNX_UINT64] = {"uint64", 8, SDLF_NONE},
    [ONNX_COMPLEX64] = {"complex64", 0, SDLF_NONE},
    [ONNX_COMPLEX128] = {"complex128", 0, SDLF_NONE},
    [ONNX_BFLOAT16] = {"bfloat16", 2, SDLF_BFLOAT16},
    [ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", 1, SDLF_NONE},
    [ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 1, SDLF_NONE},
    [ONNX_FLOAT8E5M2] = {"float8e5m2", 1, SDLF_NONE},
    [ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 1, SDLF_NONE},
    [ONNX_UINT4] = {"uint4", 1, SDLF_NONE},
    [ONNX_INT4] = {"int4", 1, SDLF_NONE},
    [ONNX_FLOAT4E2M1] = {"float4e2m1", 1, SDLF_NONE},
    [ONNX_FLOAT8E8M0] = {"float8e8m0", 1, SDLF_NONE},
    [ONNX_UINT2] = {"uint2", 1, SDLF_NONE},
    [ONNX_INT2] = {"int2", 1, SDLF_NONE},
};

static bool is_listed(int type)
{
    return type >= 0 && type < ONNX_TYPE_COUNT;
}

const char *onnx_type_name(int type)
{
    return is_listed(type) ? types[type].name : "unknown type";
}

size_t onnx_type_size(int type)
{
    return is_listed(type) ? types[type].size : 0;
}

sdlf_dtype onnx_type_dtype(int type)
{
    return is_listed(type) ? types[type].dtype : SDLF_NONE;
}

int onnx_type_packed(int type)
{
    if (type == ONNX_INT4 || type == ONNX_UINT4 || type == ONNX_FLOAT4E2M1) return 2;
    return type == ONNX_INT2 || type == ONNX_UINT2 ? 4 : 1;
}

sdlf_dtype onnx_type_computed(int type)
{
    if (onnx_type_is_small_float(type)) return SDLF_FLOAT32;
    switch (type) {
    case ONNX_INT2:
    case ONNX_INT4: return SDLF_INT8;
    case ONNX_UINT2:
    case ONNX_UINT4: return SDLF_UINT8;
    case ONNX_INT16:
    case ONNX_UINT16: return SDLF_INT32;
    case ONNX_UINT32: return SDLF_INT64;
    default: return onnx_type_dtype(type);
    }
}

int64_t onnx_type_wrap(int type, int64_t value)
{
    bool has_sign = type == ONNX_INT2 || type == ONNX_INT4 || type == ONNX_INT16;
    bool narrow = onnx_type_dtype(type) == SDLF_NONE && onnx_type_computed(type) != SDLF_NONE;
    if (!narrow || onnx_type_is_small_float(type)) return value;
    int bits = (int)(8 * onnx_type_size(type)) / onnx_type_packed(type);
    int64_t low = (int64_t)((uint64_t)value & ((1ULL << bits) - 1));
    return has_sign && low >> (bits - 1) != 0 ? low - (int64_t)(1ULL << bits) : low;
}

onnx_type onnx_type_of(sdlf_dtype dtype)
{
    for (int type = 1; type < ONNX_TYPE_COUNT; type++)
        if (types[type].dtype == dtype) return (onnx_type)type;
    return ONNX_UNDEFINED;
}
