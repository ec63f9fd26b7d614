/* SPDX-License-Identifier: MIT */
/* The samples and labels of any batch of any epoch. */
#include "framework/batch_maker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "framework/auto_augment.h"
#include "framework/classifier.h"
#include "framework/mixing.h"
#include "framework/operations/augmented.h"

static sdlf_status open_calculator(sdlf_calculator **calculator)
{
    const char *usual = sdlf_calculator_class_default()->name;
    return sdlf_calculator_open(calculator, usual, &(sdlf_calculator_options){.threads = 1});
}

/* One calculator per reader, if the operation needs no workspace, of which there is only one. */
static sdlf_status open_helpers(sdlf_batch_maker *maker)
{
    sdlf_status status = SDLF_OK;
    int wanted = maker->dataset->readers > 0 ? maker->dataset->readers : 1;
    if (!sdlf_tensor_present(&maker->read) || maker->workspace != NULL) return SDLF_OK;
    maker->helpers = calloc((size_t)wanted, sizeof *maker->helpers);
    if (maker->helpers == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "loader: no memory");
    for (; status == SDLF_OK && maker->helper_count < wanted; maker->helper_count++)
        status = open_calculator(&maker->helpers[maker->helper_count]);
    return status;
}

/* A rank's samples of a batch. */
typedef struct batch_part {
    int64_t start, count; /* in the epoch's order; at least one */
    int64_t partners;     /* start of the samples that they are mixed with, in reverse order */
} batch_part;

static batch_part part_of(const sdlf_batch_maker *maker, int64_t index)
{
    const sdlf_loader_options *options = &maker->options;
    int64_t before = index * options->batch, all = maker->dataset->samples.shape.dim[0] - before, first = 0;
    if (all > options->batch) all = options->batch;
    int64_t count = all;
    if (options->ranks > 1) {
        int64_t end = all * (options->rank + 1) / options->ranks;
        first = all * options->rank / options->ranks;
        if (end == first && first == all) first--;
        count = end > first ? end - first : 1;
    }
    return (batch_part){.start = before + first, .count = count, .partners = before + all - first - count};
}

/* The indices of the samples to gather, and their number. Mixing pairs the first with the last, and so on inwards. */
static int64_t take_images(sdlf_batch_maker *maker, const batch_part *part)
{
    maker->images = maker->order + part->start;
    if (maker->paired == NULL) return part->count;
    memcpy(maker->paired, maker->images, (size_t)part->count * sizeof *maker->paired);
    memcpy(maker->paired + part->count, maker->order + part->partners, (size_t)part->count * sizeof *maker->paired);
    maker->images = maker->paired;
    return 2 * part->count;
}

/* The maximum number of samples gathered for a batch: a rank's part and, with mixing, their partners. */
static int64_t most_samples(const sdlf_batch_maker *maker)
{
    int64_t batch = maker->options.batch, ranks = maker->options.ranks;
    int64_t each = ranks > 1 ? (batch - 1) / ranks + 1 : batch;
    return maker->paired != NULL ? 2 * each : each;
}

/* The shape of the labels of that many samples. */
static sdlf_shape labels_shape(const sdlf_batch_maker *maker, int64_t count)
{
    sdlf_shape shape = maker->dataset->labels.shape;
    shape.dim[0] = count;
    return shape;
}

/* Binds the gather's index and output: the first `count` of maker->images, to memory at `samples`. */
static void bind(sdlf_batch_maker *maker, int64_t count, void *samples)
{
    sdlf_shape shape = maker->dataset->samples.shape;
    shape.dim[0] = count;
    sdlf_tensor numbers = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), (void *)maker->images);
    maker->gather.in[1] = numbers;
    if (sdlf_tensor_present(&maker->read)) { /* the gather picks from the samples that were read, in their order */
        maker->gather.in[0] = sdlf_tensor_view(maker->read.dtype, shape, maker->read.data);
        maker->gather.in[1] = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), maker->places);
        maker->gather.in[3] = numbers;
    }
    maker->gather.out[0] = sdlf_tensor_view(SDLF_FLOAT32, shape, samples);
}

/* Describes the operation, has it checked and accepted for full and for last batches, and allocates its workspace:
 * afterwards the kernel can be run directly. */
static sdlf_status prepare_gather(sdlf_batch_maker *maker)
{
    const sdlf_dataset *dataset = maker->dataset;
    maker->gather = (sdlf_operation){
        .kind = SDLF_GATHER_BATCH,
        .in = {dataset->samples, [2] = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), &maker->epoch)},
        .gather = {.mean = dataset->mean,
                   .scale = dataset->scale,
                   .channels = dataset->channels,
                   .augment = maker->options.augment},
    };
    if (maker->options.augment.seed == 0) maker->gather.gather.augment.seed = maker->options.seed;

    int64_t workspace = 0;
    for (int last = 0; last < 2; last++) {
        const batch_part part = part_of(maker, last ? maker->batches - 1 : 0);
        bind(maker, take_images(maker, &part), NULL);
        sdlf_status status = sdlf_operation_check(&maker->gather);
        if (status != SDLF_OK) return sdlf_fail_context(status, "loader");
        if (!sdlf_calculator_supports(maker->calculator, &maker->gather)) {
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "loader: calculator '%s' cannot gather samples of shape %s",
                             maker->calculator->type->name, sdlf_shape_print(dataset->samples.shape).text);
        }
        int64_t bytes = sdlf_calculator_workspace(maker->calculator, &maker->gather);
        if (bytes > workspace) workspace = bytes;
    }
    if (workspace == 0) return SDLF_OK;
    sdlf_status status = maker->calculator->type->allocate(maker->calculator, workspace, &maker->workspace);
    if (status != SDLF_OK) return sdlf_fail_context(status, "loader");
    maker->gather.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(workspace), maker->workspace);
    return SDLF_OK;
}

/* Allocates memory for the samples of a batch, if they are read. */
static sdlf_status prepare_reading(sdlf_batch_maker *maker)
{
    sdlf_status status = sdlf_auto_augment_complete(&maker->options.automatic, &maker->dataset->samples);
    if (status != SDLF_OK) return sdlf_fail_context(status, "loader");
    bool changed = sdlf_auto_augment_wanted(&maker->options.automatic);
    sdlf_shape shape = maker->dataset->samples.shape;
    shape.dim[0] = most_samples(maker);
    if (status == SDLF_OK && maker->dataset->labels.data == NULL)
        status =
            sdlf_tensor_create(&maker->labels, NULL, maker->dataset->labels.dtype, labels_shape(maker, shape.dim[0]));
    if (status != SDLF_OK || (maker->dataset->read == NULL && !changed)) return status;
    status = sdlf_tensor_create(&maker->read, NULL, maker->dataset->samples.dtype, shape);
    if (status != SDLF_OK) return sdlf_fail_context(status, "loader");
    maker->places = malloc((size_t)shape.dim[0] * sizeof *maker->places);
    if (changed) maker->unchanged = malloc((size_t)sdlf_tensor_bytes(&maker->read));
    if (maker->places == NULL || (changed && maker->unchanged == NULL))
        return sdlf_fail(SDLF_ERROR_MEMORY, "loader: no memory");
    for (int64_t i = 0; i < shape.dim[0]; i++) maker->places[i] = (int32_t)i;
    return SDLF_OK;
}

static sdlf_status allocate_order(sdlf_batch_maker *maker)
{
    int64_t samples = maker->dataset->samples.shape.dim[0];
    if (samples < 1 || samples > INT32_MAX) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: expected 1 to %d samples, found %" PRId64, INT32_MAX, samples);
    }
    maker->order = malloc((size_t)samples * sizeof *maker->order);
    if (maker->options.shuffle) maker->keys = malloc((size_t)samples * sizeof *maker->keys);
    if (maker->order == NULL || (maker->options.shuffle && maker->keys == NULL)) {
        return sdlf_fail(SDLF_ERROR_MEMORY, "loader: no memory for the order of %" PRId64 " samples", samples);
    }
    for (int64_t i = 0; i < samples; i++) maker->order[i] = (int32_t)i;
    if (maker->options.ranks < 2 || !sdlf_mixing_wanted(&maker->options.mixing)) return SDLF_OK;
    int64_t each = (maker->options.batch - 1) / maker->options.ranks + 1;
    maker->paired = malloc(2 * (size_t)each * sizeof *maker->paired);
    return maker->paired != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "loader: no memory for pairs of samples");
}

sdlf_status sdlf_batch_maker_init(sdlf_batch_maker *maker, const sdlf_dataset *dataset,
                                  const sdlf_loader_options *options)
{
    *maker = (sdlf_batch_maker){.dataset = dataset, .options = *options, .epoch = -1};
    if (options->batch < 1) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: expected a batch of at least 1 sample, found %" PRId64,
                         options->batch);
    }
    if (options->ranks < 0 || options->rank < 0 || options->rank >= (options->ranks > 0 ? options->ranks : 1))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: rank %d of %d", options->rank, options->ranks);
    int64_t samples = dataset->samples.shape.dim[0];
    if (maker->options.batch > samples && samples > 0) maker->options.batch = samples;
    sdlf_status status = sdlf_mixing_check(&options->mixing, sdlf_shape_without(dataset->samples.shape, 0));
    if (status == SDLF_OK) status = allocate_order(maker);
    if (status == SDLF_OK) status = sdlf_dataset_check_parts(dataset);
    if (status == SDLF_OK && sdlf_mixing_wanted(&options->mixing) && sdlf_dataset_positions(dataset) > 0)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: mixing is for samples of one label");
    if (status == SDLF_OK && sdlf_auto_augment_wanted(&options->automatic) && sdlf_dataset_has_pixel_labels(dataset))
        status = sdlf_fail(SDLF_ERROR_ARGUMENT,
                           "loader: TrivialAugment and RandAugment move pictures without the labels of their pixels");
    if (status != SDLF_OK) goto fail;
    maker->batches = (samples - 1) / maker->options.batch + 1;
    status = prepare_reading(maker);
    if (status == SDLF_OK) status = open_calculator(&maker->calculator);
    if (status == SDLF_OK) status = prepare_gather(maker);
    if (status == SDLF_OK) status = open_helpers(maker);
    if (status != SDLF_OK) goto fail;
    return SDLF_OK;
fail:
    sdlf_batch_maker_release(maker);
    return status;
}

void sdlf_batch_maker_release(sdlf_batch_maker *maker)
{
    if (maker->workspace != NULL) maker->calculator->type->deallocate(maker->calculator, maker->workspace);
    sdlf_calculator_close(maker->calculator);
    for (int i = 0; i < maker->helper_count; i++) sdlf_calculator_close(maker->helpers[i]);
    free(maker->helpers);
    sdlf_tensor_release(&maker->read, NULL);
    sdlf_tensor_release(&maker->labels, NULL);
    free(maker->places);
    free(maker->unchanged);
    free(maker->keys);
    free(maker->paired);
    free(maker->order);
    *maker = (sdlf_batch_maker){.epoch = -1};
}

/* The queues that allocate memory with the fastest transfers; NULL: any memory will do. */
static const sdlf_queue_class *queues_of(const sdlf_batch_maker *maker)
{
    bool any = maker->options.calculator == NULL || maker->pageable;
    return any ? NULL : maker->options.calculator->type->queues;
}

/* Allocates a part of a batch, of `shape` without its first dimension per sample. */
static sdlf_status create_part(sdlf_tensor *part, const sdlf_batch_maker *maker, sdlf_dtype dtype, sdlf_shape shape)
{
    const sdlf_queue_class *queues = queues_of(maker);
    shape.dim[0] = most_samples(maker);
    if (queues == NULL) return sdlf_tensor_create(part, NULL, dtype, shape);
    *part = sdlf_tensor_view(dtype, shape, NULL);
    return queues->allocate_host(maker->options.calculator, sdlf_tensor_bytes(part), &part->data);
}

static sdlf_status create_batch(sdlf_batch *batch, const sdlf_batch_maker *maker)
{
    const sdlf_dataset *dataset = maker->dataset;
    bool mixed = sdlf_mixing_wanted(&maker->options.mixing) && !sdlf_dataset_has_targets(dataset);
    *batch = (sdlf_batch){0};
    sdlf_status status = create_part(&batch->samples, maker, SDLF_FLOAT32, dataset->samples.shape);
    if (status == SDLF_OK) status = create_part(&batch->labels, maker, dataset->labels.dtype, dataset->labels.shape);
    if (status == SDLF_OK && mixed) status = create_part(&batch->second_labels, maker, SDLF_INT32, sdlf_shape(1));
    if (status == SDLF_OK && mixed) status = create_part(&batch->shares, maker, SDLF_FLOAT32, sdlf_shape(1));
    if (status != SDLF_OK) sdlf_batch_release(batch, maker);
    return sdlf_fail_context(status, "loader");
}

sdlf_status sdlf_batches_create(sdlf_batch *batch, int count, sdlf_batch_maker *maker)
{
    int made = 0;
    sdlf_status status = SDLF_OK;
    for (; made < count && status == SDLF_OK; made++) status = create_batch(&batch[made], maker);
    if (status == SDLF_OK) return SDLF_OK;
    while (made-- > 0) sdlf_batch_release(&batch[made], maker);
    if (status != SDLF_ERROR_MEMORY || queues_of(maker) == NULL) return status;
    maker->pageable = true;
    return sdlf_batches_create(batch, count, maker);
}

void sdlf_batch_release(sdlf_batch *batch, const sdlf_batch_maker *maker)
{
    const sdlf_queue_class *queues = queues_of(maker);
    sdlf_calculator *device = maker->options.calculator;
    sdlf_tensor *parts[] = {&batch->samples, &batch->labels, &batch->second_labels, &batch->shares};
    if (queues != NULL && batch->samples.data != NULL)
        device->type->synchronize(device); /* after a failure something may still be queued */
    for (int i = 0; i < 4; i++) {
        if (queues != NULL && parts[i]->data != NULL) queues->deallocate_host(device, parts[i]->data);
        if (queues != NULL) parts[i]->data = NULL;
        sdlf_tensor_release(parts[i], NULL);
    }
}

int64_t sdlf_batch_maker_memory(const sdlf_batch_maker *maker, int batches)
{
    const sdlf_dataset *dataset = maker->dataset;
    int64_t samples = dataset->samples.shape.dim[0], most = most_samples(maker);
    int64_t each = sdlf_shape_span(dataset->samples.shape, 1, dataset->samples.shape.rank) * (int64_t)sizeof(float);
    each += sdlf_tensor_bytes(&dataset->labels) / samples;
    if (sdlf_mixing_wanted(&maker->options.mixing) && !sdlf_dataset_has_targets(dataset))
        each += (int64_t)(sizeof(int32_t) + sizeof(float)); /* second labels and shares */
    int64_t bytes = batches * most * each;
    bytes += samples * (int64_t)(sizeof *maker->order + (maker->keys != NULL ? sizeof *maker->keys : 0));
    bytes += sdlf_tensor_bytes(&maker->read) * (maker->unchanged != NULL ? 2 : 1);
    bytes += sdlf_tensor_bytes(&maker->labels) + sdlf_tensor_bytes(&maker->gather.workspace);
    if (maker->places != NULL) bytes += most * (int64_t)sizeof *maker->places;
    if (maker->paired != NULL) bytes += most * (int64_t)sizeof *maker->paired;
    return bytes;
}

/* Sets the number of samples of the batch, which are the first in its memory. */
static void set_count(const sdlf_batch_maker *maker, sdlf_batch *batch, int64_t count)
{
    sdlf_shape shape = maker->dataset->samples.shape;
    shape.dim[0] = batch->count = count;
    batch->samples = sdlf_tensor_view(SDLF_FLOAT32, shape, batch->samples.data);
    batch->labels = sdlf_tensor_view(maker->dataset->labels.dtype, labels_shape(maker, count), batch->labels.data);
    if (!sdlf_tensor_present(&batch->shares)) return;
    batch->second_labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), batch->second_labels.data);
    batch->shares = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count), batch->shares.data);
}

static void mix(const sdlf_batch_maker *maker, int64_t epoch, sdlf_batch *batch)
{
    const sdlf_loader_options *options = &maker->options;
    if (!sdlf_mixing_wanted(&options->mixing)) return;
    sdlf_mix_batch(batch, &options->mixing, sdlf_batch_maker_seed(maker), maker->images, epoch);
}

sdlf_status sdlf_batch_maker_make(sdlf_batch_maker *maker, int64_t epoch, int64_t index, sdlf_batch *batch)
{
    const sdlf_dataset *dataset = maker->dataset;
    if (epoch != maker->epoch && maker->options.shuffle) {
        sdlf_shuffle_order(maker->order, maker->keys, dataset->samples.shape.dim[0], maker->options.seed,
                           (uint32_t)epoch);
    }
    maker->epoch = epoch;

    const batch_part part = part_of(maker, index);
    int64_t count = take_images(maker, &part);
    set_count(maker, batch, count);
    bind(maker, count, batch->samples.data);
    sdlf_status status = sdlf_batch_read(maker, count, batch);
    if (status == SDLF_OK) mix(maker, epoch, batch);
    set_count(maker, batch, part.count); /* and drops those that belong to other ranks */
    return sdlf_fail_context(status, "loader: epoch %" PRId64 ", batch %" PRId64, epoch, index);
}
