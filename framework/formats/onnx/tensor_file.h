/* SPDX-License-Identifier: MIT */
/* A single TensorProto in a .pb file. */
#ifndef SDLF_FORMATS_ONNX_TENSOR_FILE_H
#define SDLF_FORMATS_ONNX_TENSOR_FILE_H

#include <sdlf/tensor.h>

/* The caller owns the tensor (host memory). Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY;
 * SDLF_ERROR_UNSUPPORTED for element types that SDLF lacks, and in builds without ONNX. */
sdlf_status onnx_tensor_read_file(sdlf_tensor *tensor, const char *path);

#endif
