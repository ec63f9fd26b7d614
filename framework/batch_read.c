/* SPDX-License-Identifier: MIT */
/* Contents of a batch: samples and labels from memory or read on several threads, and gathered. See batch_maker.h. */
#include "framework/batch_maker.h"

#include <pthread.h>
#include <string.h>

#include "framework/classifier.h"
#include "framework/operations/changed_pictures.h"
#include "framework/parallel.h"
#include "framework/saved_error.h"
#include "framework/warp_labels.h"
#include "framework/warp_part.h"

uint64_t sdlf_batch_maker_seed(const sdlf_batch_maker *maker)
{
    return maker->options.augment.seed != 0 ? maker->options.augment.seed : maker->options.seed;
}

typedef struct reading {
    const sdlf_batch_maker *maker;
    sdlf_batch *batch;
    pthread_mutex_t lock; /* guards the members below: helpers in use; the first failure, in batch order */
    int taken;
    int64_t failed;
    sdlf_saved_error error;
} reading;

/* Reads sample `image`; if it is not in memory, at least the part that the gather needs. */
static sdlf_status read_from(const sdlf_batch_maker *maker, int32_t image, uint8_t *to, size_t bytes)
{
    const sdlf_dataset *dataset = maker->dataset;
    sdlf_sample_part part;
    if (dataset->read == NULL) {
        memcpy(to, (const char *)dataset->samples.data + (size_t)image * bytes, bytes);
        return SDLF_OK;
    }
    sdlf_shape sample = sdlf_shape_without(dataset->samples.shape, 0);
    if (dataset->read_part == NULL || maker->unchanged != NULL ||
        !sdlf_warp_part(&part, sample, &maker->gather.gather.augment, image, maker->epoch))
        return dataset->read(dataset->read_context, image, to);
    return dataset->read_part(dataset->read_context, image, &part, to);
}

static void note_failure(reading *r, int64_t i, sdlf_status status)
{
    if (status == SDLF_OK) return;
    pthread_mutex_lock(&r->lock);
    if (r->error.status == SDLF_OK || i < r->failed) {
        r->failed = i;
        sdlf_save_error(&r->error, status);
    }
    pthread_mutex_unlock(&r->lock);
}

static sdlf_status gather(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_status status = calculator->type->kernel[SDLF_GATHER_BATCH].run(calculator, operation);
    return status == SDLF_OK ? calculator->type->synchronize(calculator) : status;
}

/* Gathers one sample that was read, on a calculator that no other thread uses. */
static sdlf_status gather_sample(reading *r, int64_t i)
{
    sdlf_operation one = r->maker->gather;
    one.in[1] = sdlf_tensor_narrow(one.in[1], 0, i, 1);
    one.out[0] = sdlf_tensor_narrow(one.out[0], 0, i, 1);
    pthread_mutex_lock(&r->lock);
    sdlf_calculator *calculator = r->maker->helpers[r->taken++]; /* there are as many as threads */
    pthread_mutex_unlock(&r->lock);
    sdlf_status status = gather(calculator, &one);
    pthread_mutex_lock(&r->lock);
    r->maker->helpers[--r->taken] = calculator;
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* Reads a sample that is not in memory, or must be changed first; gathers it, if samples are gathered singly. */
static sdlf_status read_sample(reading *r, int64_t i)
{
    const sdlf_batch_maker *maker = r->maker;
    sdlf_shape sample = sdlf_shape_without(maker->read.shape, 0);
    size_t bytes = (size_t)(sdlf_tensor_bytes(&maker->read) / maker->read.shape.dim[0]), at = (size_t)i * bytes;
    uint8_t *to = (uint8_t *)maker->read.data + at;
    sdlf_status status = read_from(maker, maker->images[i], to, bytes);
    if (status == SDLF_OK && maker->unchanged != NULL)
        sdlf_auto_augment_picture(to, maker->unchanged + at, sample, &maker->options.automatic,
                                  sdlf_batch_maker_seed(maker), maker->images[i], maker->epoch);
    return status == SDLF_OK && maker->helpers != NULL ? gather_sample(r, i) : status;
}

/* Copies the labels of the batch's i-th sample, moved like its pixels. */
static sdlf_status take_labels(const sdlf_batch_maker *maker, int64_t i, sdlf_batch *batch)
{
    const sdlf_dataset *dataset = maker->dataset;
    int32_t image = maker->images[i];
    sdlf_shape sample = sdlf_shape_without(dataset->labels.shape, 0);
    size_t bytes = (size_t)sdlf_shape_count(sample) * sdlf_dtype_size(dataset->labels.dtype);
    char *to = (char *)batch->labels.data + (size_t)i * bytes;
    const char *from = (const char *)dataset->labels.data + (size_t)image * bytes;
    if (dataset->labels.data == NULL) {
        char *read = (char *)maker->labels.data + (size_t)i * bytes;
        sdlf_status status = sdlf_dataset_read_labels(dataset, image, read);
        if (status != SDLF_OK) return status;
        from = read;
    }
    if (sdlf_dataset_has_pixel_labels(dataset))
        sdlf_warp_labels((int32_t *)(void *)to, (const int32_t *)(const void *)from, sample,
                         &maker->gather.gather.augment, image, maker->epoch);
    else
        memcpy(to, from, bytes);
    return SDLF_OK;
}

static void read_item(void *context, int64_t i)
{
    reading *r = context;
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_present(&r->maker->read)) status = read_sample(r, i);
    if (status == SDLF_OK && r->maker->dataset->labels.data == NULL) status = take_labels(r->maker, i, r->batch);
    note_failure(r, i, status);
}

sdlf_status sdlf_batch_read(const sdlf_batch_maker *maker, int64_t count, sdlf_batch *batch)
{
    const sdlf_dataset *dataset = maker->dataset;
    reading r = {.maker = maker, .batch = batch, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (sdlf_tensor_present(&maker->read) || dataset->labels.data == NULL)
        parallel_for(count, dataset->readers > 0 ? dataset->readers : 1, read_item, &r);
    pthread_mutex_destroy(&r.lock);
    if (r.error.status != SDLF_OK) return sdlf_restore_error(&r.error);
    for (int64_t i = 0; dataset->labels.data != NULL && i < count; i++) (void)take_labels(maker, i, batch);
    return maker->helpers == NULL ? gather(maker->calculator, &maker->gather) : SDLF_OK;
}
