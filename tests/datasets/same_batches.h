/* SPDX-License-Identifier: MIT */
/* Comparing a data set in memory with one whose samples are read on demand. */
#ifndef SDLF_TESTS_DATASETS_SAME_BATCHES_H
#define SDLF_TESTS_DATASETS_SAME_BATCHES_H

#include "datasets/folder_pictures.h"

enum { BATCH = 7 };

/* Check that loaders of both give the same batches over two epochs. */
static inline void check_same(const sdlf_dataset *held, const sdlf_dataset *streamed)
{
    sdlf_loader *loader[2] = {NULL, NULL};
    const sdlf_loader_options options = {
        .batch = BATCH, .shuffle = true, .seed = 3, .augment = {.flip = true, .crop = 1, .resized_crop = 0.2f}};
    CHECK(sdlf_shape_equal(held->samples.shape, streamed->samples.shape));
    CHECK(memcmp(&held->channels, &streamed->channels, sizeof held->channels) == 0);
    if (CHECK_OK(sdlf_loader_create(&loader[0], held, &options)) &&
        CHECK_OK(sdlf_loader_create(&loader[1], streamed, &options))) {
        for (int i = 0; i < 2 * (int)sdlf_loader_batches(loader[0]); i++) {
            sdlf_batch batch[2];
            for (int k = 0; k < 2; k++) {
                if (i == sdlf_loader_batches(loader[0])) CHECK_OK(sdlf_loader_seek(loader[k], 1, 0));
                if (!CHECK_OK(sdlf_loader_next(loader[k], &batch[k]))) goto done;
            }
            CHECK(batch[0].count == batch[1].count && batch[0].count > 0);
            CHECK(memcmp(batch[0].samples.data, batch[1].samples.data, (size_t)sdlf_tensor_bytes(&batch[0].samples)) ==
                  0);
            CHECK(memcmp(batch[0].labels.data, batch[1].labels.data, (size_t)sdlf_tensor_bytes(&batch[0].labels)) == 0);
        }
    }
done:
    for (int k = 0; k < 2; k++) sdlf_loader_free(loader[k]);
}

#endif
