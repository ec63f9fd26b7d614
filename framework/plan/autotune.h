/* SPDX-License-Identifier: MIT */
/* A race: the algorithms of one operation against each other, outside of any plan's memory. */
#ifndef SDLF_FRAMEWORK_PLAN_AUTOTUNE_H
#define SDLF_FRAMEWORK_PLAN_AUTOTUNE_H

#include <sdlf/calculator.h>

enum { RACE_MOST = 16 }; /* algorithms that take part */

typedef struct autotune_result {
    int algorithm; /* the fastest; 0 where none could run */
    int count;     /* that ran, in the order of the calculator's list */
    int ran[RACE_MOST];
    double seconds[RACE_MOST];
} autotune_result;

/* Time every algorithm but "auto" that takes the operation (with `may_use_nhwc` also those that take it with
 * activations channels last, and with weights prepacked), whose operands have shapes and no memory: once to warm up,
 * then the median of up to 5 samples, a tenth of a second in all. One that needs more memory than there is does not
 * take part. Errors: those of the device; SDLF_ERROR_MEMORY for the operands themselves. */
sdlf_status autotune_run(autotune_result *result, sdlf_calculator *calculator, const sdlf_operation *operation,
                         bool may_use_nhwc);

#endif
