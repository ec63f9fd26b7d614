/* The public way in: a file becomes a model. */
#include "framework/formats/onnx/import.h"

#include "framework/formats/onnx/model_from_onnx.h"

static sdlf_status make(sdlf_model **model, onnx_file *file, sdlf_status status, const sdlf_onnx_options *options)
{
    *model = NULL;
    if (status == SDLF_OK) status = onnx_import_run(model, file, options, NULL, true);
    onnx_file_close(file);
    return status;
}

sdlf_status sdlf_model_from_onnx(sdlf_model **model, const char *path, const sdlf_onnx_options *options)
{
    onnx_file file;
    return make(model, &file, onnx_file_open(&file, path), options);
}

sdlf_status model_from_onnx_bytes(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                  const char *folder, const sdlf_onnx_options *options)
{
    onnx_file file;
    return make(model, &file, onnx_file_parse(&file, bytes, size, name, folder), options);
}
