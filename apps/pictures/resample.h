/* Pictures at another size: each new pixel is the mean of what it covers, weighted by a triangle, so that shrinking loses no
 * lines and enlarging is smooth. */
#ifndef SDLF_APPS_PICTURES_RESAMPLE_H
#define SDLF_APPS_PICTURES_RESAMPLE_H

#include "apps/pictures/image.h"

/* The part of the picture from (top, left), height x width large, real numbers of pixels, as floats from 0 to 255 in `out`
 * (channels, rows, columns). Grey pictures are repeated for three channels; three become grey for one. Takes time linear in the pixels of the
 * part and of the result. */
void resample(float *out, int rows, int columns, int channels, const image *picture, double top, double left,
              double height, double width);

#endif
