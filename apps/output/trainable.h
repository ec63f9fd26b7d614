/* SPDX-License-Identifier: MIT */
/* Which parameters are trained and which are not, in a line and as JSON. */
#ifndef SDLF_APPS_OUTPUT_TRAINABLE_H
#define SDLF_APPS_OUTPUT_TRAINABLE_H

#include <sdlf/model.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* True if there is a parameter that training does not change, other than running statistics. */
bool trainable_any_frozen(sdlf_model *model);

/* Elements of all parameters, trained or not, except for running statistics. */
int64_t trainable_total(sdlf_model *model);

/* True if all elements of the parameters are finite. */
bool trainable_is_finite(sdlf_model *model);

/* "12 parameters (1,045 numbers); not trained 2: bn.running_mean, bn.running_var", wrapped `at` columns from the left; a few names, then the
 * number of others. The model's parameters are known: it is built, or a plan was outlined for it. */
void trainable_print(const terminal *out, sdlf_model *model, int at);

/* [{"name", "shape", "trained"}] */
json_t *trainable_json(sdlf_model *model);

#endif
