/* SPDX-License-Identifier: MIT */
/* One image and a network's results for it: probabilities, layer outputs, and Grad-CAM maps of the regions that support
 * a class. */
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
    float *map; /* cam_rows x cam_columns, >= 0 */
} picture_cam;

typedef struct single_picture {
    char *name;            /* "sample 12", or the file's; NULL: there is none */
    int truth;             /* -1: not known */
    sdlf_shape shape;      /* of the image, (C,H,W) */
    unsigned char *pixels; /* of that shape */
    float *sample;         /* preprocessed for the network */
    double *probability;   /* class_count of them */
    int class_count;
    int order[CHOSEN_CLASSES], order_count; /* the most probable classes */
    picture_layer layer[CHOSEN_LAYERS];
    int layer_count;
    char *cam_layer; /* whose output is weighted; NULL: none */
    int64_t cam_rows, cam_columns;
    /* Of the requested class, or of the most probable one and, if known and different, the true one. */
    picture_cam cam[CHOSEN_CAMS];
    int cam_count;
    char *cam_missing; /* why there is no map; NULL: nothing to report */
} single_picture;

/* Read sample `index` of the data, or the image of a file: both its pixels and the preprocessed sample. Errors:
 * SDLF_ERROR_ARGUMENT (index out of range), SDLF_ERROR_SHAPE (samples that are not images), those of
 * preprocess_complete and of reading. End with single_picture_release, whatever the status. */
sdlf_status single_picture_from_sample(single_picture *single_picture, sdlf_model *model, const sdlf_dataset *data,
                                       int64_t index);
sdlf_status single_picture_from_file(single_picture *single_picture, sdlf_model *model, const char *path,
                                     preprocess_settings *preprocess);

/* Run the network on it. Errors: those of plans, NaN scores. */
sdlf_status single_picture_run(single_picture *single_picture, sdlf_model *model, sdlf_calculator *calculator);

/* Compute its maps for `class` (-1: see above), from the output of `layer` (NULL: the last convolution's); `model` is
 * another copy, which is changed (grad_cam.h). Without a requested layer, a map that this network does not support is
 * noted in cam_missing, and is not an error. */
sdlf_status single_picture_explain(single_picture *single_picture, sdlf_model *model, sdlf_calculator *calculator,
                                   const char *layer, int class);

void single_picture_release(single_picture *single_picture);

#endif
