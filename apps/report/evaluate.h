/* SPDX-License-Identifier: MIT */
/* A model over a data set, sample by sample: how much of it was right, and which samples it was surest of while
 * wrong. */
#ifndef SDLF_APPS_REPORT_EVALUATE_H
#define SDLF_APPS_REPORT_EVALUATE_H

#include <sdlf/trainer.h>

typedef struct mistake {
    int64_t sample;
    int truth, taken_for;
    double probability; /* of what it was taken for */
} mistake;

typedef struct report_evaluation {
    sdlf_evaluation evaluation; /* its confusion is the report_evaluation's */
    mistake *worst;             /* the surest first */
    int worst_count;
} report_evaluation;

/* Run the model over the data, with its first output; the largest score, the first of equals, is what a sample is taken
 * for. At most `most` mistakes are kept. Where a signal comes, the figures are of the samples seen so far. Errors:
 * shapes that do not fit, scores that are no numbers, those of sdlf_plan_create. End with report_evaluation_release,
 * whatever the status. */
sdlf_status evaluate_report(report_evaluation *report_evaluation, sdlf_model *model, const sdlf_dataset *data,
                            sdlf_calculator *calculator, int most);
void report_evaluation_release(report_evaluation *report_evaluation);

/* The data as the model wants them normalised; what it points to is the caller's. */
sdlf_dataset evaluation_view(sdlf_model *model, const sdlf_dataset *data);

#endif
