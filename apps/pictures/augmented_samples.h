/* SPDX-License-Identifier: MIT */
/* Images of a data set's samples as a network receives them. */
#ifndef SDLF_APPS_PICTURES_AUGMENTED_SAMPLES_H
#define SDLF_APPS_PICTURES_AUGMENTED_SAMPLES_H

#include <sdlf/dataset.h>

#include "apps/pictures/png.h"

/* How many of `wanted` samples of that shape fit on a sheet; 0: they cannot be drawn. */
int augmented_count(const sdlf_dataset *data, int wanted);

/* A sheet of the first `count` samples that a loader with these options returns in `epoch`, with normalisation undone:
 * bytes unchanged, floats scaled from their minimum to their maximum. Errors: those of the loader and of png_write. */
sdlf_status augmented_sheet(png_picture *picture, const sdlf_dataset *data, sdlf_loader_options options, int64_t epoch,
                            int count);

/* Read sample `index` as a loader returns it into `values`, and as it is drawn into `pixels`: one float and one byte
 * for each element. Errors: those of the loader. */
sdlf_status augmented_read(float *values, unsigned char *pixels, const sdlf_dataset *data, int64_t index);

#endif
