/* SPDX-License-Identifier: MIT */
/* Training on samples that are read one by one equals training on samples in memory. */
#include <string.h>

#include "framework/watched_training.h"

static sdlf_status read_one(void *context, int64_t index, void *to)
{
    const sdlf_dataset *data = context;
    size_t size = (size_t)(sdlf_tensor_bytes(&data->samples) / data->samples.shape.dim[0]);
    memcpy(to, (const char *)data->samples.data + (size_t)index * size, size);
    return SDLF_OK;
}

/* On the host and on a device, where batches are copied instead of drawn. */
static void training_is_that_from_memory(void)
{
    const char *const calculators[] = {"reference", "guarded"};
    sdlf_dataset memory = synthetic_dataset(50, 1);
    sdlf_dataset data = memory;
    data.samples.data = NULL;
    data.read = read_one;
    data.read_context = &memory;
    data.readers = 3;
    uint32_t first = 0;
    for (int i = 0; i < 3; i++) {
        watcher seen = {.calls = 0};
        sdlf_model *model = synthetic_model();
        sdlf_trainer_options options = options_on(calculators[i / 2], 8, &seen);
        CHECK_OK(train(model, i == 0 ? &memory : &data, &options));
        if (i == 0) first = sdlf_model_hash(model);
        CHECK_EQUAL(sdlf_model_hash(model), first);
        sdlf_model_free(model);
    }
    synthetic_release(&memory);
}

/* Batches of mixed samples come from pinned memory, which a device reads as late as it may. */
static void batches_are_sent_before_they_change(void)
{
    sdlf_dataset data = synthetic_dataset(50, 1);
    uint32_t first = 0;
    for (int i = 0; i < 4; i++) { /* the last time without pinned memory */
        watcher seen = {.calls = 0};
        sdlf_model *model = synthetic_model();
        sdlf_trainer_options options = options_on(i == 0 ? "reference" : "guarded", 8, &seen);
        options.mixing = (sdlf_mixing){.mixup = 0.4f, .cutmix = 1};
        test_guarded_late(i == 2 ? SDLF_QUEUE_TRANSFER : SDLF_QUEUE_COMPUTE);
        test_guarded_host_memory(i == 3 ? 1 : 0);
        CHECK_OK(train(model, &data, &options));
        if (i == 0) first = sdlf_model_hash(model);
        CHECK_EQUAL(sdlf_model_hash(model), first);
        sdlf_model_free(model);
    }
    test_guarded_late(SDLF_QUEUE_COMPUTE);
    test_guarded_host_memory(0);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) /* twice the same */
        for (int run = 0; run < 2; run++) {
            watcher seen = {.calls = 0};
            sdlf_model *model = synthetic_model();
            sdlf_trainer_options options = options_on(test_calculator_class_at(i)->name, 8, &seen);
            options.mixing = (sdlf_mixing){.mixup = 0.4f, .cutmix = 1};
            CHECK_OK(train(model, &data, &options));
            if (run == 0) first = sdlf_model_hash(model);
            CHECK_EQUAL(sdlf_model_hash(model), first);
            sdlf_model_free(model);
        }
    synthetic_release(&data);
}

static sdlf_status read_label(void *context, int64_t index, void *to)
{
    const sdlf_dataset *data = context;
    if (index >= data->labels.shape.dim[0] - data->unread) return sdlf_fail(SDLF_ERROR_IO, "label %d", (int)index);
    memcpy(to, (const int32_t *)data->labels.data + index, sizeof(int32_t));
    return SDLF_OK;
}

/* Classes are counted the same with labels in memory or read by several threads, whose first failure is reported. */
static void labels_are_counted(void)
{
    sdlf_dataset memory = synthetic_dataset(50, 1);
    sdlf_dataset data = memory;
    data.labels.data = NULL;
    data.read_labels = read_label;
    data.read_context = &memory;
    data.readers = 3;
    uint32_t first = 0;
    for (int i = 0; i < 3; i++) {
        watcher seen = {.calls = 0};
        sdlf_model *model = synthetic_model();
        sdlf_trainer_options options = options_on("reference", 8, &seen);
        strcpy(options.class_weights, "balanced");
        memory.unread = i == 2 ? 20 : 0; /* their labels fail */
        sdlf_status status = train(model, i == 0 ? &memory : &data, &options);
        if (i < 2) CHECK_OK(status);
        if (i == 2) CHECK_FAILS(status, SDLF_ERROR_IO, "label 30");
        if (i == 0) first = sdlf_model_hash(model);
        if (i == 1) CHECK_EQUAL(sdlf_model_hash(model), first);
        sdlf_model_free(model);
    }
    memory.unread = 0;
    synthetic_release(&memory);
}

/* A loader's samples are in memory that a queued upload may read, with prefetching and without. */
static void batches_are_pinned(void)
{
    sdlf_dataset data = synthetic_dataset(50, 1);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++)
        for (int direct = 0; direct < 2; direct++) {
            sdlf_calculator *calculator = NULL;
            sdlf_loader *loader = NULL, *plain = NULL;
            void *memory = NULL;
            sdlf_loader_options options = {.batch = 8, .no_prefetch = direct};
            if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
            const sdlf_queue_class *queues = calculator->type->queues;
            CHECK_OK(sdlf_loader_create(&plain, &data, &options));
            options.calculator = calculator;
            CHECK_OK(sdlf_loader_create(&loader, &data, &options));
            for (sdlf_batch batch, expected; loader != NULL && plain != NULL;) {
                CHECK_OK(sdlf_loader_next(plain, &expected));
                if (!CHECK_OK(sdlf_loader_next(loader, &batch)) || batch.count == 0) break;
                int64_t bytes = sdlf_tensor_bytes(&batch.samples);
                CHECK(memcmp(batch.samples.data, expected.samples.data, (size_t)bytes) == 0);
                if (queues == NULL) continue;
                if (memory == NULL) CHECK_OK(calculator->type->allocate(calculator, bytes, &memory));
                CHECK_OK(queues->upload(calculator, SDLF_QUEUE_TRANSFER, memory, batch.samples.data, bytes));
                CHECK_OK(calculator->type->synchronize(calculator));
            }
            sdlf_loader_free(plain);
            sdlf_loader_free(loader);
            if (memory != NULL) calculator->type->deallocate(calculator, memory);
            sdlf_calculator_close(calculator);
        }
    synthetic_release(&data);
}

int main(void)
{
    RUN(training_is_that_from_memory);
    RUN(batches_are_sent_before_they_change);
    RUN(labels_are_counted);
    RUN(batches_are_pinned);
    return test_summary();
}
