/* SPDX-License-Identifier: MIT */
/* Class scores as probabilities. */
#ifndef SDLF_APPS_OUTPUT_SCORES_H
#define SDLF_APPS_OUTPUT_SCORES_H

#include <stdint.h>

#include <sdlf/status.h>

/* Check that scores can be ordered. Minus infinity is valid, for a class that is ruled out, unless all scores are. Errors:
 * SDLF_ERROR_NUMERIC, with the number of outputs that are not finite. */
sdlf_status scores_check(const double *score, int64_t count);

/* Convert scores to probabilities: unchanged if they already are probabilities, else their softmax. */
void scores_to_probabilities(double *score, int64_t count);

#endif
