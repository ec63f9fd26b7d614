/* SPDX-License-Identifier: MIT */
/* A synthetic data set, a loader of it, and all batches of its first epochs to compare with. */
#ifndef SDLF_TESTS_LOADER_EPOCHS_H
#define SDLF_TESTS_LOADER_EPOCHS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "testing.h"

enum { SAMPLES = 103, CHANNELS = 2, HEIGHT = 9, WIDTH = 7, PIXELS = CHANNELS * HEIGHT * WIDTH };

static unsigned char pixels[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];
static char name[] = "made up";

/* Images that all differ, on a background of 0. */
static inline sdlf_dataset make_dataset(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = i % 10;
        for (int j = 0; j < PIXELS; j++) pixels[i * PIXELS + j] = (unsigned char)(i * 31 + j * j * 7 + j);
    }
    return (sdlf_dataset){
        .name = name,
        .samples = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(SAMPLES, CHANNELS, HEIGHT, WIDTH), pixels),
        .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(SAMPLES), labels),
        .class_count = 10,
        .mean = 33.3f,
        .scale = 1 / 78.6f,
    };
}

static inline sdlf_loader *make_loader(const sdlf_dataset *dataset, sdlf_loader_options options)
{
    sdlf_loader *loader = NULL;
    CHECK_OK(sdlf_loader_create(&loader, dataset, &options));
    return loader;
}

/* True if element `at` of the batch is sample `i` of the data set, normalised. */
static inline bool holds(const sdlf_batch *batch, int64_t at, int32_t i)
{
    const float *x = (const float *)batch->samples.data + at * PIXELS;
    bool same = ((const int32_t *)batch->labels.data)[at] == labels[i];
    for (int j = 0; j < PIXELS; j++) {
        same = same && fabsf(x[j] - ((float)pixels[i * PIXELS + j] - 33.3f) / 78.6f) < 1e-6f;
    }
    return same;
}

/* ---- whole batches, kept for bitwise comparison ---- */

enum { BATCH = 10, BATCHES = 11, EPOCHS = 3 };

typedef struct kept {
    int64_t count;
    float samples[BATCH * PIXELS];
    int32_t labels[BATCH];
} kept;

static kept epochs_kept[EPOCHS][BATCHES];

static const sdlf_augmentation all_augmentation = {.shift = 1.5f, .rotate = 15, .scale = 0.1f, .elastic = 1};

static inline bool is_kept(const sdlf_batch *batch, const kept *k)
{
    size_t count = (size_t)k->count;
    return batch->count == k->count && memcmp(batch->samples.data, k->samples, count * PIXELS * sizeof(float)) == 0 &&
           memcmp(batch->labels.data, k->labels, count * sizeof(int32_t)) == 0;
}

/* Keep all batches of the first epochs, loaded sequentially without threads. */
static inline void make_epochs(const sdlf_dataset *dataset, sdlf_loader_options options)
{
    options.no_prefetch = true;
    options.batch = BATCH;
    sdlf_loader *loader = make_loader(dataset, options);
    if (loader == NULL) return;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        CHECK_OK(sdlf_loader_seek(loader, epoch, 0));
        for (int b = 0; b < BATCHES; b++) {
            sdlf_batch batch;
            kept *k = &epochs_kept[epoch][b];
            if (!CHECK_OK(sdlf_loader_next(loader, &batch))) break;
            k->count = batch.count;
            memcpy(k->samples, batch.samples.data, (size_t)batch.count * PIXELS * sizeof(float));
            memcpy(k->labels, batch.labels.data, (size_t)batch.count * sizeof(int32_t));
        }
    }
    sdlf_loader_free(loader);
}

#endif
