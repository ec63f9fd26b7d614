/* SPDX-License-Identifier: MIT */
/* The report of an import: see sdlf_onnx_report. */
#ifndef SDLF_FORMATS_ONNX_REPORT_H
#define SDLF_FORMATS_ONNX_REPORT_H

#include "framework/formats/onnx/import/import.h"

/* Inputs, outputs and sizes of the graph. */
sdlf_status onnx_report_values(onnx_import *import);

/* The types and shapes of the outputs, once the model is made. */
void onnx_report_outputs(onnx_import *import);

/* Records a node that was converted, failed with `status` and the thread's message, or depends on a failed one. */
sdlf_status onnx_report_node(onnx_import *import, const onnx_context *c, sdlf_status status, bool waits);

/* Keeps the thread's message as the reason why there is no model, unless one is already recorded. */
void onnx_report_failure(sdlf_onnx_report *report, sdlf_status status);

#endif
