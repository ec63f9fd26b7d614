/* SPDX-License-Identifier: MIT */
/* Batch maker: the samples and labels of any batch of any epoch, in the caller's memory.
 *
 * A batch depends only on (data set, options, epoch, index). The samples are gathered, augmented and normalised by a
 * gather_batch operation on the maker's own calculators, with one thread each (sdlf_calculator_class_default): one for
 * each of the data set's readers, which gather each sample as soon as it is read. If requested, samples are mixed in
 * pairs (mixing.h). Labels are copied. */
#ifndef SDLF_FRAMEWORK_BATCH_MAKER_H
#define SDLF_FRAMEWORK_BATCH_MAKER_H

#include <sdlf/dataset.h>

typedef struct sdlf_batch_maker {
    const sdlf_dataset *dataset; /* borrowed */
    sdlf_loader_options options;
    int64_t batches; /* per epoch; the last may be short */
    sdlf_calculator *calculator;
    sdlf_calculator *
        *helpers; /* of the readers, which gather what they read; owned; NULL: whole batches are gathered at once */
    int helper_count;
    sdlf_operation gather; /* bound except for index and y */
    void *workspace;       /* of the gather */
    sdlf_tensor read;      /* samples of a batch, if they are not in memory until they are read; owned */
    sdlf_tensor labels;    /* likewise for labels; owned */
    int32_t *places;       /* 0, 1, ...: their indices in `read`; owned */
    uint8_t *unchanged;    /* scratch space per sample while TrivialAugment or RandAugment changes it; owned */
    const int32_t
        *images; /* the indices of the samples that are gathered for a batch: a part of `order`, or `paired` */
    /* With ranks that mix: their own samples and those that these are mixed with; owned; NULL: not needed. */
    int32_t *paired;
    int32_t *order; /* of the epoch `epoch`; owned */
    uint64_t *keys; /* scratch space of the shuffle; NULL without one */
    int64_t epoch;  /* -1: none yet; the gather reads it */
    bool pageable;  /* options.calculator had no memory for batches; they are in ordinary memory */
} sdlf_batch_maker;

/* Checks the options and allocates all memory that will be needed. The maker must not be moved afterwards. Errors:
 * SDLF_ERROR_ARGUMENT, SDLF_ERROR_MEMORY, and what the calculator and the operation's check report. After a failure
 * there is nothing to release. */
sdlf_status sdlf_batch_maker_init(sdlf_batch_maker *maker, const sdlf_dataset *dataset,
                                  const sdlf_loader_options *options);
void sdlf_batch_maker_release(sdlf_batch_maker *maker);

/* Allocates full batches, in memory of options.calculator's queues; if that fails, all of them in ordinary memory.
 * Release each with sdlf_batch_release, before the maker. After a failure there is nothing to release. */
sdlf_status sdlf_batches_create(sdlf_batch *batch, int count, sdlf_batch_maker *maker);
void sdlf_batch_release(sdlf_batch *batch, const sdlf_batch_maker *maker);

/* The bytes of the maker and of that many batches. */
int64_t sdlf_batch_maker_memory(const sdlf_batch_maker *maker, int batches);

/* Reads samples and labels of maker->images, to which the gather is bound: the first part of it (batch_read.c). */
sdlf_status sdlf_batch_read(const sdlf_batch_maker *maker, int64_t count, sdlf_batch *batch);

/* The seed of augmentation and mixing. */
uint64_t sdlf_batch_maker_seed(const sdlf_batch_maker *maker);

/* Makes batch `index` of epoch `epoch` in the memory of `batch`, and sets its shapes and count. */
sdlf_status sdlf_batch_maker_make(sdlf_batch_maker *maker, int64_t epoch, int64_t index, sdlf_batch *batch);

#endif
