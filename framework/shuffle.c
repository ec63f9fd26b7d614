/* SPDX-License-Identifier: MIT */
/* The order of an epoch: samples sorted by random keys.
 *
 * The keys are computed in the order of the samples; they are uniform, and distinct except with a probability of 10^-10
 * for 60,000 samples, so their upper bytes split them evenly. They are sorted in place, the most significant byte first
 * ("American flag sort": McIlroy, Bostic, McIlroy, Engineering radix sort, Computing Systems 6 (1), 1993), small groups
 * by insertion. Equal keys are ordered by sample, so that the result does not depend on the sorting method.
 *
 * 60,000 samples: 60,000 Philox blocks of 10 rounds, then about two passes over 12 bytes per sample, in the cache. */
#include <sdlf/dataset.h>
#include <sdlf/random.h>

enum { RADIX_BITS = 8, BUCKETS = 1 << RADIX_BITS, SMALL = 24 };

static bool comes_before(uint64_t key_a, int32_t a, uint64_t key_b, int32_t b)
{
    return key_a != key_b ? key_a < key_b : a < b;
}

static void sort_small(int32_t *order, uint64_t *keys, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        int32_t sample = order[i];
        int64_t j = i;
        for (; j > 0 && comes_before(key, sample, keys[j - 1], order[j - 1]); j--) {
            keys[j] = keys[j - 1];
            order[j] = order[j - 1];
        }
        keys[j] = key;
        order[j] = sample;
    }
}

/* Sorts by the bits of the keys below shift + RADIX_BITS; those above are equal. */
static void sort_range(int32_t *order, uint64_t *keys, int64_t count, int shift)
{
    if (count <= SMALL || shift < 0) {
        sort_small(order, keys, count);
        return;
    }
    int64_t next[BUCKETS], end[BUCKETS] = {0};
    for (int64_t i = 0; i < count; i++) end[keys[i] >> shift & (BUCKETS - 1)]++;
    int64_t sum = 0;
    for (int b = 0; b < BUCKETS; b++) {
        next[b] = sum;
        sum += end[b];
        end[b] = sum;
    }
    /* follow each cycle: move the element to the next position of its bucket, then continue with the one displaced */
    for (int b = 0; b < BUCKETS; b++) {
        while (next[b] < end[b]) {
            uint64_t key = keys[next[b]];
            int32_t sample = order[next[b]];
            for (int to; (to = (int)(key >> shift & (BUCKETS - 1))) != b;) {
                int64_t place = next[to]++;
                uint64_t other_key = keys[place];
                int32_t other = order[place];
                keys[place] = key;
                order[place] = sample;
                key = other_key;
                sample = other;
            }
            keys[next[b]] = key;
            order[next[b]++] = sample;
        }
    }
    for (int b = 0; b < BUCKETS; b++) {
        int64_t start = b > 0 ? end[b - 1] : 0;
        sort_range(order + start, keys + start, end[b] - start, shift - RADIX_BITS);
    }
}

void sdlf_shuffle_order(int32_t *order, uint64_t *keys, int64_t count, uint64_t seed, uint32_t epoch)
{
    if (order == NULL || keys == NULL) return;
    for (int64_t i = 0; i < count; i++) {
        sdlf_philox random = sdlf_philox4x32(seed, (uint64_t)i, SDLF_STREAM_SHUFFLE, epoch);
        keys[i] = (uint64_t)random.word[1] << 32 | random.word[0];
        order[i] = (int32_t)i;
    }
    sort_range(order, keys, count, 64 - RADIX_BITS);
}
