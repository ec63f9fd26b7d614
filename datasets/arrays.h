/* SPDX-License-Identifier: MIT */
/* Data sets that are arrays in NumPy's format, whatever file they are in. */
#ifndef SDLF_DATASETS_ARRAYS_H
#define SDLF_DATASETS_ARRAYS_H

#include <sdlf/dataset.h>

#include "framework/formats/npy.h"

/* The samples, of an array whose elements are still to come: images (N,H,W), (N,H,W,C) or (N,C,H,W) with 1 to 4
 * channels, of which the last is taken where both could be meant, or rows of numbers (N,F); or, where that is not what
 * options->sample says and the array is (N, that), leading ones aside, so. Bytes stay bytes; other numbers become
 * float32, and must be finite. options->outline: only the shape. Errors: SDLF_ERROR_FORMAT with the file's name, and
 * those of reading. */
sdlf_status arrays_take_samples(sdlf_dataset *dataset, npy_file *file, const sdlf_dataset_options *options);

/* The labels (N) or (N,1), whole numbers from 0, one for each sample; or of pictures' pixels (N,H,W), of which -1, and
 * of bytes 255, do not count; raises class_count to what they need. */
sdlf_status arrays_take_labels(sdlf_dataset *dataset, npy_file *file);

/* Float targets (N) or (N,...) of any numbers, one row for each sample; class_count becomes their number in a row. */
sdlf_status arrays_take_targets(sdlf_dataset *dataset, npy_file *file);

/* Raises class_count to what other labels, which are not kept, need. */
sdlf_status arrays_count_classes(sdlf_dataset *dataset, npy_file *file);

/* "A,B" split in one block, which the caller frees: *first; false: there is no comma with something on both sides. */
bool arrays_split(char **first, char **second, const char *argument);

#endif
