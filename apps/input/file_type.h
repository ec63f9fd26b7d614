/* SPDX-License-Identifier: MIT */
/* The format of a file, from its first bytes, or from its name if they are inconclusive. */
#ifndef SDLF_APPS_INPUT_FILE_TYPE_H
#define SDLF_APPS_INPUT_FILE_TYPE_H

#include <sdlf/status.h>

typedef enum file_type { FILE_TYPE_OTHER = 0, FILE_TYPE_JSON, FILE_TYPE_ONNX, FILE_TYPE_SAFETENSORS } file_type;

/* Only regular files are opened; for any other path, and for a missing file, the file name's extension decides. */
file_type file_type_of(const char *path);

/* SDLF_ERROR_FORMAT if `path` is a non-empty file of none of these formats: the message gives the expected format and
 * the file's first bytes. */
sdlf_status file_type_refuse_other(const char *path, const char *expected);

#endif
