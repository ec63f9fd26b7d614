/* SPDX-License-Identifier: MIT */
/* First-fit allocation in an arena, checked pair by pair against the plain rule. */
#include <stdlib.h>

#include <sdlf/random.h>

#include "framework/plan/first_fit.h"
#include "testing.h"

enum { MOST = 400 };

typedef struct block {
    int first, last;
    int64_t bytes, offset;
} block;

/* The lowest offset at which block i overlaps no earlier block. */
static int64_t plain_offset(const block *blocks, int i)
{
    int64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int j = 0; j < i; j++) {
            bool together = blocks[j].first <= blocks[i].last && blocks[i].first <= blocks[j].last;
            int64_t end = blocks[j].offset + blocks[j].bytes;
            if (!together || offset >= end || blocks[j].offset >= offset + blocks[i].bytes) continue;
            offset = end;
            moved = true;
        }
    }
    return offset;
}

static uint32_t draw(uint64_t seed, int i, int which)
{
    return sdlf_philox4x32(seed, (uint64_t)i, 7, 0).word[which];
}

/* Short and long lifetimes, few and many sizes, in random order. */
static void offsets_are_the_lowest(void)
{
    static block blocks[MOST];
    for (uint64_t seed = 1; seed <= 40; seed++) {
        int times = 1 + (int)(draw(seed, 0, 0) % 300), count = (int)(seed * 10), wrong = 0;
        uint32_t longest = seed % 2 ? 8 : (uint32_t)times, sizes = seed % 3 ? 1000 : 4;
        first_fit *fit = first_fit_create(times);
        if (!CHECK(fit != NULL)) return;
        for (int i = 0; i < count; i++) {
            block *r = &blocks[i];
            r->first = (int)(draw(seed, i, 0) % (uint32_t)times);
            r->last = r->first + (int)(draw(seed, i, 1) % longest);
            if (r->last >= times) r->last = times - 1;
            r->bytes = 64 * (int64_t)(draw(seed, i, 2) % sizes);
            CHECK_OK(first_fit_place(fit, r->first, r->last, r->bytes, &r->offset));
            wrong += r->offset != plain_offset(blocks, i);
        }
        CHECK_EQUAL(wrong, 0);
        first_fit_free(fit);
    }
}

/* Nested lifetimes, as of activations that the backward pass reads. */
static int64_t looks_at_nested(int count)
{
    first_fit *fit = first_fit_create(2 * count);
    if (!CHECK(fit != NULL)) return 0;
    for (int i = 0; i < count; i++) {
        int64_t offset;
        CHECK_OK(first_fit_place(fit, i, 2 * count - 1 - i, 64, &offset));
        if (offset != 64 * (int64_t)i) CHECK_EQUAL(offset, 64 * (int64_t)i);
    }
    int64_t looks = first_fit_looks(fit);
    first_fit_free(fit);
    return looks;
}

static void rooms_that_all_live_together_are_not_looked_through(void)
{
    CHECK(looks_at_nested(16000) < 24 * looks_at_nested(1000));
}

static sdlf_status place_some(void *unused)
{
    (void)unused;
    first_fit *fit = first_fit_create(50);
    if (fit == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "none");
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < 30 && status == SDLF_OK; i++) {
        int64_t offset;
        status = first_fit_place(fit, i, i + 1 + i % 7, 64 * (1 + i % 5), &offset);
    }
    first_fit_free(fit);
    return status;
}

static void memory_that_is_out_is_said(void)
{
    test_every_allocation("placing blocks", place_some, NULL);
}

int main(void)
{
    RUN(offsets_are_the_lowest);
    RUN(rooms_that_all_live_together_are_not_looked_through);
    RUN(memory_that_is_out_is_said);
    return test_summary();
}
