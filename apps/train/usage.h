/* SPDX-License-Identifier: MIT */
/* The options of `sdlf train`. */
#ifndef SDLF_APPS_TRAIN_USAGE_H
#define SDLF_APPS_TRAIN_USAGE_H

#include "apps/arguments/arguments.h"
#include "apps/arguments/optimizer.h"

enum { TRAIN_PARTS = 12 };

/* Of a train_settings; it must not be moved. */
typedef struct train_usage {
    argument_part parts[TRAIN_PARTS];
    command_usage usage;
} train_usage;

/* Fills both; `optimizers` stays the caller's, and the usage refers to it. */
void train_usage_make(train_usage *usage, optimizer_rows *optimizers);

/* Check whether `sdlf train` accepts these words after "train". ARGUMENTS_WRONG: the error was printed on standard
 * error. Whether the files and networks that they name exist is not checked. */
arguments_outcome train_usage_check(int count, char *const *words);

#endif
