/* SPDX-License-Identifier: MIT */
/* Content hashes: the same for data in pieces, and different for every change. */
#include "testing.h"

#include <string.h>

#include "framework/formats/content_hash.h"

static void pieces_make_the_whole(void)
{
    unsigned char bytes[100];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(7 * i);
    for (size_t count = 0; count <= sizeof bytes; count++) {
        uint64_t whole = content_hash(0, bytes, count);
        for (size_t cut = 0; cut <= count; cut += 8)
            CHECK(content_hash(content_hash(0, bytes, cut), bytes + cut, count - cut) == whole);
    }
}

/* A changed bit, an additional byte, and runs of zeros of different lengths. */
static void changes_show(void)
{
    unsigned char bytes[40] = {0};
    uint64_t seen[sizeof bytes * 9];
    size_t count = 0;
    for (size_t length = 0; length < sizeof bytes; length++) seen[count++] = content_hash(0, bytes, length);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        seen[count++] = content_hash(0, bytes, sizeof bytes);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) CHECK(seen[i] != seen[j]);
}

/* File names contain hashes, so they must be the same on every machine and in every version. */
static void is_fixed(void)
{
    CHECK(content_hash(0, "content", 7) == UINT64_C(0xAA0D672A73E6F425));
    CHECK(content_hash(0, "content of a file", 17) == UINT64_C(0x13D99786C21B0CE3));
}

int main(void)
{
    RUN(pieces_make_the_whole);
    RUN(changes_show);
    RUN(is_fixed);
    return test_summary();
}
