/* SPDX-License-Identifier: MIT */
/* A network as C, compiled as strictly as a compiler can, and run. */
#ifndef SDLF_TESTS_FRAMEWORK_FORMATS_C_PROGRAM_H
#define SDLF_TESTS_FRAMEWORK_FORMATS_C_PROGRAM_H

#include "onnx/export_cases.h"

/* Write a model that is built as C, compile it, run it with the inputs of `values`, and hold it against their outputs:
 * integers bit for bit, floats to 1e-5 of 1 + |y|. The model ran with a batch of 1. */
void c_program_check(sdlf_model *model, const export_run_values *values);

/* The same with a run on the reference calculator, in which every input has a value. */
void c_program_check_model(sdlf_model *model);

#endif
