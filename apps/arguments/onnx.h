/* SPDX-License-Identifier: MIT */
/* Options that control how an ONNX file is converted to a model, shared by the commands that read one. */
#ifndef SDLF_APPS_ARGUMENTS_ONNX_H
#define SDLF_APPS_ARGUMENTS_ONNX_H

#include <sdlf/formats.h>

#include "apps/arguments/arguments.h"

typedef struct onnx_settings {
    int64_t batch; /* 0: not given */
    argument_list dimensions;
    /* filled by onnx_settings_complete: */
    sdlf_onnx_dimension dimension[ARGUMENT_LIST_MAX];
    char *text[ARGUMENT_LIST_MAX];
} onnx_settings;

extern const argument onnx_arguments[];

/* Only --dim, for commands whose --batch means something else; offset: that of an argument_list. */
extern const argument dimension_arguments[];

/* Read --dim, and fill in options, which borrow from `set` until the next call. Errors: SDLF_ERROR_ARGUMENT. */
sdlf_status onnx_settings_complete(onnx_settings *set, sdlf_onnx_options *options);

/* The check for a file other than ONNX, whose dimensions are known except for the batch. */
sdlf_status onnx_settings_fit_other(const onnx_settings *set, const char *path);
void onnx_settings_release(onnx_settings *set);

#endif
