/* SPDX-License-Identifier: MIT */
#include "framework/formats/content_hash.h"

#include <string.h>

#include "framework/formats/little_endian.h"

/* Each step is bijective in the word and in the hash. */
static uint64_t step(uint64_t hash, const unsigned char word[8])
{
    hash = ((hash ^ load_little_endian_64(word)) + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

uint64_t content_hash(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (; count >= 8; at += 8, count -= 8) hash = step(hash, at);
    if (count == 0) return hash;
    unsigned char last[8] = {0};
    memcpy(last, at, count);
    return step(hash, last) + count;
}
