/* SPDX-License-Identifier: MIT */
/* A folder whose images are read on demand: the same samples as one in memory, with any cache and any number of threads. */
#include <unistd.h>

#include "datasets/same_batches.h"

enum { COUNT = 40 };

static void streamed_is_held(void)
{
    static const int64_t caches[] = {1, 3 * 4 * 5, 10 * 3 * 4 * 5, 1000 * 3 * 4 * 5};
    two_classes(COUNT, 8, 9);
    for (int i = 0; i < COUNT; i++) { /* with other pixels everywhere */
        char name[64];
        snprintf(name, sizeof name, "a/%03d.png", i);
        idx_bytes file = idx_make(sdlf_shape(1, 8 + i % 5, 9 + i % 7), NULL);
        for (size_t k = 16; k < file.size; k++) file.data[k] = (unsigned char)(file.data[k] + i);
        test_write_file(path_of(name), file.data, file.size);
        free(file.data);
    }
    test_write_file(path_of("a/005.png"), "no picture", 10); /* left out of both */
    sdlf_dataset *held = NULL, *streamed = NULL;
    if (!CHECK_OK(open_it(&held, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.height = 4, .width = 5}))) return;
    for (int i = 0; i < 8; i++) {
        const sdlf_dataset_options options = {
            .height = 4, .width = 5, .cache = caches[i / 2], .threads = i % 2 ? 3 : 1};
        if (!CHECK_OK(open_it(&streamed, SDLF_SPLIT_TRAIN, &options))) continue;
        CHECK((streamed->samples.data != NULL) == (i / 2 == 3)); /* there is room for all */
        CHECK_EQUAL(streamed->unread, held->unread);
        check_same(held, streamed);
        sdlf_dataset_free(streamed);
    }
    sdlf_dataset_free(held);
}

/* Files that have vanished, or are no longer images, when they are read again. */
static void files_that_change(void)
{
    two_classes(COUNT, 4, 5);
    for (int torn = 0; torn < 2; torn++) {
        sdlf_dataset *data = NULL;
        sdlf_loader *loader = NULL;
        sdlf_batch batch = {.count = 0};
        if (!CHECK_OK(open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.cache = 1}))) return;
        char name[64];
        for (int i = 0; i < COUNT; i++) {
            snprintf(name, sizeof name, "b/%03d.JPG", i);
            if (torn)
                picture(name, 4, 5, 50 + i);
            else
                CHECK(unlink(path_of(name)) == 0);
            if (torn) test_write_file(path_of(name), "torn", 4);
        }
        sdlf_status status = sdlf_loader_create(&loader, data, &(sdlf_loader_options){.batch = BATCH});
        for (bool more = true; status == SDLF_OK && more; more = batch.count > 0)
            status = sdlf_loader_next(loader, &batch);
        CHECK_FAILS(status, torn ? SDLF_ERROR_FORMAT : SDLF_ERROR_IO,
                    "which could be read when the data set was opened");
        CHECK(strstr(sdlf_error_message(), ".JPG") != NULL);
        sdlf_loader_free(loader);
        sdlf_dataset_free(data);
        for (int i = 0; i < COUNT; i++) {
            snprintf(name, sizeof name, "b/%03d.JPG", i);
            picture(name, 4, 5, 50 + i);
        }
    }
}

static sdlf_status open_and_close(void *unused)
{
    (void)unused;
    sdlf_dataset *data = NULL;
    sdlf_status status = open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.cache = 100, .threads = 1});
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    two_classes(5, 4, 5);
    test_every_allocation("folder", open_and_close, NULL);
}

int main(void)
{
    RUN(streamed_is_held);
    RUN(files_that_change);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
