/* SPDX-License-Identifier: MIT */
#include "framework/formats/safetensors.h"

#include <string.h>

/* All types of the format; files with types that SDLF lacks are still validated in full. */
static const safetensors_dtype dtypes[] = {
    {"F64", 64, SDLF_FLOAT64}, {"F32", 32, SDLF_FLOAT32}, {"F16", 16, SDLF_FLOAT16}, {"BF16", 16, SDLF_BFLOAT16},
    {"I64", 64, SDLF_INT64},   {"I32", 32, SDLF_INT32},   {"I16", 16, SDLF_NONE},    {"I8", 8, SDLF_INT8},
    {"U64", 64, SDLF_NONE},    {"U32", 32, SDLF_NONE},    {"U16", 16, SDLF_NONE},    {"U8", 8, SDLF_UINT8},
    {"BOOL", 8, SDLF_BOOL},    {"C64", 64, SDLF_NONE},    {"F8_E4M3", 8, SDLF_NONE}, {"F8_E5M2", 8, SDLF_NONE},
    {"F8_E8M0", 8, SDLF_NONE}, {"F6_E2M3", 6, SDLF_NONE}, {"F6_E3M2", 6, SDLF_NONE}, {"F4", 4, SDLF_NONE},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

const safetensors_dtype *safetensors_dtype_named(const char *name)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

const safetensors_dtype *safetensors_dtype_of(sdlf_dtype dtype)
{
    if (dtype == SDLF_NONE) return NULL;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (dtypes[i].dtype == dtype) return &dtypes[i];
    return NULL;
}
