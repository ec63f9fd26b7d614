/* SPDX-License-Identifier: MIT */
/* An ONNX model from memory, for tests. */
#ifndef SDLF_FORMATS_ONNX_MODEL_FROM_ONNX_H
#define SDLF_FORMATS_ONNX_MODEL_FROM_ONNX_H

#include <sdlf/formats.h>

/* As sdlf_model_from_onnx; `name` represents the file in messages. External data are looked for in `folder`, and
 * rejected if that is NULL. `bytes` are borrowed until it returns: no weights are left in them. */
sdlf_status model_from_onnx_bytes(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                  const char *folder, const sdlf_onnx_options *options);

/* As sdlf_onnx_inspect. */
sdlf_status onnx_inspect_bytes(sdlf_onnx_report **report, const void *bytes, size_t size, const char *name,
                               const char *folder, const sdlf_onnx_options *options);

#endif
