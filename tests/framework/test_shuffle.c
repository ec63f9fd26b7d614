/* SPDX-License-Identifier: MIT */
/* The order of an epoch: the permutation defined by the keys, and a different one for each epoch and seed. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>
#include <sdlf/random.h>

#include "testing.h"

enum { MOST = 60000 };

static int32_t order[MOST], other[MOST];
static uint64_t keys[MOST];

static uint64_t key_of(int32_t sample, uint64_t seed, uint32_t epoch)
{
    sdlf_philox random = sdlf_philox4x32(seed, (uint64_t)sample, SDLF_STREAM_SHUFFLE, epoch);
    return (uint64_t)random.word[1] << 32 | random.word[0];
}

static void sorts_by_keys(void)
{
    static const int64_t counts[] = {0, 1, 2, 3, 23, 24, 25, 26, 100, 1000, 6145, MOST};
    static bool seen[MOST];
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        int64_t count = counts[c];
        int64_t repeated = 0, misplaced = 0;
        memset(seen, 0, sizeof seen);
        sdlf_shuffle_order(order, keys, count, 77, 5);
        for (int64_t i = 0; i < count; i++) {
            if (!CHECK(order[i] >= 0 && order[i] < count)) return;
            repeated += seen[order[i]];
            seen[order[i]] = true;
            misplaced += i > 0 && key_of(order[i - 1], 77, 5) >= key_of(order[i], 77, 5);
        }
        CHECK_EQUAL(repeated, 0);
        CHECK_EQUAL(misplaced, 0);
    }
}

/* The number of samples with the same position in both orders: about one, if they are random. */
static int64_t fixed_points(void)
{
    int64_t same = 0;
    for (int i = 0; i < MOST; i++) same += order[i] == other[i];
    return same;
}

static void depends_on_seed_and_epoch(void)
{
    sdlf_shuffle_order(order, keys, MOST, 1, 0);
    sdlf_shuffle_order(other, keys, MOST, 1, 0);
    CHECK_EQUAL(fixed_points(), MOST);
    sdlf_shuffle_order(other, keys, MOST, 1, 1);
    CHECK(fixed_points() < 12);
    sdlf_shuffle_order(other, keys, MOST, 2, 0);
    CHECK(fixed_points() < 12);
    sdlf_shuffle_order(other, keys, MOST, UINT64_C(1) << 32 | 1, 0); /* the seed's upper half counts */
    CHECK(fixed_points() < 12);
    for (int i = 0; i < MOST; i++) other[i] = i;
    CHECK(fixed_points() < 12);
}

/* The mean position of the first half of the samples: about MOST / 2. */
static void is_fair(void)
{
    double sum = 0;
    sdlf_shuffle_order(order, keys, MOST, 3, 9);
    for (int i = 0; i < MOST; i++) sum += order[i] < MOST / 2 ? i : 0;
    CHECK_CLOSE(sum / (MOST / 2), (MOST - 1) / 2.0, 5 * MOST / 3.46 / 245); /* five deviations */
}

int main(void)
{
    RUN(sorts_by_keys);
    RUN(depends_on_seed_and_epoch);
    RUN(is_fair);
    return test_summary();
}
