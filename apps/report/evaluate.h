/* SPDX-License-Identifier: MIT */
/* A model over a data set, sample by sample: how much of it was right, and which samples it was surest of while wrong. */
#ifndef SDLF_APPS_REPORT_EVALUATE_H
#define SDLF_APPS_REPORT_EVALUATE_H

#include <sdlf/trainer.h>

typedef struct mistake {
    int64_t sample;
    int truth, taken_for;
    double probability; /* of what it was taken for */
} mistake;

typedef struct judgement {
    sdlf_evaluation evaluation; /* its confusion is the judgement's */
    mistake *worst;             /* the surest first */
    int worst_count;
} judgement;

/* Run the model over the data, with its first output; the largest score, the first of equals, is what a sample is taken for. At most `most`
 * mistakes are kept. Where a signal comes, the figures are of the samples seen so far. Errors: shapes that do not fit, scores that are no
 * numbers, those of sdlf_plan_create. End with judgement_release, whatever the status. */
sdlf_status judge(judgement *judgement, sdlf_model *model, const sdlf_dataset *data, sdlf_calculator *calculator,
                  int most);
void judgement_release(judgement *judgement);

/* The data as the model wants them normalised; what it points to is the caller's. */
sdlf_dataset judge_view(sdlf_model *model, const sdlf_dataset *data);

#endif
