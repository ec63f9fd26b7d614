/* SPDX-License-Identifier: MIT */
/* Samples of a data set as a network gets them, drawn. */
#ifndef SDLF_APPS_PICTURES_AUGMENTED_SAMPLES_H
#define SDLF_APPS_PICTURES_AUGMENTED_SAMPLES_H

#include <sdlf/dataset.h>

#include "apps/pictures/png.h"

/* How many samples of that shape, of `wanted`, a sheet has room for; 0: they cannot be drawn. */
int augmented_count(const sdlf_dataset *data, int wanted);

/* A sheet of the first `count` samples that a loader with these options gives in `epoch`, the normalisation undone:
 * bytes as they are, floats from their least to their greatest. Errors: those of the loader and of png_write. */
sdlf_status augmented_sheet(png_picture *picture, const sdlf_dataset *data, sdlf_loader_options options, int64_t epoch,
                            int count);

/* Sample `index` as a loader gives it, into `values`, and what of it is drawn, into `pixels`: a number and a byte for
 * each element. Errors: those of the loader. */
sdlf_status augmented_read(float *values, unsigned char *pixels, const sdlf_dataset *data, int64_t index);

#endif
