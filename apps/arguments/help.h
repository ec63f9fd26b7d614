/* SPDX-License-Identifier: MIT */
/* The description of an option, shared by the help text and the manual page. */
#ifndef SDLF_APPS_ARGUMENTS_HELP_H
#define SDLF_APPS_ARGUMENTS_HELP_H

#include "apps/arguments/arguments.h"

enum { HELP_LEFT = 96, HELP_RIGHT = 1024 };

/* "--batch N", "-o, --out FILE", "--json [FILE]" */
void help_left(const argument *row, char *text, size_t size);

/* The help, followed in brackets by the allowed words and the default. */
void help_right(const argument *row, char *text, size_t size);

/* Options common to all commands. */
extern const argument help_common[];

#endif
