/* SPDX-License-Identifier: MIT */
/* Image preparation: brings an image to the size, polarity and position of the images that the network was trained
 * on.
 *
 * Networks for handwritten digits learn light ink on a black ground, with the digit's longer side taking 20 of 28
 * pixels and its centre of mass in the middle. picture_prepare brings a photograph of pencil on paper to this
 * form. */
#ifndef SDLF_APPS_PICTURES_PICTURE_H
#define SDLF_APPS_PICTURES_PICTURE_H

#include <sdlf/shape.h>

#include <sdlf/image.h>

typedef enum picture_choice { PICTURE_AUTO = 0, PICTURE_YES, PICTURE_NO } picture_choice;
extern const char *const picture_choice_names[];

typedef struct picture_options {
    picture_choice invert; /* invert black and white; auto: if the border is light and the network takes grey */
    picture_choice fit;    /* crop, scale and centre the digit; auto: if the size is not the network's own */
} picture_options;

/* Convert `source` to one sample (C,H,W), C = 1 or 3, as floats from 0 to 255 in `sample` (as many as the shape has).
 * Without fitting, the whole image is scaled to the largest size that fits and centred on black. Errors:
 * SDLF_ERROR_SHAPE (a network that does not take images), SDLF_ERROR_MEMORY. */
sdlf_status picture_prepare(float *sample, sdlf_shape shape, const sdlf_image *source, const picture_options *options);

#endif
