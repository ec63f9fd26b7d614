/* SPDX-License-Identifier: MIT */
/* One picture, and what a network makes of it: probabilities, the outputs of its layers, and where it finds what speaks
 * for a class. */
#ifndef SDLF_APPS_REPORT_SINGLE_PICTURE_H
#define SDLF_APPS_REPORT_SINGLE_PICTURE_H

#include <sdlf/dataset.h>
#include <sdlf/plan.h>

#include "apps/pictures/preprocess.h"

enum { CHOSEN_CLASSES = 5, CHOSEN_LAYERS = 6, CHOSEN_CHANNELS = 32, CHOSEN_CAMS = 2 };

typedef struct picture_layer {
    char *name;
    sdlf_shape shape;    /* (C,H,W) */
    int count;           /* channels that are shown */
    unsigned char *grey; /* (count,H,W) */
} picture_layer;

typedef struct picture_cam {
    int class;
    float *map; /* cam_rows x cam_columns, from 0 on */
} picture_cam;

typedef struct single_picture {
    char *name;            /* "sample 12", or the file's; NULL: there is none */
    int truth;             /* -1: not known */
    sdlf_shape shape;      /* of the picture, (C,H,W) */
    unsigned char *pixels; /* of that shape */
    float *sample;         /* as the network takes it */
    double *probability;   /* class_count of them */
    int class_count;
    int order[CHOSEN_CLASSES], order_count; /* the likeliest classes */
    picture_layer layer[CHOSEN_LAYERS];
    int layer_count;
    char *cam_layer; /* whose output is weighed; NULL: none is */
    int64_t cam_rows, cam_columns;
    /* Of the class asked for, or of the likeliest and, where that is known and another, the true one. */
    picture_cam cam[CHOSEN_CAMS];
    int cam_count;
    char *cam_missing; /* why there is no map; NULL: nobody need know */
} single_picture;

/* Take sample `index` of the data, or the picture of a file: what is seen, and what the network takes. Errors:
 * SDLF_ERROR_ARGUMENT (an index that there is not), SDLF_ERROR_SHAPE (samples that are no pictures), those of
 * preprocess_complete and of reading. End with single_picture_release, whatever the status. */
sdlf_status single_picture_from_sample(single_picture *single_picture, sdlf_model *model, const sdlf_dataset *data,
                                       int64_t index);
sdlf_status single_picture_from_file(single_picture *single_picture, sdlf_model *model, const char *path,
                                     preprocess_settings *preprocess);

/* Run the network on it. Errors: those of plans, scores that are no numbers. */
sdlf_status single_picture_run(single_picture *single_picture, sdlf_model *model, sdlf_calculator *calculator);

/* Make its maps, of `class` (-1: see above), after the output of `layer` (NULL: the last convolution's); `model` is
 * another copy, which is changed (grad_cam.h). What cannot be made for this network is noted, not an error, where no
 * layer was asked for. */
sdlf_status single_picture_explain(single_picture *single_picture, sdlf_model *model, sdlf_calculator *calculator,
                                   const char *layer, int class);

void single_picture_release(single_picture *single_picture);

#endif
