/* SPDX-License-Identifier: MIT */
/* Data sets whose samples are read one by one: the same batches as from memory, with any reader. */
#include "framework/loader_epochs.h"

/* The reader's context: the samples, and the index from which it fails. */
typedef struct source {
    const sdlf_dataset *data;
    int64_t fails_at;
    _Atomic int64_t wanted; /* pixels of the requested parts */
} source;

static sdlf_status read_one(void *context, int64_t index, void *to)
{
    const source *s = context;
    if (index == s->fails_at) return sdlf_fail(SDLF_ERROR_IO, "sample %d is gone", (int)index);
    size_t size = (size_t)(sdlf_tensor_bytes(&s->data->samples) / s->data->samples.shape.dim[0]);
    memcpy(to, (const char *)s->data->samples.data + (size_t)index * size, size);
    return SDLF_OK;
}

/* Read only the part; everything else is poisoned. */
static sdlf_status read_part(void *context, int64_t index, const sdlf_sample_part *part, void *to)
{
    source *s = context;
    sdlf_shape shape = sdlf_shape_without(s->data->samples.shape, 0);
    const uint8_t *from = (const uint8_t *)s->data->samples.data + index * sdlf_shape_count(shape);
    uint8_t *sample = to;
    for (int64_t i = 0; i < sdlf_shape_count(shape); i++) {
        int64_t row = i / shape.dim[2] % shape.dim[1], column = i % shape.dim[2];
        bool inside =
            row >= part->rows[0] && row < part->rows[1] && column >= part->columns[0] && column < part->columns[1];
        sample[i] = inside ? from[i] : (uint8_t)(from[i] ^ 0xff);
    }
    s->wanted += (part->rows[1] - part->rows[0]) * (part->columns[1] - part->columns[0]);
    return SDLF_OK;
}

static sdlf_dataset reading(const source *s, int readers)
{
    sdlf_dataset data = *s->data;
    data.samples.data = NULL;
    data.read = read_one;
    data.read_context = (void *)(uintptr_t)s;
    data.readers = readers;
    return data;
}

static void batches_are_those_from_memory(void)
{
    sdlf_dataset memory = make_dataset();
    source s = {.data = &memory, .fails_at = -1};
    sdlf_loader_options options = {.batch = BATCH, .shuffle = true, .seed = 4, .augment = all_augmentation};
    make_epochs(&memory, options);
    for (int variant = 0; variant < 6; variant++) {
        sdlf_dataset data = reading(&s, variant / 2 * 2);
        options.no_prefetch = variant % 2;
        sdlf_loader *loader = make_loader(&data, options);
        if (loader == NULL) return;
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            CHECK_OK(sdlf_loader_seek(loader, epoch, 0));
            for (int b = 0; b < BATCHES; b++) {
                sdlf_batch batch;
                CHECK_OK(sdlf_loader_next(loader, &batch));
                CHECK(is_kept(&batch, &epochs_kept[epoch][b]));
            }
        }
        CHECK(sdlf_loader_memory(loader) > BATCH * PIXELS);
        sdlf_loader_free(loader);
    }
}

/* For every geometric augmentation the requested part of the sample suffices, and with cropping it is less than all. */
static void parts_are_enough(void)
{
    static const sdlf_augmentation augment[] = {{.resized_crop = 0.1f, .flip = true},
                                                {.resized_crop = 0.3f, .rotate = 30, .scale = 0.3f, .shift = 1},
                                                {.crop = 3, .flip = true},
                                                {.shift = 100},
                                                {.reflect = true, .crop = 2},
                                                {.elastic = 1, .resized_crop = 0.2f},
                                                {.brightness = 0.2f},
                                                {.saturation = 0.3f, .hue = 0.2f, .resized_crop = 0.5f, .cutout = 2}};
    sdlf_dataset memory = make_dataset();
    int64_t all = memory.samples.shape.dim[0] * memory.samples.shape.dim[2] * memory.samples.shape.dim[3];
    for (size_t i = 0; i < sizeof augment / sizeof augment[0]; i++) {
        source s = {.data = &memory, .fails_at = -1};
        sdlf_dataset data = reading(&s, 2);
        data.read_part = read_part;
        const sdlf_loader_options options = {.batch = BATCH, .seed = 5, .augment = augment[i], .no_prefetch = true};
        make_epochs(&memory, options);
        sdlf_loader *loader = make_loader(&data, options);
        if (loader == NULL) return;
        for (int b = 0; b < BATCHES; b++) {
            sdlf_batch batch;
            CHECK_OK(sdlf_loader_next(loader, &batch));
            CHECK(is_kept(&batch, &epochs_kept[0][b]));
        }
        sdlf_loader_free(loader);
        bool cropped = augment[i].resized_crop != 0 && augment[i].elastic == 0;
        CHECK(cropped ? s.wanted > 0 && s.wanted < all : s.wanted <= all);
        CHECK((s.wanted == 0) == (augment[i].reflect || augment[i].elastic != 0 || augment[i].brightness != 0));
    }
}

static void a_failure_is_told(void)
{
    sdlf_dataset memory = make_dataset();
    source s = {.data = &memory, .fails_at = 25};
    for (int readers = 1; readers < 5; readers++) {
        sdlf_dataset data = reading(&s, readers);
        sdlf_loader *loader = make_loader(&data, (sdlf_loader_options){.batch = BATCH});
        sdlf_batch batch;
        if (loader == NULL) return;
        for (int b = 0; b < 2; b++) CHECK_OK(sdlf_loader_next(loader, &batch));
        CHECK_FAILS(sdlf_loader_next(loader, &batch), SDLF_ERROR_IO, "sample 25 is gone");
        sdlf_loader_free(loader);
    }
    sdlf_dataset none = memory;
    sdlf_loader *loader = NULL;
    none.samples.data = NULL;
    CHECK_FAILS(sdlf_loader_create(&loader, &none, &(sdlf_loader_options){.batch = 1}), SDLF_ERROR_ARGUMENT,
                "samples.data is NULL, and there is no read");
}

/* Read the labels of pixels; on request the last one is not a class. */
static sdlf_status read_pixels(void *context, int64_t index, void *to)
{
    const source *s = context;
    int32_t *label = to;
    if (index == s->fails_at) return sdlf_fail(SDLF_ERROR_IO, "labels %d are gone", (int)index);
    for (int i = 0; i < HEIGHT * WIDTH; i++) label[i] = (int32_t)(index + i) % 11 - 1;
    if (index == -s->fails_at) label[HEIGHT * WIDTH - 1] = 10;
    return SDLF_OK;
}

/* Labels that are read, with samples in memory or not: the same as labels in memory, moved with the pixels. */
static void labels_are_read(void)
{
    sdlf_dataset memory = make_dataset();
    source s = {.data = &memory, .fails_at = 1000};
    int32_t *all = malloc(SAMPLES * HEIGHT * WIDTH * sizeof *all);
    sdlf_tensor shape = sdlf_tensor_view(SDLF_INT32, sdlf_shape(SAMPLES, HEIGHT, WIDTH), all);
    if (all == NULL) abort();
    for (int64_t n = 0; n < SAMPLES; n++) CHECK_OK(read_pixels(&s, n, all + n * HEIGHT * WIDTH));
    for (int variant = 0; variant < 4; variant++) {
        sdlf_loader *loader[2];
        sdlf_batch batch[2];
        sdlf_dataset data = variant % 2 ? reading(&s, 3) : memory, held = memory;
        data.labels = held.labels = shape;
        data.labels.data = NULL;
        data.read_labels = read_pixels;
        data.read_context = &s;
        const sdlf_loader_options options = {.batch = BATCH,
                                             .shuffle = true,
                                             .no_prefetch = variant / 2 == 1,
                                             .augment = {.flip = variant / 2 == 1, .crop = variant / 2}};
        loader[0] = make_loader(&held, options);
        loader[1] = make_loader(&data, options);
        for (int b = 0; b < BATCHES && loader[0] != NULL && loader[1] != NULL; b++) {
            for (int i = 0; i < 2; i++) CHECK_OK(sdlf_loader_next(loader[i], &batch[i]));
            CHECK(batch[0].count == batch[1].count);
            CHECK(memcmp(batch[0].labels.data, batch[1].labels.data, (size_t)sdlf_tensor_bytes(&batch[0].labels)) == 0);
            CHECK(memcmp(batch[0].samples.data, batch[1].samples.data, (size_t)sdlf_tensor_bytes(&batch[0].samples)) ==
                  0);
        }
        for (int i = 0; i < 2; i++) sdlf_loader_free(loader[i]);
    }
    static const struct {
        int64_t fails_at;
        sdlf_status status;
        const char *says;
    } wrong[] = {{15, SDLF_ERROR_IO, "labels 15 are gone"},
                 {-15, SDLF_ERROR_FORMAT, "sample 15, label 62: expected -1 or 0 to 9, found 10"}};
    for (int i = 0; i < 2; i++) {
        sdlf_dataset data = memory;
        int32_t one[HEIGHT * WIDTH];
        sdlf_batch batch;
        data.labels = shape;
        data.labels.data = NULL;
        s.fails_at = wrong[i].fails_at;
        CHECK_FAILS(sdlf_dataset_read_labels(&data, 15, one), SDLF_ERROR_ARGUMENT, "there is no read_labels");
        data.read_labels = read_pixels;
        data.read_context = &s;
        CHECK_FAILS(sdlf_dataset_read_labels(&data, 15, one), wrong[i].status, wrong[i].says);
        CHECK_FAILS(sdlf_dataset_read_labels(&data, SAMPLES, one), SDLF_ERROR_ARGUMENT, "expected 0 to 102");
        sdlf_loader *loader = make_loader(&data, (sdlf_loader_options){.batch = BATCH});
        CHECK_OK(sdlf_loader_next(loader, &batch));
        CHECK_FAILS(sdlf_loader_next(loader, &batch), wrong[i].status, wrong[i].says);
        sdlf_loader_free(loader);
    }
    int32_t label = -1;
    CHECK_OK(sdlf_dataset_read_labels(&memory, 7, &label));
    CHECK_EQUAL(label, 7);
    free(all);
}

/* Read two targets; on request one is NaN. */
static sdlf_status read_targets(void *context, int64_t index, void *to)
{
    const source *s = context;
    float *target = to;
    target[0] = (float)index;
    target[1] = index == s->fails_at ? NAN : -1;
    return SDLF_OK;
}

static void targets_are_numbers(void)
{
    sdlf_dataset data = make_dataset();
    source s = {.data = &data, .fails_at = 15};
    float target[2];
    sdlf_batch batch;
    data.labels = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(SAMPLES, 2), NULL);
    data.class_count = 2;
    data.read_labels = read_targets;
    data.read_context = &s;
    CHECK_OK(sdlf_dataset_read_labels(&data, 14, target));
    CHECK(target[0] == 14 && target[1] == -1);
    CHECK_FAILS(sdlf_dataset_read_labels(&data, 15, target), SDLF_ERROR_FORMAT,
                "sample 15, target 1: expected a finite number, found nan");
    sdlf_loader *loader = make_loader(&data, (sdlf_loader_options){.batch = BATCH});
    CHECK_OK(sdlf_loader_next(loader, &batch));
    CHECK_FAILS(sdlf_loader_next(loader, &batch), SDLF_ERROR_FORMAT, "sample 15, target 1");
    sdlf_loader_free(loader);
}

static sdlf_status create_and_free(void *context)
{
    sdlf_loader *loader = NULL;
    sdlf_status status =
        sdlf_loader_create(&loader, context, &(sdlf_loader_options){.batch = BATCH, .no_prefetch = true});
    sdlf_loader_free(loader);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    sdlf_dataset memory = make_dataset();
    source s = {.data = &memory, .fails_at = -1};
    sdlf_dataset data = reading(&s, 1);
    test_every_allocation("loader", create_and_free, &data);
}

int main(void)
{
    RUN(batches_are_those_from_memory);
    RUN(parts_are_enough);
    RUN(a_failure_is_told);
    RUN(labels_are_read);
    RUN(targets_are_numbers);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
