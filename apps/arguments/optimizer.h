/* SPDX-License-Identifier: MIT */
/* --optimizer and its options. The rows are generated from the optimizers' own field tables, so that a new optimizer
 * needs no change here. */
#ifndef SDLF_APPS_ARGUMENTS_OPTIMIZER_H
#define SDLF_APPS_ARGUMENTS_OPTIMIZER_H

#include <sdlf/optimizer.h>

#include "apps/arguments/arguments.h"

enum { OPTIMIZER_OPTIONS_MAX = 16 };

typedef struct optimizer_settings {
    const char *name;
    struct {
        double number;
        bool flag;
    } value[OPTIMIZER_OPTIONS_MAX]; /* in the order of the rows below */
} optimizer_settings;

typedef struct optimizer_rows {
    argument row[OPTIMIZER_OPTIONS_MAX + 3]; /* heading, --optimizer, its options, end */
    struct {
        char name[32], field[32], help[160];
    } text[OPTIMIZER_OPTIONS_MAX];
    int count; /* of options */
} optimizer_rows;

/* Fill the rows; they describe an optimizer_settings. */
void optimizer_rows_make(optimizer_rows *rows);

/* The same for commands that discard what they train: only --momentum, the one option that decides how much memory an
 * optimizer takes and which kernel updates the weights. */
void optimizer_rows_make_short(optimizer_rows *rows);

/* Set up `optimizer` with the type that --optimizer names (sgd by default; if `keep` and the option was not given, the
 * present type) and the options that were given. The default momentum of sgd is 0.9. Errors: SDLF_ERROR_ARGUMENT: an
 * option that this optimizer does not have, or a value out of its range. */
sdlf_status optimizer_from_arguments(sdlf_optimizer *optimizer, bool keep, const optimizer_rows *rows,
                                     const optimizer_settings *settings, const arguments *arguments);

/* The inverse: read the optimizer's values into `settings`; NaN for options that it does not have. */
void optimizer_to_arguments(const sdlf_optimizer *optimizer, const optimizer_rows *rows, optimizer_settings *settings);

/* For commands that do not train: SDLF_ERROR_ARGUMENT if --optimizer or one of its options was given. */
sdlf_status optimizer_check_absent(const optimizer_rows *rows, const arguments *arguments);

#endif
