/* SPDX-License-Identifier: MIT */
/* A picture on its way into a network: brought to the size, the polarity and the place of what the network was trained
 * on.
 *
 * Networks for handwritten digits learn light ink on a black ground, the digit's longer side taking 20 of 28 pixels,
 * its centre of mass in the middle. A photograph of a pencil on paper is none of this until picture_prepare has seen
 * it. */
#ifndef SDLF_APPS_PICTURES_PICTURE_H
#define SDLF_APPS_PICTURES_PICTURE_H

#include <sdlf/shape.h>

#include <sdlf/image.h>

typedef enum picture_choice { PICTURE_AUTO = 0, PICTURE_YES, PICTURE_NO } picture_choice;
extern const char *const picture_choice_names[];

typedef struct picture_options {
    picture_choice invert; /* black becomes white; auto: where the border is light, and the network takes grey */
    picture_choice fit;    /* cut the digit out, scale and centre it; auto: where the size is not the network's own */
} picture_options;

/* Turn `source` into one sample (C,H,W), C = 1 or 3, as floats from 0 to 255 in `sample` (room for the shape's count).
 * Without fitting, the whole image is scaled to the largest that fits, in the middle of black. Errors: SDLF_ERROR_SHAPE
 * (a network that takes no pictures), SDLF_ERROR_MEMORY. */
sdlf_status picture_prepare(float *sample, sdlf_shape shape, const sdlf_image *source, const picture_options *options);

#endif
