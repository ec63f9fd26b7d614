/* SPDX-License-Identifier: MIT */
/* What a file holds, by its first bytes, or by its name where they say nothing. */
#ifndef SDLF_APPS_INPUT_FILE_TYPE_H
#define SDLF_APPS_INPUT_FILE_TYPE_H

#include <sdlf/status.h>

typedef enum file_form { FILE_FORM_OTHER = 0, FILE_FORM_JSON, FILE_FORM_ONNX, FILE_FORM_SAFETENSORS } file_form;

/* Only regular files are looked into; of anything else, and where nothing is there, the name's ending decides. */
file_form file_form_of(const char *path);

/* SDLF_ERROR_FORMAT where `path` is a file, not empty, of none of these forms: the message says what was expected, and how it begins. */
sdlf_status file_form_refuse_other(const char *path, const char *expected);

#endif
