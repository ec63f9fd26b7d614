/* SPDX-License-Identifier: MIT */
/* Parsing an option's value, and describing the values that it accepts. */
#ifndef SDLF_APPS_ARGUMENTS_VALUE_H
#define SDLF_APPS_ARGUMENTS_VALUE_H

#include "apps/arguments/arguments.h"

/* Parse `text` into `member`, of the row's type. Returns false, and stores nothing, if the row does not accept
 * it. */
bool argument_store(const argument *row, const char *text, void *member);

/* "a whole number from 1 to 1,000". */
typedef struct argument_text {
    char text[512];
} argument_text;
argument_text argument_expected(const argument *row);

/* The i-th word that a choice or a name may be; NULL past the end. */
const char *argument_choice(const argument *row, int index);

#endif
