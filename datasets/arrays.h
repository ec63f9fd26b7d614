/* SPDX-License-Identifier: MIT */
/* Data sets that are arrays in NumPy's format, in any container file. */
#ifndef SDLF_DATASETS_ARRAYS_H
#define SDLF_DATASETS_ARRAYS_H

#include <sdlf/dataset.h>

#include "framework/formats/npy.h"

/* Reads the samples from an array whose elements have not been read yet: images (N,H,W), (N,H,W,C) or (N,C,H,W) with 1
 * to 4 channels (channels last if both fit), or rows of numbers (N,F). If that disagrees with options->sample and the
 * array's shape is (N, options->sample), ignoring leading ones, the latter wins. Bytes stay bytes; other numbers become
 * float32 and must be finite. options->outline: only the shape. Errors: SDLF_ERROR_FORMAT with the file's name, and
 * read errors. */
sdlf_status arrays_take_samples(sdlf_dataset *dataset, npy_file *file, const sdlf_dataset_options *options);

/* Reads the labels: (N) or (N,1), integers from 0, one per sample; or (N,H,W), one per pixel, where -1 (in bytes: 255)
 * marks an ignored pixel. Raises class_count to cover them. */
sdlf_status arrays_take_labels(sdlf_dataset *dataset, npy_file *file);

/* Reads float targets (N) or (N,...), one row per sample; class_count becomes the number of targets in a row. */
sdlf_status arrays_take_targets(sdlf_dataset *dataset, npy_file *file);

/* Raises class_count to cover further labels, which are not kept. */
sdlf_status arrays_count_classes(sdlf_dataset *dataset, npy_file *file);

/* Splits "A,B" into one block, *first, which the caller frees. False: no comma with text on both sides. */
bool arrays_split(char **first, char **second, const char *argument);

#endif
