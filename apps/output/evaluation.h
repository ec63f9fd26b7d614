/* SPDX-License-Identifier: MIT */
/* The results of an evaluation for any loss: classes, multi-label targets, or values. */
#ifndef SDLF_APPS_OUTPUT_EVALUATION_H
#define SDLF_APPS_OUTPUT_EVALUATION_H

#include <sdlf/trainer.h>

#include "apps/input/labels.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* One row a class (classes.h) or a target, and, with `confusion`, the matrix of classes; an empty line before and after
 * each. */
void evaluation_print(const terminal *out, const sdlf_evaluation *evaluation, const labels *names, bool confusion);

/* "98.90%  9,890 of 10,000 right  loss 0.0312", or "RMSE 0.0312  MAE 0.0201  loss 0.0010", and a line end. */
void evaluation_print_line(const sdlf_evaluation *evaluation);

/* For classes as classes_json; else {"loss_name", "rmse", "mae" or "accuracy", "f1", "correct", "samples", "loss",
 * "seconds", "targets": [{"target", "name", ...}, ...]}. */
json_t *evaluation_json(const sdlf_evaluation *evaluation, const labels *names);

#endif
