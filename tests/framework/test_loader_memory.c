/* SPDX-License-Identifier: MIT */
/* The amount and kind of a loader's memory: pinned if a device provides it. */
#include "framework/loader_epochs.h"
#include "guarded.h"

enum { EACH = PIXELS * 4 + 4 /* bytes of a sample and its label in a batch */ };

static int64_t host_bytes(sdlf_calculator *calculator)
{
    int64_t bytes = 0;
    for (int i = 0; i < GUARDED_BLOCKS; i++) bytes += (int64_t)guarded_from(calculator)->host[i].bytes;
    return bytes;
}

/* Each rank's batches have space for its own samples, and for those with which they are mixed. */
static void ranks_take_their_share(void)
{
    sdlf_dataset data = make_dataset();
    for (int ranks = 0; ranks < 6; ranks++)
        for (int mixed = 0; mixed < 2; mixed++) {
            sdlf_calculator *calculator = NULL;
            if (!CHECK_OK(sdlf_calculator_open(&calculator, "guarded", NULL))) return;
            for (int rank = 0; rank < (ranks > 0 ? ranks : 1); rank++) {
                sdlf_loader *loader = make_loader(&data, (sdlf_loader_options){.batch = BATCH,
                                                                               .mixing.mixup = mixed ? 0.4f : 0,
                                                                               .rank = rank,
                                                                               .ranks = ranks,
                                                                               .no_prefetch = true,
                                                                               .calculator = calculator});
                int64_t most = ranks > 1 ? (BATCH + ranks - 1) / ranks : BATCH;
                if (mixed && ranks > 1) most *= 2;
                CHECK_EQUAL(host_bytes(calculator), most * (EACH + (mixed ? 8 : 0)));
                sdlf_batch batch;
                for (int b = 0; b < BATCHES && loader != NULL; b++) {
                    if (!CHECK_OK(sdlf_loader_next(loader, &batch))) break;
                    CHECK(guarded_holds(guarded_from(calculator)->host, batch.labels.data,
                                        sdlf_tensor_bytes(&batch.labels)));
                }
                int64_t paired = mixed && ranks > 1 ? most * 4 : 0;
                CHECK_EQUAL(sdlf_loader_memory(loader), host_bytes(calculator) + SAMPLES * 4 + paired);
                sdlf_loader_free(loader);
            }
            sdlf_calculator_close(calculator);
        }
}

/* If any of the batches cannot be pinned, all are in ordinary memory. */
static void batches_do_without_pinned_memory(void)
{
    static const int64_t pinned[] = {1, PIXELS * 4 * BATCH, EACH * BATCH, (2 * EACH + 4) * BATCH, 0};
    sdlf_dataset data = make_dataset();
    const sdlf_loader_options options = {.batch = BATCH, .shuffle = true, .seed = 3};
    make_epochs(&data, options);
    for (int i = 0; i < 5; i++)
        for (int direct = 0; direct < 2; direct++) {
            sdlf_calculator *calculator = NULL;
            if (!CHECK_OK(sdlf_calculator_open(&calculator, "guarded", NULL))) return;
            test_guarded_host_memory(pinned[i]);
            sdlf_loader_options with = options;
            with.calculator = calculator;
            with.no_prefetch = direct;
            sdlf_loader *loader = make_loader(&data, with);
            CHECK(i > 1 || host_bytes(calculator) == 0);
            CHECK(i < 4 || host_bytes(calculator) >= EACH * BATCH);
            for (int b = 0; b < BATCHES && loader != NULL; b++) {
                sdlf_batch batch;
                if (!CHECK_OK(sdlf_loader_next(loader, &batch))) break;
                CHECK(is_kept(&batch, &epochs_kept[0][b]));
            }
            sdlf_loader_free(loader);
            sdlf_calculator_close(calculator);
            test_guarded_host_memory(0);
        }
}

static sdlf_status read_one(void *context, int64_t index, void *to)
{
    (void)context;
    memcpy(to, pixels + index * PIXELS, PIXELS);
    return SDLF_OK;
}

static sdlf_status read_labels(void *context, int64_t index, void *to)
{
    (void)context;
    memcpy(to, &labels[index], sizeof *labels);
    return SDLF_OK;
}

/* All of the memory is reported. */
static void memory_is_told(void)
{
    sdlf_dataset data = make_dataset();
    sdlf_loader_options options = {.batch = BATCH, .no_prefetch = true};
    const int64_t fixed = BATCH * EACH + SAMPLES * 4; /* the batch and the order */
    for (int i = 0; i < 5; i++) {
        if (i == 1) data.samples.data = NULL, data.read = read_one;
        if (i == 2) data.labels.data = NULL, data.read_labels = read_labels;
        if (i == 3) options.shuffle = true;
        if (i == 4) options.automatic.trivial = true;
        int64_t reading = i >= 1 ? BATCH * (PIXELS + 4) : 0; /* samples, and their indices */
        if (i >= 2) reading += BATCH * 4;
        if (i >= 3) reading += SAMPLES * 8;
        if (i >= 4) reading += BATCH * PIXELS;
        sdlf_loader *loader = make_loader(&data, options);
        CHECK_EQUAL(sdlf_loader_memory(loader), fixed + reading);
        sdlf_loader_free(loader);
    }
}

int main(void)
{
    RUN(ranks_take_their_share);
    RUN(batches_do_without_pinned_memory);
    RUN(memory_is_told);
    return test_summary();
}
