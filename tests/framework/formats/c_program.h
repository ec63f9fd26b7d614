/* SPDX-License-Identifier: MIT */
/* A network exported as C, compiled with all warnings as errors, and run. */
#ifndef SDLF_TESTS_FRAMEWORK_FORMATS_C_PROGRAM_H
#define SDLF_TESTS_FRAMEWORK_FORMATS_C_PROGRAM_H

#include "onnx/export_cases.h"

/* Export a built model as C, compile it, run it with the inputs of `values`, and compare its results with the outputs
 * there: integers exactly, floats within 1e-5 of 1 + |y|. The values are of a batch of 1. */
void c_program_check(sdlf_model *model, const export_run_values *values);

/* The same with the values of a run on the reference calculator, in which every input has a value. */
void c_program_check_model(sdlf_model *model);

#endif
