/* SPDX-License-Identifier: MIT */
/* Converts a list of edges to an adjacency matrix in CSR form: a counting sort puts the edges in their rows, and each
 * row, short enough for a cache, is sorted in place. One pass over the edges with random access; 4 bytes per edge of
 * memory besides the list. */
#include "graphs/edges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void sort_run(int32_t *column, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        int32_t moved = column[i];
        int64_t to = i;
        for (; to > 0 && column[to - 1] > moved; to--) column[to] = column[to - 1];
        column[to] = moved;
    }
}

static void merge(int32_t *to, const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count)
{
    while (a_count > 0 && b_count > 0) {
        bool from_a = *a <= *b;
        *to++ = from_a ? *a : *b;
        a += from_a, a_count -= from_a;
        b += !from_a, b_count -= !from_a;
    }
    memcpy(to, a_count > 0 ? a : b, (size_t)(a_count + b_count) * sizeof *to);
}

/* Sort short runs, then merge them in pairs, to and from `scratch`, which is as long. Most rows are one run. */
static void sort_columns(int32_t *column, int32_t *scratch, int64_t count)
{
    enum { RUN = 24 };
    int32_t *from = column, *to = scratch;
    for (int64_t first = 0; first < count; first += RUN)
        sort_run(column + first, count - first < RUN ? count - first : RUN);
    for (int64_t run = RUN; run < count; run *= 2) {
        for (int64_t first = 0; first < count; first += 2 * run) {
            int64_t left = count - first, a_count = left < run ? left : run;
            int64_t b_count = left - a_count < run ? left - a_count : run;
            merge(to + first, from + first, a_count, from + first + a_count, b_count);
        }
        int32_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != column) memcpy(column, from, (size_t)count * sizeof *column);
}

/* Gather each row's columns, in list order; `starts` (n + 1 elements) becomes the row offsets. */
static void gather_rows(const edges *list, bool undirected, int64_t *starts, int64_t n, int32_t *columns)
{
    memset(starts, 0, (size_t)(n + 1) * sizeof *starts);
    for (int64_t e = 0; e < list->count; e++) {
        starts[list->from[e] + 1]++;
        if (undirected && list->from[e] != list->to[e]) starts[list->to[e] + 1]++;
    }
    for (int64_t i = 0; i < n; i++) starts[i + 1] += starts[i];
    for (int64_t e = 0; e < list->count; e++) { /* starts[i] advances to the next row's start as row i fills */
        columns[starts[list->from[e]]++] = (int32_t)list->to[e];
        if (undirected && list->from[e] != list->to[e]) columns[starts[list->to[e]]++] = (int32_t)list->from[e];
    }
    memmove(starts + 1, starts, (size_t)n * sizeof *starts);
    starts[0] = 0;
}

/* Sort the columns of each row and remove duplicates. */
static sdlf_status tidy_rows(int64_t *starts, int64_t n, int32_t *columns)
{
    int64_t longest = 1, kept = 0;
    for (int64_t i = 0; i < n; i++) longest = starts[i + 1] - starts[i] > longest ? starts[i + 1] - starts[i] : longest;
    int32_t *scratch = malloc((size_t)longest * sizeof *scratch);
    if (scratch == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory to sort %" PRId64 " edges", longest);
    for (int64_t i = 0, first = 0; i < n; i++) {
        int64_t last = starts[i + 1];
        starts[i] = kept;
        sort_columns(columns + first, scratch, last - first);
        for (int64_t e = first; e < last; e++) {
            if (e == first || columns[e] != columns[kept - 1]) columns[kept++] = columns[e];
        }
        first = last;
    }
    starts[n] = kept;
    free(scratch);
    return SDLF_OK;
}

static sdlf_status fill_matrix(const int64_t *starts, int64_t n, const int32_t *columns, sdlf_tensor *adjacency)
{
    int64_t stored = starts[n];
    sdlf_status status = sdlf_csr_create(adjacency, NULL, SDLF_FLOAT32, n, n, stored);
    if (status != SDLF_OK) return status;
    float *values = sdlf_csr_values(adjacency);
    memcpy(sdlf_csr_offsets(adjacency), starts, (size_t)(n + 1) * sizeof *starts);
    if (stored > 0) memcpy(sdlf_csr_columns(adjacency), columns, (size_t)stored * sizeof *columns);
    for (int64_t e = 0; e < stored; e++) values[e] = 1;
    return SDLF_OK;
}

sdlf_status edges_to_adjacency(const edges *list, int64_t node_count, bool undirected, sdlf_tensor *adjacency)
{
    int32_t *columns = malloc(((size_t)list->count * (undirected ? 2 : 1) + 1) * sizeof *columns);
    int64_t *starts = malloc((size_t)(node_count + 1) * sizeof *starts);
    sdlf_status status = SDLF_OK;
    if (columns == NULL || starts == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "no memory to sort %" PRId64 " edges", list->count);
    if (status == SDLF_OK) {
        gather_rows(list, undirected, starts, node_count, columns);
        status = tidy_rows(starts, node_count, columns);
    }
    if (status == SDLF_OK) status = fill_matrix(starts, node_count, columns, adjacency);
    free(starts);
    free(columns);
    return status;
}
