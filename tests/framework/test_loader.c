/* The loader: what each batch holds, that it depends on (seed, epoch, position) alone, and that nothing is allocated. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "testing.h"

enum { SAMPLES = 103, CHANNELS = 2, HEIGHT = 9, WIDTH = 7, PIXELS = CHANNELS * HEIGHT * WIDTH };

static unsigned char pixels[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];
static char name[] = "made up";

/* Pictures that all differ, on a background of 0. */
static sdlf_dataset make_dataset(void)
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

static sdlf_loader *make_loader(const sdlf_dataset *dataset, sdlf_loader_options options)
{
    sdlf_loader *loader = NULL;
    CHECK_OK(sdlf_loader_create(&loader, dataset, &options));
    return loader;
}

/* Is element `at` of the batch sample `i` as it stands in the data set, normalised? */
static bool holds(const sdlf_batch *batch, int64_t at, int32_t i)
{
    const float *x = (const float *)batch->samples.data + at * PIXELS;
    bool same = ((const int32_t *)batch->labels.data)[at] == labels[i];
    for (int j = 0; j < PIXELS; j++) {
        same = same && fabsf(x[j] - ((float)pixels[i * PIXELS + j] - 33.3f) / 78.6f) < 1e-6f;
    }
    return same;
}

/* One epoch from its first batch: counts, shapes, and the samples in this order. */
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

/* ---- everything below compares whole batches, bit for bit, with those of `make_epochs` ---- */

enum { BATCH = 10, BATCHES = 11, EPOCHS = 3 };

typedef struct kept {
    int64_t count;
    float samples[BATCH * PIXELS];
    int32_t labels[BATCH];
} kept;

static kept expected[EPOCHS][BATCHES];

static const sdlf_augmentation all_augmentation = {.shift = 1.5f, .rotate = 15, .scale = 0.1f, .elastic = 1};

static bool is_kept(const sdlf_batch *batch, const kept *k)
{
    size_t count = (size_t)k->count;
    return batch->count == k->count && memcmp(batch->samples.data, k->samples, count * PIXELS * sizeof(float)) == 0 &&
           memcmp(batch->labels.data, k->labels, count * sizeof(int32_t)) == 0;
}

/* Keep all batches of the first epochs, made one after the other without a thread. */
static void make_epochs(const sdlf_dataset *dataset, sdlf_loader_options options)
{
    options.no_prefetch = true;
    options.batch = BATCH;
    sdlf_loader *loader = make_loader(dataset, options);
    if (loader == NULL) return;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        CHECK_OK(sdlf_loader_seek(loader, epoch, 0));
        for (int b = 0; b < BATCHES; b++) {
            sdlf_batch batch;
            kept *k = &expected[epoch][b];
            if (!CHECK_OK(sdlf_loader_next(loader, &batch))) break;
            k->count = batch.count;
            memcpy(k->samples, batch.samples.data, (size_t)batch.count * PIXELS * sizeof(float));
            memcpy(k->labels, batch.labels.data, (size_t)batch.count * sizeof(int32_t));
        }
    }
    sdlf_loader_free(loader);
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
                CHECK(is_kept(&batch, &expected[epoch][b]));
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
        if (epoch > 0) CHECK_OK(sdlf_loader_seek(loader, epoch, 0)); /* a new loader stands at the first batch */
        for (int b = 0; b < BATCHES; b++) {
            sdlf_batch batch;
            CHECK_OK(sdlf_loader_next(loader, &batch));
            CHECK(is_kept(&batch, &expected[epoch][b]));
        }
    }
    sdlf_loader_free(loader);
}

/* The picture that epoch `epoch` makes of a sample, wherever it stands in its batch. */
static const float *find_picture(const sdlf_loader_options *options, int epoch, int32_t sample)
{
    int32_t order[SAMPLES];
    uint64_t keys[SAMPLES];
    sdlf_shuffle_order(order, keys, SAMPLES, options->seed, (uint32_t)epoch);
    for (int i = 0; i < SAMPLES; i++) {
        if ((options->shuffle ? order[i] : i) == sample) return expected[epoch][i / BATCH].samples + i % BATCH * PIXELS;
    }
    return NULL;
}

static void augments_repeatably(void)
{
    static float first[EPOCHS][SAMPLES][PIXELS];
    const size_t bytes = sizeof first[0][0];
    sdlf_dataset dataset = make_dataset();
    sdlf_loader_options options = {.seed = 4, .augment = all_augmentation};
    make_epochs(&dataset, options);
    for (int e = 0; e < EPOCHS; e++) {
        for (int i = 0; i < SAMPLES; i++) memcpy(first[e][i], find_picture(&options, e, i), bytes);
    }
    int same_in_next_epoch = 0, same_with_other_seed = 0, other_when_shuffled = 0;
    for (int i = 0; i < SAMPLES; i++) same_in_next_epoch += memcmp(first[0][i], first[1][i], bytes) == 0;
    options.shuffle = true; /* elsewhere in the epoch, and warped in the same way */
    make_epochs(&dataset, options);
    for (int i = 0; i < SAMPLES; i++)
        other_when_shuffled += memcmp(first[2][i], find_picture(&options, 2, i), bytes) != 0;
    options.augment.seed = 4; /* the loader's own seed, said twice */
    make_epochs(&dataset, options);
    for (int i = 0; i < SAMPLES; i++)
        other_when_shuffled += memcmp(first[1][i], find_picture(&options, 1, i), bytes) != 0;
    options.augment.seed = 5;
    make_epochs(&dataset, options);
    for (int i = 0; i < SAMPLES; i++)
        same_with_other_seed += memcmp(first[0][i], find_picture(&options, 0, i), bytes) == 0;
    CHECK_EQUAL(same_in_next_epoch, 0);
    CHECK_EQUAL(same_with_other_seed, 0);
    CHECK_EQUAL(other_when_shuffled, 0);
}

/* Each part of the augmentation changes pictures by itself; none of them changes nothing. */
static void each_augmentation_counts(void)
{
    static const sdlf_augmentation parts[] = {
        {.seed = 3}, {.shift = 2}, {.rotate = 20}, {.scale = 0.2f}, {.elastic = 2}};
    sdlf_dataset dataset = make_dataset();
    for (int p = 0; p < 5; p++) {
        make_epochs(&dataset, (sdlf_loader_options){.seed = 1, .augment = parts[p]});
        int changed = 0;
        for (int i = 0; i < SAMPLES; i++) {
            kept *k = &expected[0][i / BATCH];
            sdlf_batch batch = {.samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), k->samples),
                                .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(1), k->labels)};
            changed += !holds(&batch, i % BATCH, i);
        }
        CHECK_EQUAL(changed, p == 0 ? 0 : SAMPLES);
    }
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
    CHECK_OK(sdlf_loader_next(loader, &batch)); /* refused seeks have moved nothing */
    CHECK(batch.count == BATCH && holds(&batch, 0, 0));
    sdlf_loader_free(loader);
}

int main(void)
{
    RUN(gives_every_sample_in_order);
    RUN(goes_to_any_batch);
    RUN(goes_on_from_epoch_to_epoch);
    RUN(augments_repeatably);
    RUN(each_augmentation_counts);
    RUN(allocates_nothing_in_next);
    RUN(survives_failing_allocations);
    RUN(can_be_freed_at_any_time);
    RUN(refuses_bad_arguments);
    return test_summary();
}
