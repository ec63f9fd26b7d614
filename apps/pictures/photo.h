/* Photographs as networks for ImageNet want them: scaled, cut, normalised, in the network's layout. */
#ifndef SDLF_APPS_PICTURES_PHOTO_H
#define SDLF_APPS_PICTURES_PHOTO_H

#include <sdlf/model.h>
#include <sdlf/shape.h>

#include "apps/arguments/arguments.h"

typedef enum photo_fit { PHOTO_CROP = 0, PHOTO_STRETCH, PHOTO_FIT_AUTO } photo_fit;
typedef enum photo_layout { PHOTO_AUTO = 0, PHOTO_NCHW, PHOTO_NHWC } photo_layout;

typedef struct photo_settings {
    int fit, layout, order, normalize;
    double crop;            /* of the shorter side, the part that is kept */
    const char *mean, *std; /* text: numbers with commas; NULL: what `normalize` says */
    /* filled by photo_complete: */
    double mean_of[3], std_of[3];
} photo_settings;

extern const argument photo_arguments[];

/* Read --mean and --std, and settle what "auto" stands for; `own` is the model's normalization, or NULL. Errors:
 * SDLF_ERROR_ARGUMENT. */
sdlf_status photo_complete(photo_settings *settings, const sdlf_normalization *own);

/* Read the picture at `path` as one sample of `shape`, (C,H,W) or (H,W,C) with C = 1 or 3, into `sample`. */
sdlf_status photo_read(float *sample, sdlf_shape shape, const char *path, const photo_settings *settings);

#endif
