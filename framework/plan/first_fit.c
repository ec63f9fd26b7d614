/* SPDX-License-Identifier: MIT */
/* First-fit placement of blocks in memory and time. See first_fit.h. */
#include "framework/plan/first_fit.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
    int64_t begin, end;
} span;

/* Spans in order, with a gap between any two. */
typedef struct span_set {
    span *spans;
    int count, capacity;
} span_set;

/* An interval of time: spans of blocks whose lifetime decomposes into this interval, and spans of blocks stored in the
 * intervals below. */
typedef struct stretch {
    span_set throughout, below;
} stretch;

enum { MOST_SETS = 256 };

struct first_fit {
    stretch *tree; /* tree[1] is all time; tree[i] is halved into tree[2 i] and tree[2 i + 1] */
    int times;     /* a power of 2 */
    int64_t looks;
    /* the spans that a block must not overlap: two sets for each interval on the path to its own, of which there are
     * four per level */
    const span_set *asked[MOST_SETS];
    int asked_count;
};

first_fit *first_fit_create(int times)
{
    first_fit *fit = calloc(1, sizeof *fit);
    if (fit == NULL) return NULL;
    fit->times = 1;
    while (fit->times < times) fit->times *= 2;
    fit->tree = calloc(2 * (size_t)fit->times, sizeof *fit->tree);
    if (fit->tree != NULL) return fit;
    free(fit);
    return NULL;
}

void first_fit_free(first_fit *fit)
{
    if (fit == NULL) return;
    for (int i = 1; i < 2 * fit->times; i++) {
        free(fit->tree[i].throughout.spans);
        free(fit->tree[i].below.spans);
    }
    free(fit->tree);
    free(fit);
}

int64_t first_fit_looks(const first_fit *fit)
{
    return fit->looks;
}

/* The first span that ends after `at`; the count of spans if none does. */
static int find_span(const span_set *set, int64_t at)
{
    int low = 0, high = set->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (set->spans[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds a span, merged with those that it touches. */
static sdlf_status take(span_set *set, span taken)
{
    int from = find_span(set, taken.begin - 1), to = from; /* spans [from, to) touch it */
    while (to < set->count && set->spans[to].begin <= taken.end) to++;
    if (from < to) {
        if (set->spans[from].begin < taken.begin) taken.begin = set->spans[from].begin;
        if (set->spans[to - 1].end > taken.end) taken.end = set->spans[to - 1].end;
    } else if (set->count == set->capacity) {
        int capacity = set->capacity != 0 ? 2 * set->capacity : 4;
        span *spans = realloc(set->spans, (size_t)capacity * sizeof *spans);
        if (spans == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its arena's blocks");
        set->spans = spans;
        set->capacity = capacity;
    }
    memmove(&set->spans[from + 1], &set->spans[to], (size_t)(set->count - to) * sizeof *set->spans);
    set->spans[from] = taken;
    set->count += 1 - (to - from);
    return SDLF_OK;
}

/* Node i is [begin, begin + length). Adds the span to all nodes that decompose first .. last. */
static sdlf_status take_times(first_fit *fit, int i, int begin, int length, int first, int last, span taken)
{
    if (last < begin || first >= begin + length) return SDLF_OK;
    if (first <= begin && begin + length - 1 <= last) return take(&fit->tree[i].throughout, taken);
    sdlf_status status = take(&fit->tree[i].below, taken);
    int half = length / 2;
    if (status == SDLF_OK) status = take_times(fit, 2 * i, begin, half, first, last, taken);
    if (status == SDLF_OK) status = take_times(fit, 2 * i + 1, begin + half, half, first, last, taken);
    return status;
}

static void ask(first_fit *fit, const span_set *set)
{
    if (set->count > 0) fit->asked[fit->asked_count++] = set;
}

/* Collects the sets of spans that are occupied at some time of first .. last. */
static void ask_times(first_fit *fit, int i, int begin, int length, int first, int last)
{
    if (last < begin || first >= begin + length) return;
    ask(fit, &fit->tree[i].throughout);
    if (first <= begin && begin + length - 1 <= last) {
        ask(fit, &fit->tree[i].below);
        return;
    }
    int half = length / 2;
    ask_times(fit, 2 * i, begin, half, first, last);
    ask_times(fit, 2 * i + 1, begin + half, half, first, last);
}

/* The lowest offset at or after `at` that is free in one set. */
static int64_t next_free(first_fit *fit, const span_set *set, int64_t at, int64_t bytes)
{
    for (int i = find_span(set, at); i < set->count && set->spans[i].begin < at + bytes; i++) {
        at = set->spans[i].end;
        fit->looks++;
    }
    fit->looks++;
    return at;
}

sdlf_status first_fit_place(first_fit *fit, int first, int last, int64_t bytes, int64_t *offset)
{
    *offset = 0;
    if (bytes == 0) return SDLF_OK;
    fit->asked_count = 0;
    ask_times(fit, 1, 0, fit->times, first, last);
    for (int agreed = 0, i = 0; agreed < fit->asked_count; i = (i + 1) % fit->asked_count) { /* until all sets agree */
        int64_t at = next_free(fit, fit->asked[i], *offset, bytes);
        agreed = at == *offset ? agreed + 1 : 1;
        *offset = at;
    }
    return take_times(fit, 1, 0, fit->times, first, last, (span){*offset, *offset + bytes});
}
