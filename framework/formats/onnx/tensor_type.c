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
    [ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", 0, SDLF_NONE},
    [ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 0, SDLF_NONE},
    [ONNX_FLOAT8E5M2] = {"float8e5m2", 0, SDLF_NONE},
    [ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 0, SDLF_NONE},
    [ONNX_UINT4] = {"uint4", 0, SDLF_NONE},
    [ONNX_INT4] = {"int4", 0, SDLF_NONE},
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

sdlf_dtype onnx_type_computed(int type)
{
    if (type == ONNX_INT16 || type == ONNX_UINT16) return SDLF_INT32;
    return type == ONNX_UINT32 ? SDLF_INT64 : onnx_type_dtype(type);
}

onnx_type onnx_type_of(sdlf_dtype dtype)
{
    for (int type = 1; type < ONNX_TYPE_COUNT; type++)
        if (types[type].dtype == dtype) return (onnx_type)type;
    return ONNX_UNDEFINED;
}
