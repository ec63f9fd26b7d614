/* SPDX-License-Identifier: MIT */
/* How a model is used to classify the samples of a data set: which input takes the samples, which the labels, and which
 * output gives the classes' scores. */
#ifndef SDLF_FRAMEWORK_CLASSIFIER_H
#define SDLF_FRAMEWORK_CLASSIFIER_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

/* The data set's name for messages; "without a name" where it has none. */
const char *sdlf_dataset_title(const sdlf_dataset *dataset);

/* Are its samples there, and a label for each? Errors: SDLF_ERROR_SHAPE, SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_dataset_check_parts(const sdlf_dataset *dataset);

/* Are its labels float targets? */
bool sdlf_dataset_has_targets(const sdlf_dataset *dataset);

/* Positions of a sample that have a label each; 0: it has one label. */
int64_t sdlf_dataset_positions(const sdlf_dataset *dataset);

/* Are its labels those of each pixel of pictures? A label of -1 is of a pixel that does not count. */
bool sdlf_dataset_has_pixel_labels(const sdlf_dataset *dataset);

/* Names belong to the model. */
typedef struct sdlf_classifier {
    const char *samples; /* input of shape (N,C,H,W), floating */
    int64_t batch;       /* the only one that it takes, as the shape is whole; 0: any */
    const char *labels;  /* input of the model's own loss layer; NULL: it has none */
    const char *output;  /* the first output that is no loss; NULL: it has none */
    sdlf_scores scores;  /* of `output`: what the layer that makes it says */
} sdlf_classifier;

/* Work it out, and check it against the data set: the samples' shape and, where there is an output, the number of
 * classes. The model is inferred or built. Errors: SDLF_ERROR_SHAPE; SDLF_ERROR_ARGUMENT (a label that is no class). */
sdlf_status sdlf_classifier_find(sdlf_classifier *classifier, const sdlf_model *model, const sdlf_dataset *dataset);

/* The calculator that uploads the samples which are written to a plan; NULL: there is none. */
sdlf_calculator *sdlf_classifier_uploads(const sdlf_classifier *classifier, sdlf_plan *plan);

#endif
