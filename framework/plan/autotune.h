/* SPDX-License-Identifier: MIT */
/* Autotuning: times the algorithms for one operation against each other, outside any plan's memory. */
#ifndef SDLF_FRAMEWORK_PLAN_AUTOTUNE_H
#define SDLF_FRAMEWORK_PLAN_AUTOTUNE_H

#include <sdlf/calculator.h>

enum { AUTOTUNE_MAX_ALGORITHMS = 16 }; /* algorithms timed at most */

typedef struct autotune_result {
    int algorithm; /* the fastest; 0 if none could run */
    int count;     /* algorithms that ran, in the order of the calculator's list */
    int ran[AUTOTUNE_MAX_ALGORITHMS];
    double seconds[AUTOTUNE_MAX_ALGORITHMS];
} autotune_result;

/* Times every algorithm except "auto" that supports the operation (with `may_use_nhwc`, also those that support it with
 * channels-last activations, and with prepacked weights). The operands have shapes and no memory. One warm-up run, then
 * the median of up to 5 samples, a tenth of a second in all. An algorithm that needs more memory than is available is
 * skipped. Errors: those of the device; SDLF_ERROR_MEMORY for the operands themselves. */
sdlf_status autotune_run(autotune_result *result, sdlf_calculator *calculator, const sdlf_operation *operation,
                         bool may_use_nhwc);

#endif
