/* SPDX-License-Identifier: MIT */
/* What a file holds, by its first bytes, or by its name where they say nothing. */
#ifndef SDLF_APPS_INPUT_FILE_TYPE_H
#define SDLF_APPS_INPUT_FILE_TYPE_H

#include <sdlf/status.h>

typedef enum file_type { FILE_TYPE_OTHER = 0, FILE_TYPE_JSON, FILE_TYPE_ONNX, FILE_TYPE_SAFETENSORS } file_type;

/* Only regular files are looked into; of anything else, and where nothing is there, the name's ending decides. */
file_type file_type_of(const char *path);

/* SDLF_ERROR_FORMAT where `path` is a file, not empty, of none of these forms: the message says what was expected, and
 * how it begins. */
sdlf_status file_type_refuse_other(const char *path, const char *expected);

#endif
