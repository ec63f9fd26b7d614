/* SPDX-License-Identifier: MIT */
/* How far two networks agree on the samples of a data set: a network before and after a
 * change. */
#ifndef SDLF_APPS_OUTPUT_AGREEMENT_H
#define SDLF_APPS_OUTPUT_AGREEMENT_H

#include <sdlf/dataset.h>
#include <sdlf/model.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

typedef struct agreement {
    int64_t samples, same; /* same: the largest score is of the same class */
    bool classes, labels;  /* outputs are class scores; the data are labelled */
    int64_t right_before, right_after;
    double squared, squared_before; /* summed squares of the difference, and of the output before */
} agreement;

/* Run both on at most `most` samples, normalised as `before` specifies or, if it does not, as the data are; the first
 * output of each is compared. Shows progress; an interrupt ends it early. */
sdlf_status agreement_measure(agreement *a, sdlf_model *before, sdlf_model *after, sdlf_dataset *data,
                              sdlf_calculator *calculator, int64_t most);

/* "test   98.90% right before, 98.80% after; the same class for 99.7% of 1,000; error 1.2% of the output" */
void agreement_print(const terminal *out, const agreement *a);
json_t *agreement_json(const agreement *a);

#endif
