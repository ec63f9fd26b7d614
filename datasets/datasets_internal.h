/* SPDX-License-Identifier: MIT */
/* What the data sets share among themselves: their class tables, for the registry, and the normalisation of grey
 * pictures of handwriting. */
#ifndef SDLF_DATASETS_INTERNAL_H
#define SDLF_DATASETS_INTERNAL_H

#include <sdlf/dataset.h>

#define SDLF_DATASET(class) extern const sdlf_dataset_class class;
#include "datasets/list.h"
#undef SDLF_DATASET

/* Normalise each channel, dimension 1, by its own mean and deviation over the samples, uint8 or float32, which are
 * there; more channels than SDLF_NORMALIZED_CHANNELS, and sequences (N,T,F), all by one. */
void sdlf_dataset_measure(sdlf_dataset *dataset);

/* Sums over bytes, exact, so that no order of adding matters: channel by channel. Zeroed: of none. */
typedef struct dataset_sums {
    uint64_t sum[SDLF_NORMALIZED_CHANNELS], squares[SDLF_NORMALIZED_CHANNELS];
    int64_t count; /* of each channel */
    int channels;
} dataset_sums;
/* Of one sample more: `channels` planes of `area` bytes. */
void sdlf_dataset_add_sums(dataset_sums *sums, const uint8_t *sample, int channels, int64_t area);
void sdlf_dataset_join_sums(dataset_sums *sums, const dataset_sums *more);
/* Normalise each channel by what the sums say. */
void sdlf_dataset_measure_sums(sdlf_dataset *dataset, const dataset_sums *sums);

/* Is what has this name, of `length` bytes, for testing, where a set does not say? FNV-1a (64 bits) of it, modulo 5, is
 * 0 there: other samples may come and go. */
bool sdlf_dataset_is_for_test(const char *name, size_t length);

/* Keep the samples of that half, with their labels: sample i is for testing where sdlf_dataset_is_for_test says so of its
 * number, 8 bytes with the lowest first. Errors: SDLF_ERROR_FORMAT where there are none. */
sdlf_status sdlf_dataset_hold_out(sdlf_dataset *dataset, sdlf_split split);

/* Does ",all" stand at the end, for which nothing is held out? Then it is cut off. */
bool sdlf_dataset_takes_all(char *argument);

/* "KIND (PLACE)". Errors: SDLF_ERROR_MEMORY. */
sdlf_status sdlf_dataset_name(sdlf_dataset *dataset, const char *kind, const char *place);

/* Mean and deviation of a pixel over MNIST's training images (0.1307 and 0.3081 of full white). Constants, not measured
 * from the data that is read: a network that was trained on one such set then sees another in the same units. */
#define SDLF_HANDWRITING_MEAN  33.3f
#define SDLF_HANDWRITING_SCALE (1.0f / 78.6f)

#endif
