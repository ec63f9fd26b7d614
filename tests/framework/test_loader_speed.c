/* SPDX-License-Identifier: MIT */
/* The loader over a data set of MNIST's size: two runs give the same bits. With --bench: samples/s, and the share of
 * the floor. */
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

/* A hash that changes with any bit and any position. */
static uint64_t hash_batch(uint64_t hash, const sdlf_batch *batch)
{
    const uint32_t *word = batch->samples.data;
    const int32_t *label = batch->labels.data;
    for (int64_t i = 0; i < batch->count * PIXELS; i++) hash = (hash ^ word[i]) * UINT64_C(0x100000001b3);
    for (int64_t i = 0; i < batch->count; i++) hash = (hash ^ (uint32_t)label[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Read an epoch. Returns its hash, or 0 if none is requested. */
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

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct timing {
    double wall, cpu; /* cpu: the sum over all threads */
} timing;

static timing start_timing(void)
{
    return (timing){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

/* Keep the minimum of the measurements. */
static void end_timing(timing *least, timing start)
{
    timing end = start_timing();
    if (end.wall - start.wall < least->wall) least->wall = end.wall - start.wall;
    if (end.cpu - start.cpu < least->cpu) least->cpu = end.cpu - start.cpu;
}

/* The minimal memory traffic of an epoch: read every sample, write every batch (always to the same memory). */
static timing time_floor(int64_t batch, const int32_t *order)
{
    unsigned char row[PIXELS];
    float *to = malloc((size_t)batch * PIXELS * sizeof *to);
    timing least = {1e9, 1e9};
    volatile unsigned char sink = 0;
    for (int repeat = 0; repeat < 5 && to != NULL; repeat++) {
        timing start = start_timing();
        for (int64_t i = 0; i < SAMPLES; i++) {
            memcpy(row, pixels + (int64_t)order[i] * PIXELS, sizeof row);
            sink = row[i % PIXELS];
            memset(to + i % batch * PIXELS, sink, PIXELS * sizeof *to);
        }
        end_timing(&least, start);
    }
    free(to);
    return least;
}

static void bench(void)
{
    const struct {
        const char *name;
        sdlf_augmentation augment;
    } kinds[] = {{"none", {.shift = 0}}, {"shift, rotate, scale", light}, {"and elastic", full}};
    static int32_t order[SAMPLES];
    static uint64_t keys[SAMPLES];
    sdlf_dataset dataset = make_dataset();
    timing shuffle = {1e9, 1e9};
    for (uint32_t epoch = 0; epoch < 10; epoch++) {
        timing start = start_timing();
        sdlf_shuffle_order(order, keys, SAMPLES, 1, epoch);
        end_timing(&shuffle, start);
    }
    printf("An epoch of 60,000 samples of 1x28x28. cpu: of all threads. floor: to read the samples and write the "
           "batches.\n");
    printf("shuffle %.2f ms\n", 1e3 * shuffle.cpu);
    printf("%-22s %6s %9s %9s %9s %12s %9s %9s\n", "augmentation", "batch", "prefetch", "wall ms", "cpu ms",
           "samples/s", "floor ms", "of floor");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int variant = 0; variant < 4; variant++) {
            sdlf_loader_options options = {.batch = variant & 2 ? 1024 : 64,
                                           .shuffle = true,
                                           .augment = kinds[k].augment,
                                           .seed = 1,
                                           .no_prefetch = variant & 1};
            timing floor = time_floor(options.batch, order), least = {1e9, 1e9};
            for (int repeat = 0; repeat < 3; repeat++) {
                timing start = start_timing();
                run_epoch(&dataset, &options, false);
                end_timing(&least, start);
            }
            printf("%-22s %6d %9s %9.1f %9.1f %12.0f %9.1f %8.0f%%\n", kinds[k].name, (int)options.batch,
                   variant & 1 ? "no" : "yes", 1e3 * least.wall, 1e3 * least.cpu, SAMPLES / least.wall, 1e3 * floor.cpu,
                   100 * floor.cpu / least.cpu);
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
