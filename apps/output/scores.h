/* SPDX-License-Identifier: MIT */
/* What a network says of classes, as probabilities. */
#ifndef SDLF_APPS_OUTPUT_SCORES_H
#define SDLF_APPS_OUTPUT_SCORES_H

#include <stdint.h>

#include <sdlf/status.h>

/* Are these scores that can be put in order? Minus infinity is one, of a class that is out of the question, except for all
 * of them. Errors: SDLF_ERROR_NUMERIC, with how many of the outputs are not finite. */
sdlf_status scores_check(const double *score, int64_t count);

/* Scores become probabilities: they stay what they are where they are some already, else become their softmax. */
void scores_to_probabilities(double *score, int64_t count);

#endif
