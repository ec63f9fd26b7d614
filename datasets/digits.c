/* SPDX-License-Identifier: MIT */
/* digits: an embedded data set of handwriting-like digits, drawn when it is opened; nothing is read or downloaded.
 *
 *     digits              60,000 images for training, 10,000 for testing, seed 1
 *     digits:COUNT        COUNT for training, a sixth of that (rounded up) for testing
 *     digits:COUNT,SEED
 *
 * 28x28 grey levels, white on black, ten classes in equal parts; training and testing draw from different streams of
 * random numbers. docs/guides/digits.md says how a digit is made. */
#include "datasets/digits.h"
#include "datasets/datasets_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/machine.h>

#include "framework/parallel.h"

enum { CLASS_COUNT = 10, TRAIN_COUNT = 60000, TRAIN_PER_TEST = 6, IMAGES_PER_PART = 256 };

/* Shuffling an epoch uses int32 image numbers. */
static const uint64_t max_count = INT32_MAX;

/* ---- one image ---- */

int digit_label(uint64_t seed, sdlf_split split, int64_t image)
{
    assert(image >= 0);
    /* Philox steps 0 and 1 are used by the images; the labels use 2 and 3 */
    sdlf_philox words[3];
    for (int i = 0; i < 3; i++)
        words[i] = sdlf_philox4x32(seed, (uint64_t)image / CLASS_COUNT * 4 + (uint64_t)i, SDLF_STREAM_DATASET,
                                   2 + (uint32_t)split);
    uint8_t order[CLASS_COUNT] = {0};
    for (int i = 0; i < CLASS_COUNT; i++) {
        /* insert i at a random position among the first i + 1 */
        uint32_t place = (uint32_t)((uint64_t)words[i / 4].word[i % 4] * (uint32_t)(i + 1) >> 32);
        order[i] = order[place];
        order[place] = (uint8_t)i;
    }
    return order[image % CLASS_COUNT];
}

void digit_draw(uint8_t *pixels, uint64_t seed, sdlf_split split, int64_t image)
{
    digit_segment segments[DIGIT_MAX_SEGMENTS];
    digit_random random = digit_random_start(seed, split, image);
    int count = digit_write(segments, digit_label(seed, split, image), &random);
    digit_render(pixels, segments, count, &random);
}

/* ---- all images, on several threads ---- */

typedef struct drawing {
    uint8_t *samples;
    int32_t *labels;
    uint64_t seed;
    sdlf_split split;
    int64_t count;
} drawing;

static void draw_part(void *context, int64_t part)
{
    const drawing *d = context;
    int64_t first = part * IMAGES_PER_PART;
    for (int64_t i = first; i < first + IMAGES_PER_PART && i < d->count; i++) {
        d->labels[i] = digit_label(d->seed, d->split, i);
        digit_draw(d->samples + i * DIGIT_PIXELS, d->seed, d->split, i);
    }
}

/* ---- the argument ---- */

/* Read a decimal number, digits only, at most `limit`, and move `text` past it. */
static bool read_number(const char **text, uint64_t limit, uint64_t *number)
{
    const char *at = *text;
    *number = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*number > (limit - digit) / 10) return false;
        *number = *number * 10 + digit;
    }
    bool any = at != *text;
    *text = at;
    return any;
}

static sdlf_status read_argument(const char *argument, uint64_t *count, uint64_t *seed)
{
    *count = TRAIN_COUNT;
    *seed = 1;
    if (!argument) return SDLF_OK;
    const char *at = argument;
    if (!read_number(&at, max_count, count) || *count == 0 || (*at != '\0' && *at != ','))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "digits: expected digits:COUNT or digits:COUNT,SEED with a COUNT from 1 to %" PRIu64
                         ", found 'digits:%s'",
                         max_count, argument);
    if (*at == '\0') return SDLF_OK;
    at++;
    const char *first = at;
    if (!read_number(&at, UINT64_MAX, seed) || *at != '\0')
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "digits: expected a seed from 0 to %" PRIu64 " after the comma, found '%s'", UINT64_MAX,
                         first);
    if (*first == '0' && at - first > 1) /* 60,000 was meant as one number */
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "digits: the seed '%s' begins with a zero; write counts without a comma, as in digits:60000",
                         first);
    return SDLF_OK;
}

/* Refuse a set that cannot fit in memory before drawing it. */
static sdlf_status check_memory(int64_t bytes, int64_t count)
{
    char what[64];
    snprintf(what, sizeof what, "digits: %" PRId64 " images", count);
    return sdlf_machine_check(bytes, what);
}

/* ---- the class ---- */

/* Parse the number of images and the seed from the argument. */
static sdlf_status read_request(const char *argument, sdlf_split split, int64_t *count, uint64_t *seed)
{
    uint64_t asked;
    sdlf_status status = read_argument(argument, &asked, seed);
    if (status != SDLF_OK) return status;
    *count = (int64_t)asked;
    if (split == SDLF_SPLIT_TEST) *count = (*count + TRAIN_PER_TEST - 1) / TRAIN_PER_TEST;
    return check_memory(*count * (DIGIT_PIXELS + (int64_t)sizeof(int32_t)), *count);
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    int64_t count;
    uint64_t seed;
    return read_request(argument, split, &count, &seed);
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    int64_t count;
    uint64_t seed;
    sdlf_status status = read_request(argument, split, &count, &seed);
    if (status != SDLF_OK) return status;

    char name[64];
    int length = snprintf(name, sizeof name, "digits (procedural, seed %" PRIu64 ")", seed);
    dataset->name = malloc((size_t)length + 1);
    if (!dataset->name) return sdlf_fail(SDLF_ERROR_MEMORY, "digits: no memory for the name");
    memcpy(dataset->name, name, (size_t)length + 1);
    sdlf_shape shape = sdlf_shape(count, 1, DIGIT_SIDE, DIGIT_SIDE);
    dataset->class_count = CLASS_COUNT;
    dataset->mean = SDLF_HANDWRITING_MEAN;
    dataset->scale = SDLF_HANDWRITING_SCALE;
    dataset->samples = sdlf_tensor_view(SDLF_UINT8, shape, NULL);
    dataset->labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), NULL);
    if (options->outline) return SDLF_OK;
    status = sdlf_tensor_create(&dataset->samples, NULL, SDLF_UINT8, shape);
    if (status == SDLF_OK) status = sdlf_tensor_create(&dataset->labels, NULL, SDLF_INT32, sdlf_shape(count));
    if (status != SDLF_OK) return sdlf_fail_context(status, "digits");
    drawing all = {dataset->samples.data, dataset->labels.data, seed, split, count};
    parallel_for((count + IMAGES_PER_PART - 1) / IMAGES_PER_PART, options->threads, draw_part, &all);
    return SDLF_OK;
}

const sdlf_dataset_class sdlf_digits_dataset_class = {
    .name = "digits",
    .summary = "handwriting-like digits, generated on demand; digits:COUNT or digits:COUNT,SEED (default 60000,1)",
    .load = load,
    .check = check,
};
