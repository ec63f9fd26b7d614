/* SPDX-License-Identifier: MIT */
/* How well each class is distinguished: a table of precision and recall, and the confusion matrix. */
#ifndef SDLF_APPS_OUTPUT_CLASSES_H
#define SDLF_APPS_OUTPUT_CLASSES_H

#include <sdlf/trainer.h>

#include "apps/input/labels.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* One row a class: its samples, precision (the correct share of its predictions), recall (the correctly predicted share
 * of its samples), and the class that it is most often mistaken for. */
void classes_print(const terminal *out, const sdlf_evaluation *evaluation, const labels *names);

/* Rows are the true classes, columns the predicted ones. */
void classes_print_confusion(const terminal *out, const sdlf_evaluation *evaluation, const labels *names);

/* {"accuracy", "correct", "samples", "loss", "seconds", "classes": [{"class", "name", ...}, ...], "confusion":
 * [[...]]} */
json_t *classes_json(const sdlf_evaluation *evaluation, const labels *names);

#endif
