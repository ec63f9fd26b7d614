/* SPDX-License-Identifier: MIT */
/* Mixup, cutmix, TrivialAugment and RandAugment of a loader's batches: the resulting samples and labels, which are the
 * same at any time and from any source. */
#include "framework/mixing.h"

#include <math.h>
#include <stdlib.h>

#include "framework/operations/changed_pictures.h"
#include "framework/synthetic.h"

enum { COUNT = 37, BATCH = 8, PIXELS = 64 };

static sdlf_loader *open_loader(const sdlf_dataset *data, sdlf_loader_options options)
{
    sdlf_loader *loader = NULL;
    options.batch = BATCH;
    options.seed = 7;
    return CHECK_OK(sdlf_loader_create(&loader, data, &options)) ? loader : NULL;
}

/* ---- mixing ---- */

/* Check each sample of each batch against the unmixed one, with shares drawn as documented. */
static void check_mixing(sdlf_mixing mixing)
{
    sdlf_dataset data = synthetic_dataset(COUNT, 1);
    sdlf_loader *plain = open_loader(&data, (sdlf_loader_options){.shuffle = true});
    sdlf_loader *mixed = open_loader(&data, (sdlf_loader_options){.shuffle = true, .mixing = mixing});
    int32_t order[COUNT];
    uint64_t keys[COUNT];
    int cuts = 0, whole = 0;
    sdlf_shape sample = sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE);
    if (plain == NULL || mixed == NULL) return;
    sdlf_shuffle_order(order, keys, COUNT, 7, 3);
    CHECK_OK(sdlf_loader_seek(plain, 3, 0));
    CHECK_OK(sdlf_loader_seek(mixed, 3, 0));
    for (int first = 0; first < COUNT; first += BATCH) {
        sdlf_batch a, b;
        CHECK_OK(sdlf_loader_next(plain, &a));
        CHECK_OK(sdlf_loader_next(mixed, &b));
        CHECK_EQUAL(a.count, b.count);
        const int32_t *label = a.labels.data, *own = b.labels.data, *second = b.second_labels.data;
        const float *x = a.samples.data, *y = b.samples.data, *share = b.shares.data;
        for (int64_t n = 0; n < a.count; n++) {
            int64_t with = a.count - 1 - n;
            sdlf_mix mix = sdlf_mix_of(&mixing, 7, order[first + n], 3, sample);
            float kept = n == with ? 1 : mix.share, other = 0;
            CHECK(own[n] == label[n] && second[n] == label[with] && share[n] == kept);
            CHECK(kept >= 0.5f && kept <= 1);
            for (int i = 0; i < PIXELS; i++) {
                float u = x[n * PIXELS + i], v = x[with * PIXELS + i], found = y[n * PIXELS + i];
                int h = i / 8, w = i % 8;
                bool inside = mix.cut && h >= mix.top && h < mix.bottom && w >= mix.left && w < mix.right;
                other += (float)(inside && n != with);
                if (mix.cut)
                    CHECK(found == (inside ? v : u) || n == with);
                else
                    CHECK_CLOSE(found, kept * u + (1 - kept) * v, 1e-5);
            }
            if (mix.cut) CHECK_CLOSE(kept, 1 - other / PIXELS, 1e-6);
            cuts += mix.cut;
            whole += kept == 1;
        }
    }
    bool both = mixing.mixup > 0 && mixing.cutmix > 0;
    CHECK(both ? cuts > 5 && cuts < COUNT - 5 : cuts == (mixing.cutmix > 0 ? COUNT : 0));
    CHECK(whole < COUNT / 2);
    sdlf_loader_free(mixed);
    sdlf_loader_free(plain);
    synthetic_release(&data);
}

static void samples_are_mixed(void)
{
    check_mixing((sdlf_mixing){.mixup = 1});
    check_mixing((sdlf_mixing){.mixup = 0.3f});
    check_mixing((sdlf_mixing){.cutmix = 1});
    check_mixing((sdlf_mixing){.mixup = 2, .cutmix = 1});
}

/* max(l, 1 - l) of Beta(a, a): its mean is that of the distribution, which for a = 1 is 3/4, and for a = 2 is 11/16. */
static void shares_are_of_the_beta_distribution(void)
{
    static const struct {
        float a;
        double mean;
    } cases[] = {{1, 0.75}, {2, 0.6875}, {0.5f, 0.5 + 1 / 3.14159265}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double sum = 0;
        for (int n = 0; n < 20000; n++)
            sum += (double)sdlf_mix_of(&(sdlf_mixing){.mixup = cases[i].a}, 3, n, 1, sdlf_shape(4)).share;
        CHECK_CLOSE(sum / 20000, cases[i].mean, 0.005); /* deviation of a mean of 20,000: 0.001 */
    }
}

/* Float targets are mixed like the samples. */
static void targets_are_mixed(void)
{
    float samples[COUNT][2], targets[COUNT][2];
    for (int n = 0; n < COUNT; n++)
        for (int k = 0; k < 2; k++) samples[n][k] = targets[n][k] = (float)(n * 3 + k);
    sdlf_dataset data = {.samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COUNT, 2), samples),
                         .labels = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COUNT, 2), targets),
                         .class_count = 2,
                         .scale = 1};
    sdlf_loader *loader = open_loader(&data, (sdlf_loader_options){.mixing = {.mixup = 1}});
    sdlf_batch batch;
    int moved = 0;
    if (loader == NULL) return;
    CHECK_OK(sdlf_loader_next(loader, &batch));
    CHECK(!sdlf_tensor_present(&batch.shares));
    for (int i = 0; i < 2 * BATCH; i++) {
        CHECK(((const float *)batch.samples.data)[i] == ((const float *)batch.labels.data)[i]);
        moved += ((const float *)batch.samples.data)[i] != samples[i / 2][i % 2];
    }
    CHECK(moved > BATCH);
    sdlf_loader_free(loader);
}

static void what_cannot_be_mixed_is_refused(void)
{
    sdlf_dataset data = synthetic_dataset(COUNT, 1), rows = data;
    sdlf_loader *loader = NULL;
    rows.samples.shape = sdlf_shape(COUNT, PIXELS);
    sdlf_loader_options options = {.batch = BATCH, .mixing = {.cutmix = 1}};
    CHECK_FAILS(sdlf_loader_create(&loader, &rows, &options), SDLF_ERROR_ARGUMENT, "cutmix is for pictures CxHxW");
    options.mixing = (sdlf_mixing){.mixup = 2.5f};
    CHECK_FAILS(sdlf_loader_create(&loader, &rows, &options), SDLF_ERROR_ARGUMENT, "mixup: expected 0 to 2, found 2.5");
    options = (sdlf_loader_options){.batch = BATCH, .automatic.trivial = true};
    CHECK_FAILS(sdlf_loader_create(&loader, &rows, &options), SDLF_ERROR_ARGUMENT, "TrivialAugment is for pictures");
    options.automatic.rand_augment = 1;
    CHECK_FAILS(sdlf_loader_create(&loader, &data, &options), SDLF_ERROR_ARGUMENT, "RandAugment, not both");
    options.automatic = (sdlf_auto_augment){.rand_augment = 9};
    CHECK_FAILS(sdlf_loader_create(&loader, &data, &options), SDLF_ERROR_ARGUMENT, "found 9 and 9");
    options.automatic = (sdlf_auto_augment){.rand_augment = 1, .rand_magnitude = 31};
    CHECK_FAILS(sdlf_loader_create(&loader, &data, &options), SDLF_ERROR_ARGUMENT, "found 1 and 31");
    synthetic_release(&data);
}

/* ---- operations by chance ---- */

enum { SIDE = 6, CHANNELS = 3, SIZE = CHANNELS * SIDE * SIDE };

static void make_picture(uint8_t *picture)
{
    for (int i = 0; i < SIZE; i++) picture[i] = (uint8_t)(sdlf_philox4x32(1, (uint64_t)i, 1, 0).word[0] % 200 + 20);
}

static int operate(uint8_t *to, int operation, float m, bool negative)
{
    uint8_t before[SIZE], scratch[SIZE];
    int changed = 0;
    make_picture(before);
    memcpy(to, before, SIZE);
    sdlf_augment_apply(to, scratch, sdlf_shape(CHANNELS, SIDE, SIDE), operation, m, negative, true);
    for (int i = 0; i < SIZE; i++) changed += to[i] != before[i];
    return changed;
}

enum { SHEAR_X = 1, SHEAR_Y, MOVE_X, MOVE_Y, ROTATE, BRIGHTNESS, SATURATION, CONTRAST, SHARPNESS, POSTERIZE, SOLARIZE };

/* Strength 0 changes nothing; other strengths act as specified by the operation. */
static void operations(void)
{
    uint8_t was[SIZE], is[SIZE];
    make_picture(was);
    for (int operation = 0; operation <= POSTERIZE; operation++) {
        CHECK_EQUAL(operate(is, operation, 0, true), 0);
        if (operation > 0) CHECK(operate(is, operation, 0.9f, false) > SIZE / 4);
    }
    operate(is, MOVE_X, 2.0f / 32, false); /* two pixels to the right, filled black */
    for (int i = 0; i < SIZE; i++) CHECK_EQUAL(is[i], i % SIDE < 2 ? 0 : was[i - 2]);
    operate(is, MOVE_Y, 1.0f / 32, true); /* one up */
    for (int i = 0; i < SIZE; i++) CHECK_EQUAL(is[i], i % (SIDE * SIDE) >= SIDE * (SIDE - 1) ? 0 : was[i + SIDE]);
    operate(is, ROTATE, 90.0f / 135, false);
    for (int h = 0; h < SIDE; h++)
        for (int w = 0; w < SIDE; w++) CHECK_EQUAL(is[h * SIDE + w], was[w * SIDE + SIDE - 1 - h]);
    operate(is, BRIGHTNESS, 0.5f, true);
    for (int i = 0; i < SIZE; i++) CHECK_CLOSE(is[i], 0.505 * was[i], 0.51);
    operate(is, SATURATION, 1 / 0.99f, true); /* grey */
    for (int i = 0; i < SIDE * SIDE; i++)
        CHECK(abs(is[i] - is[i + SIDE * SIDE]) <= 1 && abs(is[i] - is[i + 2 * SIDE * SIDE]) <= 1);
    operate(is, POSTERIZE, 1, false); /* two bits */
    for (int i = 0; i < SIZE; i++) CHECK_EQUAL(is[i], was[i] & 0xc0);
    operate(is, SOLARIZE, 0.5f, false);
    for (int i = 0; i < SIZE; i++) CHECK_EQUAL(is[i], was[i] >= 127.5 ? 255 - was[i] : was[i]);
    operate(is, SOLARIZE + 1, 0, false); /* autocontrast */
    for (int c = 0; c < CHANNELS; c++) {
        int least = 255, most = 0;
        for (int i = c * SIDE * SIDE; i < (c + 1) * SIDE * SIDE; i++) {
            if (is[i] < least) least = is[i];
            if (is[i] > most) most = is[i];
        }
        CHECK(least == 0 && most == 255);
    }
    /* equalize: four values of equally many pixels become 0, 85, 170 and 255, whatever they were */
    uint8_t scratch[1024], even[1024];
    static const uint8_t four[] = {10, 11, 100, 101};
    for (int i = 0; i < 1024; i++) even[i] = four[i % 4];
    sdlf_augment_apply(even, scratch, sdlf_shape(1, 32, 32), SOLARIZE + 2, 0, false, true);
    for (int i = 0; i < 1024; i++) CHECK_CLOSE(even[i], 85.0 * (i % 4), 1.01);
}

static sdlf_status read_one(void *context, int64_t index, void *to)
{
    const sdlf_dataset *data = context;
    memcpy(to, (const uint8_t *)data->samples.data + index * PIXELS, PIXELS);
    return SDLF_OK;
}

/* The same batches from memory and read one by one, prefetched or not, on one thread or several; another epoch draws
 * different ones. */
static void check_batches(sdlf_auto_augment automatic, int least, int most)
{
    sdlf_dataset data = synthetic_dataset(COUNT, 1), other = data;
    sdlf_dataset *sets[] = {&data, &other, &other};
    float kept[COUNT * PIXELS], plain[COUNT * PIXELS];
    int differ = 0;
    other.samples.data = NULL;
    other.read = read_one;
    other.read_context = &data;
    for (int variant = 0; variant < 4; variant++) {
        bool changed = variant < 3;
        other.readers = variant == 2 ? 3 : 1;
        sdlf_loader_options options = {.augment = {.flip = true}, .no_prefetch = variant == 1};
        if (changed) options.automatic = automatic;
        sdlf_loader *loader = open_loader(sets[variant % 3], options);
        sdlf_batch batch;
        if (loader == NULL) return;
        CHECK_OK(sdlf_loader_seek(loader, 1, 0));
        for (int first = 0; first < COUNT; first += BATCH) {
            CHECK_OK(sdlf_loader_next(loader, &batch));
            size_t bytes = (size_t)sdlf_tensor_bytes(&batch.samples);
            float *at = (changed ? kept : plain) + first * PIXELS;
            if (variant == 0 || !changed)
                memcpy(at, batch.samples.data, bytes);
            else
                CHECK(memcmp(at, batch.samples.data, bytes) == 0);
        }
        sdlf_loader_free(loader);
    }
    for (int n = 0; n < COUNT; n++) differ += memcmp(kept + n * PIXELS, plain + n * PIXELS, PIXELS * sizeof *kept) != 0;
    CHECK(differ >= least && differ <= most);
    synthetic_release(&data);
}

static void batches_are_the_same(void)
{
    check_batches((sdlf_auto_augment){.trivial = true}, COUNT / 2, COUNT - 1); /* one operation of 14 changes nothing */
    check_batches((sdlf_auto_augment){.rand_augment = 2}, COUNT / 2, COUNT);
    check_batches((sdlf_auto_augment){.rand_augment = 8, .rand_magnitude = 30}, COUNT - 1, COUNT);
}

/* RandAugment draws each operation equally often, with either sign; several are applied in sequence. */
static void rand_augment_is_as_documented(void)
{
    uint8_t is[SIZE], expected[SIZE], scratch[SIZE];
    sdlf_auto_augment policy = {.rand_augment = 6, .rand_magnitude = 12};
    int seen[14] = {0}, negative = 0;
    for (int image = 0; image < 300; image++) {
        make_picture(is);
        make_picture(expected);
        sdlf_auto_augment_picture(is, scratch, sdlf_shape(CHANNELS, SIDE, SIDE), &policy, 5, image, 2);
        for (uint32_t i = 0; i < 6; i++) {
            uint64_t counter = 16 * (uint64_t)image + 14 + i / 4;
            uint32_t word = sdlf_philox4x32(5, counter, SDLF_STREAM_AUGMENT, 2).word[i % 4];
            int operation = (int)(word * 14ull >> 32);
            seen[operation]++;
            negative += (int)(word & 1);
            sdlf_augment_apply(expected, scratch, sdlf_shape(CHANNELS, SIDE, SIDE), operation, 0.4f, word & 1, false);
        }
        CHECK(memcmp(is, expected, SIZE) == 0);
    }
    for (int i = 0; i < 14; i++) CHECK(seen[i] > 80 && seen[i] < 180); /* 1800 / 14 = 129, deviation 11 */
    CHECK(negative > 800 && negative < 1000);
}

int main(void)
{
    RUN(samples_are_mixed);
    RUN(shares_are_of_the_beta_distribution);
    RUN(targets_are_mixed);
    RUN(what_cannot_be_mixed_is_refused);
    RUN(operations);
    RUN(batches_are_the_same);
    RUN(rand_augment_is_as_documented);
    return test_summary();
}
