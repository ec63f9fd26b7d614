/* The loader over a data set of MNIST's size: two runs give the same bits. With --bench: samples/s, and the share of the
 * floor, which is the time to copy as many bytes as a batch must be read and written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sdlf/dataset.h>
#include <sdlf/random.h>

#include "testing.h"

enum { SAMPLES = 60000, SIDE = 28, PIXELS = SIDE * SIDE };

static unsigned char pixels[(size_t)SAMPLES * PIXELS];
static int32_t labels[SAMPLES];
static char name[] = "noise";

static const sdlf_augmentation light = {.shift = 1, .rotate = 10, .scale = 0.1f};
static const sdlf_augmentation full = {.shift = 1, .rotate = 10, .scale = 0.1f, .elastic = 1.5f};

static sdlf_dataset make_dataset(void)
{
    for (int64_t i = 0; i < (int64_t)SAMPLES * PIXELS; i += 16) {
        sdlf_philox random = sdlf_philox4x32(1, (uint64_t)i / 16, SDLF_STREAM_DATASET, 0);
        memcpy(pixels + i, &random, sizeof random);
    }
    for (int i = 0; i < SAMPLES; i++) labels[i] = i % 10;
    return (sdlf_dataset){
        .name = name,
        .samples = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(SAMPLES, 1, SIDE, SIDE), pixels),
        .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(SAMPLES), labels),
        .class_count = 10,
        .mean = 33.3f,
        .scale = 1 / 78.6f,
    };
}

/* A number that any changed bit and any changed place changes. */
static uint64_t hash_batch(uint64_t hash, const sdlf_batch *batch)
{
    const uint32_t *word = batch->samples.data;
    const int32_t *label = batch->labels.data;
    for (int64_t i = 0; i < batch->count * PIXELS; i++) hash = (hash ^ word[i]) * UINT64_C(0x100000001b3);
    for (int64_t i = 0; i < batch->count; i++) hash = (hash ^ (uint32_t)label[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Go through an epoch; its hash, or 0 without one. */
static uint64_t run_epoch(const sdlf_dataset *dataset, const sdlf_loader_options *options, bool hashed)
{
    sdlf_loader *loader = NULL;
    sdlf_batch batch;
    uint64_t hash = hashed ? UINT64_C(0xcbf29ce484222325) : 0;
    int64_t count = 0;
    if (!CHECK_OK(sdlf_loader_create(&loader, dataset, options))) return 0;
    while (sdlf_loader_next(loader, &batch) == SDLF_OK && batch.count > 0) {
        if (hashed) hash = hash_batch(hash, &batch);
        count += batch.count;
    }
    CHECK_EQUAL(count, SAMPLES);
    sdlf_loader_free(loader);
    return hash;
}

static void two_runs_agree(void)
{
    sdlf_dataset dataset = make_dataset();
    sdlf_loader_options options = {.batch = 64, .shuffle = true, .augment = full, .seed = 7};
    uint64_t ahead = run_epoch(&dataset, &options, true);
    options.no_prefetch = true;
    CHECK(run_epoch(&dataset, &options, true) == ahead);
    options.seed = 8;
    CHECK(run_epoch(&dataset, &options, true) != ahead);
}

/* ---- --bench ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least time over a few epochs. */
static double time_epoch(const sdlf_dataset *dataset, const sdlf_loader_options *options)
{
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        double start = seconds();
        run_epoch(dataset, options, false);
        double taken = seconds() - start;
        if (taken < least) least = taken;
    }
    return least;
}

/* Copying half of the bytes moves them all: each byte of an epoch's samples is read, and four are written. */
static double time_floor(void)
{
    size_t bytes = (size_t)SAMPLES * PIXELS * 5 / 2;
    char *from = malloc(bytes), *to = malloc(bytes);
    double least = 1e9;
    for (int i = 0; i < 4 && from != NULL && to != NULL; i++) {
        memset(from, i, bytes);
        double start = seconds();
        memcpy(to, from, bytes);
        double taken = seconds() - start;
        if (i > 0 && to[bytes / 2] == i && taken < least) least = taken; /* the first run maps the pages */
    }
    free(from);
    free(to);
    return least;
}

static void bench(void)
{
    const struct {
        const char *name;
        sdlf_augmentation augment;
    } kinds[] = {{"none", {.shift = 0}}, {"shift, rotate, scale", light}, {"and elastic", full}};
    sdlf_dataset dataset = make_dataset();
    double floor = time_floor();
    int32_t *order = malloc(SAMPLES * sizeof *order);
    uint64_t *keys = malloc(SAMPLES * sizeof *keys);
    double shuffle = 1e9;
    for (uint32_t epoch = 0; epoch < 10 && order != NULL && keys != NULL; epoch++) {
        double start = seconds();
        sdlf_shuffle_order(order, keys, SAMPLES, 1, epoch);
        if (seconds() - start < shuffle) shuffle = seconds() - start;
    }
    free(order);
    free(keys);
    printf("60,000 samples of 1x28x28; shuffling them %.2f ms; floor of an epoch (its bytes, copied) %.1f ms\n",
           1e3 * shuffle, 1e3 * floor);
    printf("%-22s %6s %9s %10s %14s %8s\n", "augmentation", "batch", "prefetch", "epoch ms", "samples/s", "of floor");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int variant = 0; variant < 4; variant++) {
            sdlf_loader_options options = {.batch = variant & 2 ? 1024 : 64,
                                           .shuffle = true,
                                           .augment = kinds[k].augment,
                                           .seed = 1,
                                           .no_prefetch = variant & 1};
            double taken = time_epoch(&dataset, &options);
            printf("%-22s %6d %9s %10.1f %14.0f %7.0f%%\n", kinds[k].name, (int)options.batch,
                   variant & 1 ? "no" : "yes", 1e3 * taken, SAMPLES / taken, 100 * floor / taken);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    RUN(two_runs_agree);
    return test_summary();
}
