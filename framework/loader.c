/* SPDX-License-Identifier: MIT */
/* Loader: batches in order, from a batch maker, made ahead of time by a prefetch thread.
 *
 * Batch b of epoch e is item e * batches + b of the prefetch queue. At the end of an epoch the thread therefore
 * continues with the next epoch's order and first batches, which are ready when the seek to them follows.
 *
 * There are three slots: one in use, one ready, one being made. If the process may use only one core, a thread would
 * only compete with the caller's; batches are then made on demand. */
#include <sdlf/dataset.h>
#include <sdlf/machine.h>

#include <inttypes.h>
#include <stdlib.h>

#include "framework/batch_maker.h"
#include "framework/prefetch.h"
#include "framework/require.h"

enum { SLOTS = 3 };

struct sdlf_loader {
    sdlf_batch_maker maker;
    sdlf_batch slot[SLOTS]; /* without prefetching only the first is used */
    int64_t epoch, next;    /* the next batch that sdlf_loader_next returns */
    bool prefetching;
    sdlf_prefetch prefetch;
};

/* Makes item `number` of the queue; runs on the prefetch thread. */
static sdlf_status make_item(void *context, int64_t number, int slot)
{
    sdlf_loader *loader = context;
    int64_t batches = loader->maker.batches;
    return sdlf_batch_maker_make(&loader->maker, number / batches, number % batches, &loader->slot[slot]);
}

sdlf_status sdlf_loader_create(sdlf_loader **loader, const sdlf_dataset *dataset, const sdlf_loader_options *options)
{
    SDLF_REQUIRE(loader);
    *loader = NULL;
    SDLF_REQUIRE(dataset);
    SDLF_REQUIRE(options);
    sdlf_loader *made = calloc(1, sizeof *made);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "loader: no memory");
    bool prefetching = !options->no_prefetch && sdlf_machine_processors() > 1;
    sdlf_status status = sdlf_batch_maker_init(&made->maker, dataset, options);
    if (status == SDLF_OK) status = sdlf_batches_create(made->slot, prefetching ? SLOTS : 1, &made->maker);
    if (status == SDLF_OK && prefetching) {
        status = sdlf_prefetch_start(&made->prefetch, SLOTS, make_item, made);
        made->prefetching = status == SDLF_OK;
    }
    if (status != SDLF_OK) {
        sdlf_loader_free(made);
        return status;
    }
    *loader = made;
    return SDLF_OK;
}

void sdlf_loader_free(sdlf_loader *loader)
{
    if (loader == NULL) return;
    if (loader->prefetching) sdlf_prefetch_stop(&loader->prefetch);
    for (int i = 0; i < SLOTS; i++) sdlf_batch_release(&loader->slot[i], &loader->maker);
    sdlf_batch_maker_release(&loader->maker);
    free(loader);
}

sdlf_status sdlf_loader_seek(sdlf_loader *loader, int64_t epoch, int64_t first)
{
    SDLF_REQUIRE(loader);
    int64_t batches = loader->maker.batches;
    if (epoch < 0 || epoch > UINT32_MAX || first < 0 || first > batches) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "loader: expected an epoch of 0 to %" PRIu32 " and a batch of 0 to %" PRId64
                         ", found epoch %" PRId64 ", batch %" PRId64,
                         UINT32_MAX, batches, epoch, first);
    }
    loader->epoch = epoch;
    loader->next = first;
    if (loader->prefetching) sdlf_prefetch_seek(&loader->prefetch, epoch * batches + first);
    return SDLF_OK;
}

sdlf_status sdlf_loader_next(sdlf_loader *loader, sdlf_batch *batch)
{
    SDLF_REQUIRE(loader);
    SDLF_REQUIRE(batch);
    *batch = (sdlf_batch){0};
    if (loader->next >= loader->maker.batches) {
        if (loader->prefetching) sdlf_prefetch_give_back(&loader->prefetch);
        return SDLF_OK;
    }
    int slot = 0;
    sdlf_status status = loader->prefetching
                             ? sdlf_prefetch_take(&loader->prefetch, &slot)
                             : sdlf_batch_maker_make(&loader->maker, loader->epoch, loader->next, &loader->slot[0]);
    if (status != SDLF_OK) return status;
    loader->next++;
    *batch = loader->slot[slot];
    return SDLF_OK;
}

int64_t sdlf_loader_batches(const sdlf_loader *loader)
{
    if (loader == NULL) return 0;
    return loader->maker.batches;
}

int64_t sdlf_loader_memory(const sdlf_loader *loader)
{
    if (loader == NULL) return 0;
    return sdlf_batch_maker_memory(&loader->maker, loader->prefetching ? SLOTS : 1);
}
