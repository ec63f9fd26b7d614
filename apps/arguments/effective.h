/* SPDX-License-Identifier: MIT */
/* The effective values of a command's options, from the table that describes them: as JSON and as a full command
 * line. */
#ifndef SDLF_APPS_ARGUMENTS_EFFECTIVE_H
#define SDLF_APPS_ARGUMENTS_EFFECTIVE_H

#include <jansson.h>

#include "apps/arguments/arguments.h"

/* Add to `object` every option that it does not have yet: "clip_norm" for --clip-norm, with its value in `settings`.
 * null: not given, or without meaning here (NaN, or a 0 outside the option's range). */
void arguments_add_json(json_t *object, const command_usage *usage, const void *settings);

/* Returns "sdlf train --data digits --epochs 5": every option that differs from its default, quoted for a shell where
 * necessary. The caller frees it. */
char *arguments_command(const command_usage *usage, const void *settings);
/* Returns "data = digits\nepochs = 5\n...": every option that has a value, in effect or not. The caller frees it. */
char *arguments_lines(const command_usage *usage, const void *settings);

#endif
