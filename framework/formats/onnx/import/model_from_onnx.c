/* SPDX-License-Identifier: MIT */
/* The public import function: reads a file into a model. */
#include "framework/formats/onnx/import/import.h"

#include <stdlib.h>

#include "framework/formats/onnx/import/model_from_onnx.h"
#include "framework/require.h"

sdlf_status sdlf_model_from_onnx(sdlf_model **model, const char *path, const sdlf_onnx_options *options)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(path);
    onnx_file *file = malloc(sizeof *file);
    if (file == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
    sdlf_status status = onnx_file_open(file, path, options != NULL ? options->read_memory : 0);
    if (status == SDLF_OK) file->path = file->map.path; /* it may stay open for longer than `path` is valid */
    if (status == SDLF_OK) status = onnx_import_run(model, file, options, NULL, true);
    if (status == SDLF_OK && options != NULL && options->leave_weights) return SDLF_OK; /* the model owns it */
    onnx_file_close(file);
    free(file);
    return status;
}

sdlf_status model_from_onnx_bytes(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                  const char *folder, const sdlf_onnx_options *options)
{
    *model = NULL;
    onnx_file file;
    sdlf_onnx_options now = options != NULL ? *options : (sdlf_onnx_options){0};
    now.leave_weights = false; /* `bytes` need not remain valid */
    sdlf_status status = onnx_file_parse(&file, bytes, size, name, folder, now.read_memory);
    if (status == SDLF_OK) status = onnx_import_run(model, &file, &now, NULL, true);
    onnx_file_close(&file);
    return status;
}
