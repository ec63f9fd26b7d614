/* How a model is used to classify the samples of a data set: which input takes the samples, which the labels, and which
 * output gives the classes' scores. */
#ifndef SDLF_FRAMEWORK_CLASSIFIER_H
#define SDLF_FRAMEWORK_CLASSIFIER_H

#include <sdlf/dataset.h>
#include <sdlf/model.h>

/* What an output says of each class. */
typedef enum sdlf_scores {
    SDLF_SCORES_LOGITS = 0,
    SDLF_SCORES_PROBABILITIES,
    SDLF_SCORES_LOG_PROBABILITIES
} sdlf_scores;

/* Names belong to the model. */
typedef struct sdlf_classifier {
    const char *samples; /* input of shape (N,C,H,W), floating */
    const char *labels;  /* input of the model's own loss layer; NULL: it has none */
    const char *output;  /* the first output that is no loss; NULL: it has none */
    sdlf_scores scores;  /* of `output`: what its softmax or log_softmax layer, or the lack of one, makes it */
} sdlf_classifier;

/* Work it out, and check it against the data set: the samples' shape and, where there is an output, the number of classes.
 * The model is inferred or built. Errors: SDLF_ERROR_SHAPE; SDLF_ERROR_ARGUMENT (a label that is no class). */
sdlf_status sdlf_classifier_find(sdlf_classifier *classifier, const sdlf_model *model, const sdlf_dataset *dataset);

#endif
