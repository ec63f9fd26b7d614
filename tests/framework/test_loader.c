/* SPDX-License-Identifier: MIT */
/* The loader: the contents of each batch, seeking, and that nothing is allocated. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/loader_epochs.h"

/* Check one epoch from its first batch: counts, shapes, and the samples in this order. */
static void check_epoch(sdlf_loader *loader, int64_t epoch, int64_t size, const int32_t *order)
{
    sdlf_batch batch;
    if (!CHECK_OK(sdlf_loader_seek(loader, epoch, 0))) return;
    for (int64_t done = 0; done < SAMPLES; done += batch.count) {
        if (!CHECK_OK(sdlf_loader_next(loader, &batch))) return;
        int64_t expected = SAMPLES - done < size ? SAMPLES - done : size;
        if (!CHECK_EQUAL(batch.count, expected)) return;
        CHECK(sdlf_shape_equal(batch.samples.shape, sdlf_shape(expected, CHANNELS, HEIGHT, WIDTH)));
        CHECK(sdlf_shape_equal(batch.labels.shape, sdlf_shape(expected)));
        CHECK(batch.samples.dtype == SDLF_FLOAT32 && batch.labels.dtype == SDLF_INT32);
        for (int64_t k = 0; k < batch.count; k++) CHECK(holds(&batch, k, order[done + k]));
    }
    for (int again = 0; again < 3; again++) {
        CHECK_OK(sdlf_loader_next(loader, &batch));
        CHECK_EQUAL(batch.count, 0);
    }
}

static void gives_every_sample_in_order(void)
{
    static const int64_t sizes[] = {1, 2, 25, 102, SAMPLES, SAMPLES + 1, 5000};
    sdlf_dataset dataset = make_dataset();
    int32_t order[SAMPLES];
    uint64_t keys[SAMPLES];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int variant = 0; variant < 4; variant++) {
            bool shuffle = variant & 1, no_prefetch = variant & 2;
            sdlf_loader *loader = make_loader(
                &dataset,
                (sdlf_loader_options){.batch = sizes[s], .shuffle = shuffle, .seed = 5, .no_prefetch = no_prefetch});
            if (loader == NULL) return;
            CHECK_EQUAL(sdlf_loader_batches(loader), (SAMPLES + sizes[s] - 1) / sizes[s]);
            for (uint32_t epoch = 0; epoch < 3; epoch++) {
                sdlf_shuffle_order(order, keys, SAMPLES, 5, epoch);
                for (int32_t i = 0; i < SAMPLES && !shuffle; i++) order[i] = i;
                check_epoch(loader, epoch, sizes[s], order);
            }
            sdlf_loader_free(loader);
        }
    }
}

static void goes_to_any_batch(void)
{
    sdlf_dataset dataset = make_dataset();
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        sdlf_loader_options options = {
            .batch = BATCH, .shuffle = true, .seed = 9, .augment = all_augmentation, .no_prefetch = !prefetch};
        make_epochs(&dataset, options);
        sdlf_loader *loader = make_loader(&dataset, options);
        if (loader == NULL) return;
        uint32_t random = 1;
        for (int i = 0; i < 300; i++) {
            random = random * 1664525u + 1013904223u;
            int epoch = (int)(random >> 8) % EPOCHS, first = (int)(random >> 16) % (BATCHES + 1),
                take = (int)(random >> 28);
            sdlf_batch batch;
            CHECK_OK(sdlf_loader_seek(loader, epoch, first));
            for (int b = first; b < BATCHES && b < first + take; b++) {
                if (!CHECK_OK(sdlf_loader_next(loader, &batch))) break;
                CHECK(is_kept(&batch, &epochs_kept[epoch][b]));
            }
            if (first + take <= BATCHES) continue;
            CHECK_OK(sdlf_loader_next(loader, &batch));
            CHECK_EQUAL(batch.count, 0);
        }
        sdlf_loader_free(loader);
    }
}

static void goes_on_from_epoch_to_epoch(void)
{
    sdlf_dataset dataset = make_dataset();
    sdlf_loader_options options = {.batch = BATCH, .shuffle = true, .seed = 2, .augment = all_augmentation};
    make_epochs(&dataset, options);
    sdlf_loader *loader = make_loader(&dataset, options);
    if (loader == NULL) return;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        if (epoch > 0) CHECK_OK(sdlf_loader_seek(loader, epoch, 0)); /* a new loader is at the first batch */
        for (int b = 0; b < BATCHES; b++) {
            sdlf_batch batch;
            CHECK_OK(sdlf_loader_next(loader, &batch));
            CHECK(is_kept(&batch, &epochs_kept[epoch][b]));
        }
    }
    sdlf_loader_free(loader);
}

static void allocates_nothing_in_next(void)
{
    sdlf_dataset dataset = make_dataset();
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        sdlf_loader *loader = make_loader(
            &dataset,
            (sdlf_loader_options){
                .batch = BATCH, .shuffle = true, .seed = 1, .augment = all_augmentation, .no_prefetch = !prefetch});
        if (loader == NULL) return;
        int64_t before = test_allocations(), samples = 0;
        sdlf_batch batch;
        for (int epoch = 0; epoch < 4; epoch++) {
            if (sdlf_loader_seek(loader, epoch, 0) != SDLF_OK) break;
            while (sdlf_loader_next(loader, &batch) == SDLF_OK && batch.count > 0) samples += batch.count;
        }
        CHECK_EQUAL(test_allocations() - before, 0);
        CHECK_EQUAL(samples, 4 * SAMPLES);
        sdlf_loader_free(loader);
    }
}

static sdlf_status create_and_free(void *options)
{
    sdlf_dataset dataset = make_dataset();
    sdlf_loader *loader = NULL;
    sdlf_batch batch;
    sdlf_status status = sdlf_loader_create(&loader, &dataset, options);
    if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
    sdlf_loader_free(loader);
    return status;
}

static void survives_failing_allocations(void)
{
    sdlf_loader_options options = {.batch = BATCH, .shuffle = true, .seed = 1, .augment = all_augmentation};
    test_every_allocation("prefetching loader", create_and_free, &options);
    options.no_prefetch = true;
    test_every_allocation("loader", create_and_free, &options);
}

static void can_be_freed_at_any_time(void)
{
    sdlf_dataset dataset = make_dataset();
    sdlf_loader_free(NULL);
    for (int i = 0; i < 100; i++) {
        sdlf_loader *loader =
            make_loader(&dataset, (sdlf_loader_options){.batch = 3, .shuffle = true, .augment = all_augmentation});
        if (loader == NULL) return;
        if (i % 2) CHECK_OK(sdlf_loader_seek(loader, i, i % 35));
        sdlf_loader_free(loader);
    }
}

static void refuses_bad_arguments(void)
{
    sdlf_dataset dataset = make_dataset();
    sdlf_loader *loader = NULL;
    sdlf_batch batch;
    CHECK_FAILS(sdlf_loader_create(&loader, &dataset, &(sdlf_loader_options){.batch = 0}), SDLF_ERROR_ARGUMENT,
                "loader: expected a batch of at least 1 sample, found 0");
    CHECK(loader == NULL);
    CHECK_FAILS(sdlf_loader_create(&loader, &dataset, &(sdlf_loader_options){.batch = -3}), SDLF_ERROR_ARGUMENT,
                "found -3");
    static const sdlf_augmentation bad[] = {{.shift = -1}, {.rotate = NAN}, {.scale = 1}, {.elastic = INFINITY}};
    static const char *const names[] = {"shift", "rotate", "scale", "elastic"};
    for (int i = 0; i < 4; i++) {
        CHECK_FAILS(sdlf_loader_create(&loader, &dataset, &(sdlf_loader_options){.batch = 1, .augment = bad[i]}),
                    SDLF_ERROR_ARGUMENT, names[i]);
    }
    loader = make_loader(&dataset, (sdlf_loader_options){.batch = BATCH});
    if (loader == NULL) return;
    CHECK_FAILS(sdlf_loader_seek(loader, -1, 0), SDLF_ERROR_ARGUMENT, "found epoch -1, batch 0");
    CHECK_FAILS(sdlf_loader_seek(loader, INT64_C(1) << 32, 0), SDLF_ERROR_ARGUMENT, "found epoch 4294967296, batch 0");
    CHECK_FAILS(sdlf_loader_seek(loader, 0, -1), SDLF_ERROR_ARGUMENT, "a batch of 0 to 11, found epoch 0, batch -1");
    CHECK_FAILS(sdlf_loader_seek(loader, 0, 12), SDLF_ERROR_ARGUMENT, "found epoch 0, batch 12");
    CHECK_OK(sdlf_loader_next(loader, &batch)); /* rejected seeks change nothing */
    CHECK(batch.count == BATCH && holds(&batch, 0, 0));
    sdlf_loader_free(loader);
}

/* The prefetch thread does not exist in a child of fork(): an error says so, and nothing waits for it. */
static int use_in_child(sdlf_loader *loader)
{
    sdlf_batch batch;
    alarm(600); /* it hangs */
    sdlf_status status = sdlf_loader_seek(loader, 1, 0);
    if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
    bool told = status == SDLF_ERROR_UNSUPPORTED && strstr(sdlf_error_message(), "fork") != NULL;
    sdlf_loader_free(loader);
    return told ? 0 : 1;
}

static void says_so_in_a_child_of_fork(void)
{
    sdlf_dataset dataset = make_dataset();
    sdlf_loader *loader = make_loader(&dataset, (sdlf_loader_options){.batch = BATCH});
    if (loader == NULL) return;
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(use_in_child(loader));
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sdlf_batch batch;
    CHECK_OK(sdlf_loader_next(loader, &batch)); /* the parent continues */
    CHECK(batch.count == BATCH && holds(&batch, 0, 0));
    sdlf_loader_free(loader);
}

int main(void)
{
    RUN(gives_every_sample_in_order);
    RUN(goes_to_any_batch);
    RUN(goes_on_from_epoch_to_epoch);
    RUN(allocates_nothing_in_next);
    RUN(survives_failing_allocations);
    RUN(can_be_freed_at_any_time);
    RUN(refuses_bad_arguments);
    RUN(says_so_in_a_child_of_fork);
    return test_summary();
}
