/* SPDX-License-Identifier: MIT */
/* Evaluation of a model on a data set, sample by sample: the accuracy, and the most confident
 * mistakes. */
#ifndef SDLF_APPS_REPORT_EVALUATE_H
#define SDLF_APPS_REPORT_EVALUATE_H

#include <sdlf/trainer.h>

typedef struct mistake {
    int64_t sample;
    int truth, taken_for;
    double probability; /* of the predicted class */
} mistake;

typedef struct report_evaluation {
    sdlf_evaluation evaluation; /* its confusion is the report_evaluation's */
    mistake *worst;             /* most confident first */
    int worst_count;
} report_evaluation;

/* Run the model on the data and evaluate its first output; the class of the largest score, the first of equals, is the
 * prediction. At most `most` mistakes are kept. After a signal, the figures cover the samples seen so far. Errors:
 * shapes that do not fit, NaN scores, those of sdlf_plan_create. End with report_evaluation_release, whatever the
 * status. */
sdlf_status evaluate_report(report_evaluation *report_evaluation, sdlf_model *model, const sdlf_dataset *data,
                            sdlf_calculator *calculator, int most);
void report_evaluation_release(report_evaluation *report_evaluation);

/* A view of the data with the model's normalisation; it borrows from `data`. */
sdlf_dataset evaluation_view(sdlf_model *model, const sdlf_dataset *data);

#endif
