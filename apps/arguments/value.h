/* SPDX-License-Identifier: MIT */
/* One option's value: reading it, and saying what it may be. */
#ifndef SDLF_APPS_ARGUMENTS_VALUE_H
#define SDLF_APPS_ARGUMENTS_VALUE_H

#include "apps/arguments/arguments.h"

/* Read `text` into `member`, of the type that the row says. False, and nothing stored, if it is not what the row
 * takes. */
bool argument_store(const argument *row, const char *text, void *member);

/* "a whole number from 1 to 1,000". */
typedef struct argument_text {
    char text[512];
} argument_text;
argument_text argument_expected(const argument *row);

/* The i-th word that a choice or a name may be; NULL past the end. */
const char *argument_choice(const argument *row, int index);

#endif
