/* SPDX-License-Identifier: MIT */
/* A network that says what is in pictures, one at a time: opened, with a plan, and with what its pictures are
 * preprocessed by. */
#ifndef SDLF_APPS_PICTURES_CLASSIFIER_H
#define SDLF_APPS_PICTURES_CLASSIFIER_H

#include <sdlf/image.h>
#include <sdlf/plan.h>

#include "apps/pictures/preprocess.h"
#include "apps/system/machine.h"

typedef struct classifier_request {
    const char *weights, *net;       /* --weights and --net */
    const argument_list *dimensions; /* --dim; NULL: none */
    const char *calculator;
    machine_choice choice;
    int samples;           /* how many there will be, for how many threads pay */
    bool no_pictures;      /* only classifier_take is called: the network may take samples of any shape */
    bool keep_activations; /* the plan has every layer's output after a picture */
} classifier_request;

typedef struct classifier {
    classifier_request request;
    machine machine;
    sdlf_model *model;
    sdlf_plan *plan;
    const char *input, *output;
    preprocess_settings *preprocess; /* borrowed; completed by the model's */
    preprocess_frame frame;          /* of a sample */
    int class_count;
    sdlf_loss loss; /* what it was trained with */
    float *pixels;  /* of the last picture, as they were before they were normalised: (C,H,W), 0 to 255 */
    float *sample, *score;
    int64_t sample_count; /* of a sample's numbers */
    /* Of the last sample, class_count of them; of a network trained with mse, mae or huber the values themselves. */
    double *probability;
} classifier;

/* Errors: files that are none, networks that take no picture or give no classes, pictures of which nobody knows how
 * they are normalised. End with classifier_release, whatever the status. */
sdlf_status classifier_open(classifier *classifier, const classifier_request *request, preprocess_settings *preprocess);
void classifier_release(classifier *classifier);

/* What is in the picture of a file, or in one that is decoded: `probability`. Errors: those of reading;
 * SDLF_ERROR_NUMERIC of scores that are no numbers. */
sdlf_status classifier_read(classifier *classifier, const char *path, int64_t index);
sdlf_status classifier_look(classifier *classifier, const sdlf_image *picture, const char *name);
/* The same of a sample that is normalised. */
sdlf_status classifier_take(classifier *classifier, const float *sample, const char *name);

/* Does it give numbers instead of probabilities? */
bool classifier_gives_values(const classifier *classifier);

/* The likeliest classes, in order, the lower of equals first: `count` of them into `order`. */
void classifier_order(const classifier *classifier, int *order, int count);

#endif
