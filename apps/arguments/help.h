/* SPDX-License-Identifier: MIT */
/* An option in help: what both the help text and the manual page say of it. */
#ifndef SDLF_APPS_ARGUMENTS_HELP_H
#define SDLF_APPS_ARGUMENTS_HELP_H

#include "apps/arguments/arguments.h"

enum { HELP_LEFT = 96, HELP_RIGHT = 1024 };

/* "--batch N", "-o, --out FILE", "--json [FILE]" */
void help_left(const argument *row, char *text, size_t size);

/* The help, then in brackets the words that may be chosen and the default. */
void help_right(const argument *row, char *text, size_t size);

/* What every command takes. */
extern const argument help_common[];

#endif
