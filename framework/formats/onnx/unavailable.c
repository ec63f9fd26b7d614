/* SPDX-License-Identifier: MIT */
/* The ONNX functions in a build without them: protobuf-c was not found, or SDLF_ONNX is off. */
#include <sdlf/formats.h>
#include <sdlf/quantize.h>

#include "framework/formats/onnx/import/model_from_onnx.h"
#include "framework/formats/onnx/tensor_file.h"
#include "framework/require.h"

#ifdef SDLF_ONNX_SWITCHED_OFF
static const char advice[] = "since it was configured with SDLF_ONNX=OFF (configure it with SDLF_ONNX=ON, which needs "
                             "protobuf-c, and build again)";
#else
static const char advice[] =
    "because protobuf-c was not found (on Debian and Ubuntu: protobuf-c-compiler and libprotobuf-c-dev, "
    "then configure and build again)";
#endif

static sdlf_status refuse(const char *path)
{
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "cannot read '%s': this build reads no ONNX files, %s", path, advice);
}

sdlf_status sdlf_model_from_onnx(sdlf_model **model, const char *path, const sdlf_onnx_options *options)
{
    (void)options;
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(path);
    return refuse(path);
}

sdlf_status sdlf_onnx_inspect(sdlf_onnx_report **report, const char *path, const sdlf_onnx_options *options)
{
    (void)options;
    SDLF_REQUIRE(report);
    *report = NULL;
    SDLF_REQUIRE(path);
    return refuse(path);
}

sdlf_status sdlf_model_to_onnx(const sdlf_model *model, const char *path, const sdlf_onnx_export_options *options,
                               sdlf_onnx_exported *result)
{
    (void)options;
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    if (result != NULL) *result = (sdlf_onnx_exported){0};
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "cannot write '%s': this build writes no ONNX files, %s", path, advice);
}

sdlf_status sdlf_quantize(const sdlf_model *model, const char *path, const sdlf_quantization_options *options,
                          sdlf_quantized *result)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    SDLF_REQUIRE(options);
    if (result != NULL) *result = (sdlf_quantized){0};
    return sdlf_model_to_onnx(model, path, NULL, NULL);
}

sdlf_status model_from_onnx_bytes(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                  const char *folder, const sdlf_onnx_options *options)
{
    (void)bytes;
    (void)size;
    (void)folder;
    return sdlf_model_from_onnx(model, name, options);
}

sdlf_status onnx_inspect_bytes(sdlf_onnx_report **report, const void *bytes, size_t size, const char *name,
                               const char *folder, const sdlf_onnx_options *options)
{
    (void)bytes;
    (void)size;
    (void)folder;
    return sdlf_onnx_inspect(report, name, options);
}

void sdlf_onnx_report_free(sdlf_onnx_report *report)
{
    (void)report;
}

sdlf_status onnx_tensor_read_file(sdlf_tensor *tensor, const char *path)
{
    (void)tensor;
    return refuse(path);
}
