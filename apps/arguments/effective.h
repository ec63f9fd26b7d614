/* SPDX-License-Identifier: MIT */
/* Options as they are in effect, from the table that describes them: as JSON, and as the command line that says them
 * all. */
#ifndef SDLF_APPS_ARGUMENTS_EFFECTIVE_H
#define SDLF_APPS_ARGUMENTS_EFFECTIVE_H

#include <jansson.h>

#include "apps/arguments/arguments.h"

/* Put every option that `object` does not have yet into it: "clip_norm" of --clip-norm, with its value in `settings`.
 * null: not given, or of no meaning here (NaN, or a 0 outside of its range). */
void arguments_add_json(json_t *object, const command_usage *usage, const void *settings);

/* "sdlf train --data digits --epochs 5": every option that differs from its default, quoted for a shell where it must
 * be. The caller's. */
char *arguments_command(const command_usage *usage, const void *settings);
/* "data = digits\nepochs = 5\n...": every option that has a value, in effect or not. The caller's. */
char *arguments_lines(const command_usage *usage, const void *settings);

#endif
