/* SPDX-License-Identifier: MIT */
/* The time of an operation on a calculator. */
#ifndef SDLF_APPS_TIMING_OPERATION_H
#define SDLF_APPS_TIMING_OPERATION_H

#include "apps/bench/conv/measure.h"

/* Run the operation, which is bound and has its workspace, for as long as `effort` specifies, and fill in the times of
 * `result`. A sample repeats a short operation many times, as one recorded graph if the calculator supports it, as
 * plans do. */
sdlf_status lab_time(lab_result *result, sdlf_calculator *calculator, const sdlf_operation *operation,
                     const lab_effort *effort);

#endif
