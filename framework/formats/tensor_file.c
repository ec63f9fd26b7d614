/* SPDX-License-Identifier: MIT */
/* Single tensors in files: .npy, and ONNX's TensorProto in .pb. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

#include "framework/formats/npy.h"
#include "framework/formats/onnx/tensor_file.h"
#include "framework/require.h"

struct sdlf_tensor_file {
    sdlf_tensor tensor; /* with all its elements, for a .pb file */
    npy_file npy;
    char path[];
};

static bool is_proto(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".pb") == 0;
}

sdlf_status sdlf_tensor_file_open(sdlf_tensor_file **file, const char *path)
{
    SDLF_REQUIRE(file);
    *file = NULL;
    SDLF_REQUIRE(path);
    sdlf_tensor_file *made = malloc(sizeof *made + strlen(path) + 1);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory reading '%s'", path);
    *made = (sdlf_tensor_file){.npy = {.descriptor = -1}};
    strcpy(made->path, path);
    sdlf_status status = is_proto(path) ? onnx_tensor_read_file(&made->tensor, path) : npy_open(&made->npy, made->path);
    if (status != SDLF_OK) {
        free(made);
        return status;
    }
    if (!is_proto(path)) made->tensor = made->npy.tensor;
    *file = made;
    return SDLF_OK;
}

sdlf_tensor sdlf_tensor_file_look(const sdlf_tensor_file *file)
{
    if (file == NULL) return (sdlf_tensor){.dtype = SDLF_NONE};
    return sdlf_tensor_view(file->tensor.dtype, file->tensor.shape, NULL);
}

sdlf_status sdlf_tensor_file_read(sdlf_tensor_file *file, void *values)
{
    SDLF_REQUIRE(file);
    SDLF_REQUIRE(values);
    if (!is_proto(file->path)) return npy_take(&file->npy, values);
    size_t bytes = (size_t)sdlf_tensor_bytes(&file->tensor);
    if (bytes > 0) memcpy(values, file->tensor.data, bytes);
    return SDLF_OK;
}

void sdlf_tensor_file_close(sdlf_tensor_file *file)
{
    if (file == NULL) return;
    if (is_proto(file->path)) sdlf_tensor_release(&file->tensor, NULL);
    npy_close(&file->npy);
    free(file);
}

sdlf_status sdlf_tensor_read_file(sdlf_tensor *tensor, const char *path)
{
    SDLF_REQUIRE(tensor);
    SDLF_REQUIRE(path);
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    return is_proto(path) ? onnx_tensor_read_file(tensor, path) : npy_read(tensor, path);
}

sdlf_status sdlf_tensor_write_file(const sdlf_tensor *tensor, const char *path)
{
    SDLF_REQUIRE(tensor);
    SDLF_REQUIRE(path);
    SDLF_REQUIRE(tensor->data);
    return npy_write(tensor, path);
}
