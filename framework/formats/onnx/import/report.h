/* SPDX-License-Identifier: MIT */
/* What an import tells of a file: see sdlf_onnx_report. */
#ifndef SDLF_FORMATS_ONNX_REPORT_H
#define SDLF_FORMATS_ONNX_REPORT_H

#include "framework/formats/onnx/import/import.h"

/* Inputs, outputs and sizes of the graph. */
sdlf_status onnx_report_values(onnx_import *import);

/* What the outputs turned out to be, once the model is made. */
void onnx_report_outputs(onnx_import *import);

/* A node that was converted, that failed with `status` and the thread's message, or that waits for one that failed. */
sdlf_status onnx_report_node(onnx_import *import, const onnx_context *c, sdlf_status status, bool waits);

/* Keep the thread's message as the reason why there is no model, unless one is kept already. */
void onnx_report_failure(sdlf_onnx_report *report, sdlf_status status);

#endif
