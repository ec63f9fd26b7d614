/* SPDX-License-Identifier: MIT */
/* How a model classifies the samples of a data set: which input receives the samples, which the labels, and which
 * output has the scores of the classes. */
#ifndef SDLF_FRAMEWORK_CLASSIFIER_H
#define SDLF_FRAMEWORK_CLASSIFIER_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

/* The data set's name for messages; "without a name" if it has none. */
const char *sdlf_dataset_title(const sdlf_dataset *dataset);

/* Checks that its samples are present, with a label for each. Errors: SDLF_ERROR_SHAPE, SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_dataset_check_parts(const sdlf_dataset *dataset);

/* True if its labels are float targets. */
bool sdlf_dataset_has_targets(const sdlf_dataset *dataset);

/* The number of positions of a sample that have a label each; 0: one label per sample. */
int64_t sdlf_dataset_positions(const sdlf_dataset *dataset);

/* True if its labels are one per pixel of images. A label of -1 marks a pixel that is ignored. */
bool sdlf_dataset_has_pixel_labels(const sdlf_dataset *dataset);

/* Names belong to the model. */
typedef struct sdlf_classifier {
    const char *samples; /* input of shape (N,C,H,W), floating */
    int64_t batch;       /* the only batch size it accepts, if the input's shape includes the batch; 0: any */
    const char *labels;  /* input of the model's own loss layer; NULL: it has none */
    const char *output;  /* the first output that is not a loss; NULL: none */
    sdlf_scores scores;  /* what `output` contains, according to its layer */
} sdlf_classifier;

/* Determines the members, and checks them against the data set: the samples' shape and, if there is an output, the
 * number of classes. The model is inferred or built. Errors: SDLF_ERROR_SHAPE; SDLF_ERROR_ARGUMENT (invalid label). */
sdlf_status sdlf_classifier_find(sdlf_classifier *classifier, const sdlf_model *model, const sdlf_dataset *dataset);

/* The calculator that uploads samples written to a plan; NULL: none. */
sdlf_calculator *sdlf_classifier_uploads(const sdlf_classifier *classifier, sdlf_plan *plan);

#endif
