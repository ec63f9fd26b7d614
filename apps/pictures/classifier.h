/* SPDX-License-Identifier: MIT */
/* An image classifier that takes one image at a time: the opened network, its plan, and the preprocessing of its
 * images. */
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
    int samples;           /* how many will follow, to choose the threads */
    bool no_pictures;      /* only classifier_take is called: samples may have any shape */
    bool keep_activations; /* the plan keeps every layer's output after an image */
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
    sdlf_loss loss; /* that it was trained with */
    float *pixels;  /* of the last image, before normalisation: (C,H,W), 0 to 255 */
    float *sample, *score;
    int64_t sample_count; /* elements of a sample */
    /* Of the last sample, class_count of them; for a network trained with mse, mae or huber the values themselves. */
    double *probability;
} classifier;

/* Open the network and create its plan. Errors: unreadable files, networks without an image input or class outputs,
 * images whose normalisation is unknown. End with classifier_release, whatever the status. */
sdlf_status classifier_open(classifier *classifier, const classifier_request *request, preprocess_settings *preprocess);
void classifier_release(classifier *classifier);

/* Classify the image of a file, or a decoded one, into `probability`. Errors: those of reading; SDLF_ERROR_NUMERIC if
 * scores are NaN. */
sdlf_status classifier_read(classifier *classifier, const char *path, int64_t index);
sdlf_status classifier_look(classifier *classifier, const sdlf_image *picture, const char *name);
/* The same for a normalised sample. */
sdlf_status classifier_take(classifier *classifier, const float *sample, const char *name);

/* True if its outputs are values instead of probabilities. */
bool classifier_gives_values(const classifier *classifier);

/* Store the `count` most probable classes in `order`, most probable first; of equals the lower index first. */
void classifier_order(const classifier *classifier, int *order, int count);

#endif
