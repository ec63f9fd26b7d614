/* SPDX-License-Identifier: MIT */
/* Declarations shared by the data sets: their class tables, for the registry, and the normalisation of grey images of
 * handwriting. */
#ifndef SDLF_DATASETS_INTERNAL_H
#define SDLF_DATASETS_INTERNAL_H

#include <sdlf/dataset.h>

#define SDLF_DATASET(class) extern const sdlf_dataset_class class;
#include "datasets/list.h"
#undef SDLF_DATASET

/* Normalise each channel (dimension 1) by its mean and deviation over the samples, uint8 or float32, which must be in
 * memory. More than SDLF_NORMALIZED_CHANNELS channels, and sequences (N,T,F), share one mean and deviation. */
void sdlf_dataset_measure(sdlf_dataset *dataset);

/* Exact integer sums per channel, so that the order of addition does not matter. Zeroed: no samples yet. */
typedef struct dataset_sums {
    uint64_t sum[SDLF_NORMALIZED_CHANNELS], squares[SDLF_NORMALIZED_CHANNELS];
    int64_t count; /* of each channel */
    int channels;
} dataset_sums;
/* Add one sample: `channels` planes of `area` bytes. */
void sdlf_dataset_add_sums(dataset_sums *sums, const uint8_t *sample, int channels, int64_t area);
void sdlf_dataset_join_sums(dataset_sums *sums, const dataset_sums *more);
/* Normalise each channel by the mean and deviation that the sums give. */
void sdlf_dataset_measure_sums(sdlf_dataset *dataset, const dataset_sums *sums);

/* True if the item with this name of `length` bytes is held out for testing, for sets without a split of their own: its
 * FNV-1a hash (64 bits) modulo 5 is 0. Adding or removing other samples does not change the answer. */
bool sdlf_dataset_is_for_test(const char *name, size_t length);

/* Keep the samples of that half, with their labels. Sample i is for testing if sdlf_dataset_is_for_test is true for i as
 * 8 little-endian bytes. Errors: SDLF_ERROR_FORMAT if none is left. */
sdlf_status sdlf_dataset_hold_out(sdlf_dataset *dataset, sdlf_split split);

/* True if the argument ends in ",all", which holds nothing out; the ending is then removed. */
bool sdlf_dataset_takes_all(char *argument);

/* Set the name to "KIND (PLACE)". Errors: SDLF_ERROR_MEMORY. */
sdlf_status sdlf_dataset_name(sdlf_dataset *dataset, const char *kind, const char *place);

/* Mean and deviation of a pixel over MNIST's training images (0.1307 and 0.3081 of full white). They are constants, not
 * measured from the data, so that a network trained on one such set sees another in the same units. */
#define SDLF_HANDWRITING_MEAN  33.3f
#define SDLF_HANDWRITING_SCALE (1.0f / 78.6f)

#endif
