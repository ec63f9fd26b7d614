/* SPDX-License-Identifier: MIT */
/* Mixing the samples of a batch in pairs. See mixing.h. */
#include "framework/mixing.h"

#include <math.h>

#include <sdlf/random.h>

enum { ATTEMPTS = 60, CHOICE = 62, BOX = 63 }; /* of the 64 counters that an image has */

sdlf_status sdlf_mixing_check(const sdlf_mixing *mixing, sdlf_shape sample)
{
    const float value[] = {mixing->mixup, mixing->cutmix};
    for (int i = 0; i < 2; i++)
        if (!(value[i] >= 0 && value[i] <= 2))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "mixing: %s: expected 0 to 2, found %g", i == 0 ? "mixup" : "cutmix",
                             (double)value[i]);
    if (mixing->cutmix > 0 && sample.rank != 3)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "mixing: cutmix is for pictures CxHxW, but samples are %s",
                         sdlf_shape_print(sample).text);
    return SDLF_OK;
}

/* Draws from Beta(a, a) with Joehnk's rejection method: U^(1/a) / (U^(1/a) + V^(1/a)) if that sum is at most 1. */
static double draw_beta(double a, uint64_t seed, uint64_t first, uint32_t epoch)
{
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        sdlf_philox draw = sdlf_philox4x32(seed, first + attempt, SDLF_STREAM_MIX, epoch);
        for (int i = 0; i < 4; i += 2) {
            double x = pow((double)sdlf_uniform_from_word(draw.word[i]), 1 / a),
                   y = pow((double)sdlf_uniform_from_word(draw.word[i + 1]), 1 / a);
            if (x + y <= 1 && x + y > 0) return x / (x + y);
        }
    }
    return 1; /* about one sample in 10^9 is left unmixed */
}

/* A box with `share` of the area around a random centre, clipped at the edges. */
static void cut_box(sdlf_mix *mix, double share, sdlf_philox draw, sdlf_shape sample)
{
    int64_t side[2] = {sample.dim[1], sample.dim[2]}, from[2], to[2];
    for (int i = 0; i < 2; i++) {
        int64_t length = (int64_t)(sqrt(share) * (double)side[i]);
        int64_t centre = (int64_t)((uint64_t)draw.word[i] * (uint64_t)side[i] >> 32);
        from[i] = centre - length / 2;
        to[i] = from[i] + length;
        if (from[i] < 0) from[i] = 0;
        if (to[i] > side[i]) to[i] = side[i];
    }
    *mix = (sdlf_mix){.cut = true, .top = from[0], .bottom = to[0], .left = from[1], .right = to[1]};
    mix->share = 1 - (float)((to[0] - from[0]) * (to[1] - from[1])) / (float)(side[0] * side[1]);
}

sdlf_mix sdlf_mix_of(const sdlf_mixing *mixing, uint64_t seed, int64_t image, int64_t epoch, sdlf_shape sample)
{
    uint64_t first = (uint64_t)image * 64;
    uint32_t step = (uint32_t)epoch;
    bool both = mixing->mixup > 0 && mixing->cutmix > 0;
    bool cut = both ? sdlf_philox4x32(seed, first + CHOICE, SDLF_STREAM_MIX, step).word[0] >> 31 : mixing->cutmix > 0;
    double l = draw_beta((double)(cut ? mixing->cutmix : mixing->mixup), seed, first, step), share = fmax(l, 1 - l);
    sdlf_mix mix = {.share = (float)share};
    if (cut) cut_box(&mix, 1 - share, sdlf_philox4x32(seed, first + BOX, SDLF_STREAM_MIX, step), sample);
    return mix;
}

/* Mixes both at once, since each needs the other's original values. */
static void mix_values(float *a, float *b, int64_t count, float share_a, float share_b)
{
    for (int64_t i = 0; i < count; i++) {
        float x = a[i], y = b[i];
        a[i] = share_a * x + (1 - share_a) * y;
        b[i] = share_b * y + (1 - share_b) * x;
    }
}

static float mixed(const sdlf_mix *mix, int64_t h, int64_t w, float own, float other)
{
    if (!mix->cut) return mix->share * own + (1 - mix->share) * other;
    return h >= mix->top && h < mix->bottom && w >= mix->left && w < mix->right ? other : own;
}

static void mix_pictures(float *a, float *b, sdlf_shape sample, const sdlf_mix *mix_a, const sdlf_mix *mix_b)
{
    for (int64_t c = 0; c < sample.dim[0]; c++)
        for (int64_t h = 0; h < sample.dim[1]; h++)
            for (int64_t w = 0; w < sample.dim[2]; w++, a++, b++) {
                float x = *a, y = *b;
                *a = mixed(mix_a, h, w, x, y);
                *b = mixed(mix_b, h, w, y, x);
            }
}

void sdlf_mix_batch(sdlf_batch *batch, const sdlf_mixing *mixing, uint64_t seed, const int32_t *images, int64_t epoch)
{
    sdlf_shape sample = sdlf_shape_without(batch->samples.shape, 0);
    int64_t size = sdlf_shape_count(sample), count = batch->count;
    bool targets = batch->labels.dtype == SDLF_FLOAT32;
    int64_t row = targets ? sdlf_tensor_count(&batch->labels) / count : 0;
    float *shares = batch->shares.data, *samples = batch->samples.data, *target = batch->labels.data;
    int32_t *second = batch->second_labels.data;
    for (int64_t i = 0; i < (count + 1) / 2; i++) {
        int64_t j = count - 1 - i;
        bool alone = images[i] == images[j]; /* the middle one, which is not mixed */
        sdlf_mix a = sdlf_mix_of(mixing, seed, images[i], epoch, sample),
                 b = sdlf_mix_of(mixing, seed, images[j], epoch, sample);
        if (alone) a.share = b.share = 1;
        if (!alone && sample.rank == 3)
            mix_pictures(samples + i * size, samples + j * size, sample, &a, &b);
        else if (!alone)
            mix_values(samples + i * size, samples + j * size, size, a.share, b.share);
        if (targets && !alone) mix_values(target + i * row, target + j * row, row, a.share, b.share);
        if (targets) continue;
        second[i] = ((const int32_t *)batch->labels.data)[j];
        second[j] = ((const int32_t *)batch->labels.data)[i];
        shares[i] = a.share;
        shares[j] = b.share;
    }
}
