/* SPDX-License-Identifier: MIT */
/* Preprocessing: converts an image to a sample as the network was trained on. The model's file (sdlf_normalization) or
 * the command line specifies how; if neither does, the image is rejected, since a network's output for a sample that
 * was preprocessed differently is meaningless. */
#ifndef SDLF_APPS_PICTURES_PREPROCESS_H
#define SDLF_APPS_PICTURES_PREPROCESS_H

#include <sdlf/image.h>
#include <sdlf/model.h>
#include <sdlf/shape.h>

#include "apps/arguments/arguments.h"

typedef enum preprocess_kind {
    PREPROCESS_AUTO = 0, /* as the file says */
    PREPROCESS_IMAGENET, /* 0 to 1, then ImageNet's mean and deviation: as torchvision's networks expect */
    PREPROCESS_CIFAR10,  /* 0 to 1, then CIFAR-10's */
    PREPROCESS_TF,       /* -1 to 1: x / 127.5 - 1 */
    PREPROCESS_UNIT,     /* 0 to 1 */
    PREPROCESS_NONE,     /* 0 to 255 */
} preprocess_kind;

typedef enum preprocess_fit {
    PREPROCESS_FIT_AUTO = 0,
    PREPROCESS_CROP,    /* the middle, in the network's proportions */
    PREPROCESS_STRETCH, /* all of it, in the network's proportions */
    PREPROCESS_WHOLE,   /* all of it in its own proportions, centred on black */
    PREPROCESS_DIGIT,   /* picture.h */
} preprocess_fit;

typedef enum preprocess_layout { PREPROCESS_LAYOUT_AUTO = 0, PREPROCESS_NCHW, PREPROCESS_NHWC } preprocess_layout;
typedef enum preprocess_order { PREPROCESS_RGB = 0, PREPROCESS_BGR } preprocess_order;

typedef struct preprocess_settings {
    int kind, fit, invert, layout, order; /* of the enums above; invert: a picture_choice */
    double crop;                          /* the fraction of the shorter side that is kept */
    const char *mean, *std;               /* text: comma-separated numbers; NULL: those of `kind` */
    /* filled by preprocess_complete: */
    double mean_of[3], std_of[3]; /* of samples from 0 to 1 */
    bool as_in_training;          /* they are the file's */
} preprocess_settings;

/* --preprocess, --fit and the others, in a struct preprocess_settings. */
extern const argument preprocess_arguments[];

/* Check that --mean and --std are numbers, before any long work. Errors: SDLF_ERROR_ARGUMENT. */
sdlf_status preprocess_check(const preprocess_settings *settings);

/* For inputs that are not images, such as `path`: SDLF_ERROR_ARGUMENT if one of these options is given. */
sdlf_status preprocess_refuse(const arguments *given, const char *path);

/* Resolve "auto"; `own` is the normalisation in the model's file. Errors: SDLF_ERROR_ARGUMENT if neither the model at
 * `path` nor the settings specify how samples are normalised: the message names the options. */
sdlf_status preprocess_complete(preprocess_settings *settings, const sdlf_normalization *own, const char *path);

/* The same for samples of a data set with that number of channels, 0 to 255; not PREPROCESS_AUTO. Errors: SDLF_ERROR_ARGUMENT
 * if there is not one mean for each channel. */
sdlf_status preprocess_normalization(sdlf_channel_normalization *channels, preprocess_kind kind, int64_t count);
extern const char *const preprocess_kind_names[];

/* The interpretation of a sample's shape: (C,H,W), or (H,W,C) if not `first`, with C = 1 or 3. */
typedef struct preprocess_frame {
    int channels, rows, columns;
    bool first;
} preprocess_frame;

/* Errors: SDLF_ERROR_SHAPE for any other shape. */
sdlf_status preprocess_frame_of(preprocess_frame *frame, sdlf_shape shape, const preprocess_settings *settings);

/* Read image `index` of the file at `path` as one sample into `sample`. `pixels`, of the same size,
 * receives the values before normalisation: (C,H,W), 0 to 255. Errors: those of image_read,
 * SDLF_ERROR_MEMORY. */
sdlf_status preprocess_read(float *sample, float *pixels, preprocess_frame frame, const char *path, int64_t index,
                            const preprocess_settings *settings);
/* The same for a decoded image. */
sdlf_status preprocess_image(float *sample, float *pixels, preprocess_frame frame, const sdlf_image *picture,
                             const preprocess_settings *settings);

#endif
