/* SPDX-License-Identifier: MIT */
/* A model from the content of a file in memory: weights with their network, or ONNX. */
#include <sdlf/formats.h>

#include "framework/formats/little_endian.h"
#include "framework/formats/onnx/import/model_from_onnx.h"
#include "framework/formats/weights.h"
#include "framework/require.h"

/* True for a JSON header after its length, which is at most the rest: safetensors. (An ONNX file begins with a field's
 * number and type, and has no such length in its first 8 bytes.) */
static bool is_safetensors(const unsigned char *bytes, size_t size)
{
    return size > 8 && load_little_endian_64(bytes) <= size - 8 && bytes[8] == '{';
}

sdlf_status sdlf_model_from_memory(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                   const sdlf_onnx_options *options)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(bytes);
    if (name == NULL) name = "model";
    if (is_safetensors(bytes, size)) return weights_open_memory(model, bytes, size, name);
    return model_from_onnx_bytes(model, bytes, size, name, NULL, options);
}
