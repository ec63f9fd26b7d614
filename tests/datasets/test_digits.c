/* SPDX-License-Identifier: MIT */
/* The procedural digits: the same bits everywhere, balanced, centred, two disjoint splits. */
#include "testing.h"

#include "datasets/datasets_internal.h"
#include "datasets/digits.h"
#include "datasets/digits_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t *image_at(const sdlf_dataset *dataset, int64_t i)
{
    return (const uint8_t *)dataset->samples.data + i * DIGIT_PIXELS;
}

static int32_t label_at(const sdlf_dataset *dataset, int64_t i)
{
    return ((const int32_t *)dataset->labels.data)[i];
}

/* FNV-1a. */
static uint64_t hash(uint64_t state, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++) state = (state ^ at[i]) * 0x100000001B3u;
    return state;
}

/* A change of this hash is a change of the data set: results measured on it must be measured again. */
static void first_images_are_these(void)
{
    const struct {
        const char *argument;
        sdlf_split split;
        size_t count;
        int64_t sum;
    } sets[] = {{"1000", SDLF_SPLIT_TRAIN, 1000, INT64_C(8477827022931195066)},
                {"6000", SDLF_SPLIT_TEST, 1000, INT64_C(6478693072537326140)}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        sdlf_dataset data;
        if (!CHECK_OK(open_digits(&data, sets[i].argument, sets[i].split))) continue;
        CHECK_EQUAL(data.samples.shape.dim[0], (int64_t)sets[i].count);
        uint64_t sum = hash(0xCBF29CE484222325u, data.samples.data, sets[i].count * DIGIT_PIXELS);
        sum = hash(sum, data.labels.data, sets[i].count * sizeof(int32_t));
        CHECK_EQUAL((int64_t)(sum >> 1), sets[i].sum);
        close_digits(&data);
    }
}

/* Each table of points begins with a stroke and ends in time; each digit is written in several ways. */
static void glyphs_are_well_formed(void)
{
    for (int digit = 0; digit < 10; digit++) {
        const digit_glyph *previous = NULL;
        int ways = 0;
        for (int i = 0; i < 1000; i++) {
            const digit_glyph *glyph = digit_glyph_pick(digit, (float)i / 1000);
            if (glyph == previous) continue;
            previous = glyph;
            ways++;
            int count = 0;
            while (count <= DIGIT_MAX_POINTS && glyph->points[count].joint != DIGIT_END) count++;
            CHECK(count >= 3 && count <= DIGIT_MAX_POINTS);
            CHECK_EQUAL(glyph->points[0].joint, DIGIT_START);
            CHECK(count > 0 && glyph->points[count - 1].joint == DIGIT_BEND);
        }
        CHECK(ways >= 3);
        CHECK(digit_glyph_pick(digit, 1 - 0x1p-24f)->weight > 0);
    }
}

static void defaults_are_those_of_mnist(void)
{
    sdlf_dataset train, test;
    CHECK_OK(open_digits(&train, NULL, SDLF_SPLIT_TRAIN));
    CHECK_OK(open_digits(&test, NULL, SDLF_SPLIT_TEST));
    CHECK_TEXT(train.name, "digits (procedural, seed 1)");
    CHECK(sdlf_shape_equal(train.samples.shape, sdlf_shape(60000, 1, 28, 28)));
    CHECK(sdlf_shape_equal(test.samples.shape, sdlf_shape(10000, 1, 28, 28)));
    CHECK(sdlf_shape_equal(train.labels.shape, sdlf_shape(60000)));
    CHECK_EQUAL(train.samples.dtype, SDLF_UINT8);
    CHECK_EQUAL(train.labels.dtype, SDLF_INT32);
    CHECK_EQUAL(train.class_count, 10);
    CHECK_CLOSE(train.mean, 33.3, 1e-5);
    CHECK_CLOSE(train.scale * 78.6, 1.0, 1e-5);

    /* grey levels are close to those of the normalisation constants */
    double sum = 0, squares = 0, count = 60000.0 * DIGIT_PIXELS;
    for (int64_t i = 0; i < 60000; i++)
        for (int k = 0; k < DIGIT_PIXELS; k++) {
            double value = image_at(&train, i)[k];
            sum += value;
            squares += value * value;
        }
    CHECK_CLOSE(sum / count, 33.3, 3.0);
    CHECK_CLOSE(sqrt(squares / count - sum / count * sum / count), 78.6, 5.0);
    close_digits(&train);
    close_digits(&test);
}

/* With any threads, each image is the same as if it were drawn alone, in any order. */
static void an_image_depends_on_its_number_alone(void)
{
    sdlf_dataset many, few;
    CHECK_OK(open_digits(&many, "5000,7", SDLF_SPLIT_TRAIN));
    CHECK_OK(open_digits(&few, "10,7", SDLF_SPLIT_TRAIN));
    int different = 0;
    uint8_t pixels[DIGIT_PIXELS];
    for (int64_t k = 0; k < 5000; k++) {
        int64_t i = k * 1777 % 5000;
        memset(pixels, 0xA5, sizeof pixels);
        digit_draw(pixels, 7, SDLF_SPLIT_TRAIN, i);
        different += memcmp(pixels, image_at(&many, i), DIGIT_PIXELS) != 0;
        different += digit_label(7, SDLF_SPLIT_TRAIN, i) != label_at(&many, i);
    }
    CHECK_EQUAL(different, 0);
    CHECK_EQUAL(memcmp(few.samples.data, many.samples.data, 10 * DIGIT_PIXELS), 0);
    close_digits(&many);
    close_digits(&few);
}

static void every_ten_images_hold_each_digit_once(void)
{
    sdlf_dataset train;
    CHECK_OK(open_digits(&train, "2000", SDLF_SPLIT_TRAIN));
    int incomplete = 0, first_place[10] = {0};
    for (int64_t i = 0; i < 2000; i += 10) {
        unsigned seen = 0;
        for (int k = 0; k < 10; k++) seen |= 1u << label_at(&train, i + k);
        incomplete += seen != 0x3FF;
        first_place[label_at(&train, i)]++;
    }
    CHECK_EQUAL(incomplete, 0);
    for (int d = 0; d < 10; d++) CHECK(first_place[d] > 0); /* in random order */
    close_digits(&train);
}

/* As in MNIST: the ink fits 20x20, and its centre of mass is within half a pixel of pixel 14. */
static void ink_is_boxed_and_centred(void)
{
    sdlf_dataset train;
    CHECK_OK(open_digits(&train, "3000,3", SDLF_SPLIT_TRAIN));
    int off_centre = 0, faint = 0, small = 0, large = 0;
    for (int64_t i = 0; i < 3000; i++) {
        const uint8_t *pixels = image_at(&train, i);
        double mass = 0, x_moment = 0, y_moment = 0;
        int left = 28, right = -1, top = 28, bottom = -1, brightest = 0;
        for (int y = 0; y < 28; y++)
            for (int x = 0; x < 28; x++) {
                int value = pixels[28 * y + x];
                mass += value;
                x_moment += value * x;
                y_moment += value * y;
                if (value > brightest) brightest = value;
                if (value == 0) continue;
                if (x < left) left = x;
                if (x > right) right = x;
                if (y < top) top = y;
                if (y > bottom) bottom = y;
            }
        int width = right - left + 1, height = bottom - top + 1, longer = width > height ? width : height;
        off_centre += !(fabs(x_moment / mass - 14) <= 0.51 && fabs(y_moment / mass - 14) <= 0.51);
        faint += brightest < 150;
        small += longer < 19;
        large += longer > 21;
    }
    CHECK_EQUAL(off_centre, 0);
    CHECK_EQUAL(faint, 0);
    CHECK_EQUAL(small, 0);
    CHECK_EQUAL(large, 0);
    close_digits(&train);
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* No image occurs twice, neither within a split nor in both. */
static void all_images_differ(void)
{
    enum { TRAIN = 12000, TEST = 2000 };
    sdlf_dataset train, test;
    CHECK_OK(open_digits(&train, "12000", SDLF_SPLIT_TRAIN));
    CHECK_OK(open_digits(&test, "12000", SDLF_SPLIT_TEST));
    CHECK_EQUAL(test.samples.shape.dim[0], TEST);
    uint64_t *hashes = malloc((TRAIN + TEST) * sizeof *hashes);
    if (CHECK(hashes != NULL)) {
        for (int i = 0; i < TRAIN; i++) hashes[i] = hash(1, image_at(&train, i), DIGIT_PIXELS);
        for (int i = 0; i < TEST; i++) hashes[TRAIN + i] = hash(1, image_at(&test, i), DIGIT_PIXELS);
        qsort(hashes, TRAIN + TEST, sizeof *hashes, compare_hashes);
        int repeated = 0;
        for (int i = 1; i < TRAIN + TEST; i++) repeated += hashes[i] == hashes[i - 1];
        CHECK_EQUAL(repeated, 0);
    }
    free(hashes);
    close_digits(&train);
    close_digits(&test);
}

/* Digits look like their labels: the nearest mean image names most, and not all. */
static void nearest_mean_tells_most_digits(void)
{
    sdlf_dataset train, test;
    CHECK_OK(open_digits(&train, "6000", SDLF_SPLIT_TRAIN));
    CHECK_OK(open_digits(&test, "6000", SDLF_SPLIT_TEST));
    static double mean[10][DIGIT_PIXELS];
    for (int64_t i = 0; i < 6000; i++)
        for (int k = 0; k < DIGIT_PIXELS; k++) mean[label_at(&train, i)][k] += image_at(&train, i)[k] / 600.0;
    int right[10] = {0}, total = 0;
    for (int64_t i = 0; i < 1000; i++) {
        int best = 0;
        double least = INFINITY;
        for (int d = 0; d < 10; d++) {
            double distance = 0;
            for (int k = 0; k < DIGIT_PIXELS; k++) {
                double difference = image_at(&test, i)[k] - mean[d][k];
                distance += difference * difference;
            }
            if (distance < least) {
                least = distance;
                best = d;
            }
        }
        right[best] += best == label_at(&test, i);
    }
    for (int d = 0; d < 10; d++) {
        CHECK(right[d] > 40); /* of 100 */
        total += right[d];
    }
    CHECK(total > 700);
    CHECK(total < 970);
    close_digits(&train);
    close_digits(&test);
}

int main(void)
{
    RUN(first_images_are_these);
    RUN(glyphs_are_well_formed);
    RUN(defaults_are_those_of_mnist);
    RUN(an_image_depends_on_its_number_alone);
    RUN(every_ten_images_hold_each_digit_once);
    RUN(ink_is_boxed_and_centred);
    RUN(all_images_differ);
    RUN(nearest_mean_tells_most_digits);
    return test_summary();
}
