/* SPDX-License-Identifier: MIT */
/* Images and masks that are read on demand: the same samples and labels as in memory, with any cache and any number of threads. */
#include <unistd.h>

#include "datasets/same_batches.h"

enum { COUNT = 40, HEIGHT = 4, WIDTH = 5, SIZE = 4 * HEIGHT * WIDTH /* of a picture with its mask */ };

static sdlf_status open_masks(sdlf_dataset **data, const sdlf_dataset_options *options)
{
    char specification[1024];
    snprintf(specification, sizeof specification, "segmentation:%s", root);
    return sdlf_dataset_open_with(data, specification, SDLF_SPLIT_TRAIN, options);
}

static void write_grey(const char *inside, int height, int width, const unsigned char *pixels)
{
    idx_bytes file = idx_make(sdlf_shape(1, height, width), pixels);
    test_write_file(path_of(inside), file.data, file.size);
    free(file.data);
}

/* Images of all sizes, with different pixels and masks; some pixels are ignored. */
static void write_pairs(void)
{
    begin();
    folder("images");
    folder("masks");
    for (int n = 0; n < COUNT; n++) {
        unsigned char pixels[12 * 15], mask[12 * 15];
        int height = 8 + n % 5, width = 9 + n % 7;
        char name[64];
        for (int i = 0; i < height * width; i++) {
            pixels[i] = (unsigned char)(i * 7 + n * 13);
            mask[i] = (unsigned char)((i + n) % 9 == 0 ? 255 : (i / 3 + n) % 4);
        }
        snprintf(name, sizeof name, "images/%02d.png", n);
        write_grey(name, height, width, pixels);
        snprintf(name, sizeof name, "masks/%02d.png", n);
        write_grey(name, height, width, mask);
    }
}

static void streamed_is_held(void)
{
    static const int64_t caches[] = {1, SIZE, 10 * SIZE, 1000 * SIZE};
    write_pairs();
    for (int n = 3; n < 6; n++) { /* left out of both */
        char name[64];
        snprintf(name, sizeof name, n == 4 ? "masks/%02d.png" : "images/%02d.png", n);
        test_write_file(path_of(name), "no picture", 10);
    }
    sdlf_dataset *held = NULL, *streamed = NULL;
    if (!CHECK_OK(open_masks(&held, &(sdlf_dataset_options){.height = HEIGHT, .width = WIDTH}))) return;
    CHECK(held->unread > 0 && held->read_labels == NULL);
    for (int i = 0; i < 8; i++) {
        const sdlf_dataset_options options = {
            .height = HEIGHT, .width = WIDTH, .cache = caches[i / 2], .threads = i % 2 ? 3 : 1};
        if (!CHECK_OK(open_masks(&streamed, &options))) continue;
        bool all = i / 2 == 3;
        CHECK((streamed->samples.data != NULL) == all && (streamed->labels.data != NULL) == all);
        CHECK_EQUAL(streamed->unread, held->unread);
        CHECK(sdlf_shape_equal(held->labels.shape, streamed->labels.shape));
        check_same(held, streamed);
        for (int64_t n = 0; n < held->labels.shape.dim[0]; n++) {
            int32_t label[2][HEIGHT * WIDTH];
            CHECK_OK(sdlf_dataset_read_labels(held, n, label[0]));
            CHECK_OK(sdlf_dataset_read_labels(streamed, n, label[1]));
            CHECK(memcmp(label[0], label[1], sizeof label[0]) == 0);
        }
        sdlf_dataset_free(streamed);
    }
    sdlf_dataset_free(held);
}

/* Masks that have vanished, are no longer images, or have colours, other classes or another size when reread; and images of another size. */
static void files_that_change(void)
{
    static const char *const says[] = {"masks/", "masks/", "expected one of 4 classes, or 255, found 9",
                                       "pixels (height x width), had", "pixels (height x width), had"};
    for (int how = 0; how < 5; how++) {
        const char *inside = how < 4 ? "masks" : "images";
        sdlf_dataset *data = NULL;
        sdlf_loader *loader = NULL;
        sdlf_batch batch = {.count = 0};
        write_pairs();
        if (!CHECK_OK(open_masks(&data, &(sdlf_dataset_options){.height = HEIGHT, .width = WIDTH, .cache = 1}))) return;
        for (int n = 0; n < COUNT; n++) {
            unsigned char grey[13 * 15];
            char name[64];
            memset(grey, how == 2 ? 9 : 1, sizeof grey);
            snprintf(name, sizeof name, "%s/%02d.png", inside, n);
            CHECK(unlink(path_of(name)) == 0);
            if (how == 1) test_write_file(path_of(name), "torn", 4);
            if (how >= 2) write_grey(name, 8 + n % 5 + (how > 2), 9 + n % 7, grey);
        }
        sdlf_status status = sdlf_loader_create(&loader, data, &(sdlf_loader_options){.batch = BATCH});
        if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
        CHECK_FAILS(status, how == 0 ? SDLF_ERROR_IO : SDLF_ERROR_FORMAT, "when the data set was opened");
        CHECK(strstr(sdlf_error_message(), says[how]) != NULL && strstr(sdlf_error_message(), inside) != NULL);
        sdlf_loader_free(loader);
        sdlf_dataset_free(data);
    }
}

static sdlf_status open_and_close(void *context)
{
    const int64_t *cache = context;
    sdlf_dataset *data = NULL;
    sdlf_status status =
        open_masks(&data, &(sdlf_dataset_options){.height = HEIGHT, .width = WIDTH, .cache = *cache, .threads = 1});
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    int64_t cache = 2 * SIZE, none = 0;
    write_pairs();
    for (int n = 8; n < COUNT; n++) {
        char name[64];
        snprintf(name, sizeof name, "images/%02d.png", n);
        CHECK(unlink(path_of(name)) == 0);
    }
    test_every_allocation("segmentation with a cache", open_and_close, &cache);
    test_every_allocation("segmentation", open_and_close, &none);
}

int main(void)
{
    RUN(streamed_is_held);
    RUN(files_that_change);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
