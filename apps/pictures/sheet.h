/* SPDX-License-Identifier: MIT */
/* Pictures that are drawn into pixels: a sheet of samples, and a confusion matrix. */
#ifndef SDLF_APPS_PICTURES_SHEET_H
#define SDLF_APPS_PICTURES_SHEET_H

#include <sdlf/dataset.h>

#include "apps/pictures/png.h"

/* Is a sample a picture: (C,H,W) with 1 or 3 channels, and of a size that can be drawn? */
bool sheet_shows(sdlf_shape sample);

/* `count` samples (C,H,W), one behind the other, 0 to 255, side by side in rows of eight. Errors: those of
 * png_write. */
sdlf_status sheet_write(png_picture *picture, const unsigned char *samples, sdlf_shape sample, int count);

/* A row for each true class, a column for each that it was taken for: the darker, the larger the part of the row. */
sdlf_status sheet_write_confusion(png_picture *picture, const int64_t *confusion, int classes);

#endif
