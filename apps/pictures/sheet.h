/* SPDX-License-Identifier: MIT */
/* Images drawn pixel by pixel: a sheet of samples, and a confusion matrix. */
#ifndef SDLF_APPS_PICTURES_SHEET_H
#define SDLF_APPS_PICTURES_SHEET_H

#include <sdlf/dataset.h>

#include "apps/pictures/png.h"

/* True if a sample is an image, (C,H,W) with 1 or 3 channels, of a size that can be drawn. */
bool sheet_shows(sdlf_shape sample);

/* Draw `count` consecutive samples (C,H,W), 0 to 255, side by side in rows of eight. Errors: those of
 * png_write. */
sdlf_status sheet_write(png_picture *picture, const unsigned char *samples, sdlf_shape sample, int count);

/* Draw a row for each true class and a column for each predicted one: the darker, the larger the share of the row. */
sdlf_status sheet_write_confusion(png_picture *picture, const int64_t *confusion, int classes);

#endif
