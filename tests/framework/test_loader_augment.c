/* SPDX-License-Identifier: MIT */
/* A loader's augmentation of a sample depends only on seed, epoch and sample, and each part of it has an
 * effect. */
#include "framework/loader_epochs.h"

/* The image of a sample in epoch `epoch`, wherever it is in its batch. */
static const float *find_picture(const sdlf_loader_options *options, int epoch, int32_t sample)
{
    int32_t order[SAMPLES];
    uint64_t keys[SAMPLES];
    sdlf_shuffle_order(order, keys, SAMPLES, options->seed, (uint32_t)epoch);
    for (int i = 0; i < SAMPLES; i++) {
        if ((options->shuffle ? order[i] : i) == sample)
            return epochs_kept[epoch][i / BATCH].samples + i % BATCH * PIXELS;
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
    options.shuffle = true; /* elsewhere in the epoch, but warped the same way */
    make_epochs(&dataset, options);
    for (int i = 0; i < SAMPLES; i++)
        other_when_shuffled += memcmp(first[2][i], find_picture(&options, 2, i), bytes) != 0;
    options.augment.seed = 4; /* the loader's own seed, given explicitly */
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

/* Each part of the augmentation changes images on its own; no augmentation changes nothing. */
static void each_augmentation_counts(void)
{
    static const sdlf_augmentation parts[] = {
        {.seed = 3}, {.shift = 2}, {.rotate = 20}, {.scale = 0.2f}, {.elastic = 2}};
    sdlf_dataset dataset = make_dataset();
    for (int p = 0; p < 5; p++) {
        make_epochs(&dataset, (sdlf_loader_options){.seed = 1, .augment = parts[p]});
        int changed = 0;
        for (int i = 0; i < SAMPLES; i++) {
            kept *k = &epochs_kept[0][i / BATCH];
            sdlf_batch batch = {.samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), k->samples),
                                .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(1), k->labels)};
            changed += !holds(&batch, i % BATCH, i);
        }
        CHECK_EQUAL(changed, p == 0 ? 0 : SAMPLES);
    }
}

int main(void)
{
    RUN(augments_repeatably);
    RUN(each_augmentation_counts);
    return test_summary();
}
