/* SPDX-License-Identifier: MIT */
/* The arrays of a .npz archive as a data set. */
#ifndef SDLF_DATASETS_NPZ_H
#define SDLF_DATASETS_NPZ_H

#include <sdlf/dataset.h>

#include "framework/formats/zip.h"

/* Reads samples, labels and class_count from the arrays of these names (NULL: from the usual names). Errors:
 * SDLF_ERROR_FORMAT, SDLF_ERROR_IO, SDLF_ERROR_MEMORY. */
sdlf_status npz_take(sdlf_dataset *dataset, const zip_archive *archive, const char *images, const char *labels,
                     sdlf_split split, const sdlf_dataset_options *options);

#endif
