/* SPDX-License-Identifier: MIT */
/* Which parameters training changes, and which it does not change: in a line, and as JSON. */
#ifndef SDLF_APPS_OUTPUT_TRAINABLE_H
#define SDLF_APPS_OUTPUT_TRAINABLE_H

#include <sdlf/model.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* Is there a parameter that training does not change, other than running statistics? */
bool trainable_any_frozen(sdlf_model *model);

/* Elements of all parameters but running statistics, trained or not. */
int64_t trainable_total(sdlf_model *model);

/* Are all numbers of the parameters finite? */
bool trainable_is_finite(sdlf_model *model);

/* "12 parameters (1,045 numbers); not trained 2: bn.running_mean, bn.running_var", wrapped `at` columns from the left; a few names, then how
 * many more. The parameters are listed: of a model that is built, or that a plan was outlined of. */
void trainable_print(const terminal *out, sdlf_model *model, int at);

/* [{"name", "shape", "trained"}] */
json_t *trainable_json(sdlf_model *model);

#endif
