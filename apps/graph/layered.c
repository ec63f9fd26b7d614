/* SPDX-License-Identifier: MIT */
/* See layered.h. Four steps: ranks by the longest path; a bend for every rank that an edge crosses; the order in each
 * rank by barycentres, sweeping down and up in turns; x coordinates as near to the neighbours' as the minimum distances
 * allow. */
#include "apps/graph/layered.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "apps/system/memory.h"

enum { SWEEPS = 8, PLACINGS = 12, BENDS_MOST = 500000 };
static const double rank_gap = 30, node_gap = 22, bend_width = 10, node_weight = 60;

/* A node of the graph, or a bend of an edge. */
typedef struct item {
    int rank, place; /* in its rank, from the left */
    double x, width, wanted, weight;
} item;

typedef struct sheet {
    item *item;
    int count;
    int *above, *above_first; /* the neighbours of item i in the rank above: above[above_first[i] ...] */
    int *below, *below_first;
    int *row, *row_first; /* items by rank, in their order */
    int rank_count;
} sheet;

static void find_ranks(const layered *g, sheet *s)
{
    int *sorted_first = memory_allocate((size_t)(g->node_count + 1) * sizeof *sorted_first);
    int *sorted = memory_allocate((size_t)(g->edge_count + 1) * sizeof *sorted);
    for (int e = 0; e < g->edge_count; e++) sorted_first[g->edge[e].to + 1]++;
    for (int i = 0; i < g->node_count; i++) sorted_first[i + 1] += sorted_first[i];
    int *next = memory_allocate((size_t)(g->node_count + 1) * sizeof *next);
    for (int i = 0; i < g->node_count; i++) next[i] = sorted_first[i];
    for (int e = 0; e < g->edge_count; e++) sorted[next[g->edge[e].to]++] = g->edge[e].from;
    for (int i = 0; i < g->node_count; i++)
        for (int k = sorted_first[i]; k < sorted_first[i + 1]; k++)
            if (s->item[sorted[k]].rank >= s->item[i].rank) s->item[i].rank = s->item[sorted[k]].rank + 1;
    /* An item without inputs goes directly above its first reader. */
    for (int i = 0; i < g->node_count; i++) next[i] = INT_MAX;
    for (int e = 0; e < g->edge_count; e++) {
        int rank = s->item[g->edge[e].to].rank;
        if (rank < next[g->edge[e].from]) next[g->edge[e].from] = rank;
    }
    for (int i = 0; i < g->node_count; i++)
        if (sorted_first[i] == sorted_first[i + 1] && next[i] != INT_MAX) s->item[i].rank = next[i] - 1;
    free(sorted_first);
    free(sorted);
    free(next);
    for (int i = 0; i < g->node_count; i++)
        if (s->item[i].rank >= s->rank_count) s->rank_count = s->item[i].rank + 1;
}

/* The number of bends of edge e, which are items first, first + 1, ... */
static int bends_of(const layered *g, const sheet *s, int e)
{
    return s->item[g->edge[e].to].rank - s->item[g->edge[e].from].rank - 1;
}

/* Lists the neighbours of every item: from[k] is the upper end of segment k. */
static void join(const int *of, const int *other, int segments, int count, int **list, int **first)
{
    *first = memory_allocate((size_t)(count + 2) * sizeof **first);
    *list = memory_allocate((size_t)(segments + 1) * sizeof **list);
    int *at = *first;
    for (int k = 0; k < segments; k++) at[of[k] + 2]++;
    for (int i = 0; i <= count; i++) at[i + 1] += at[i];
    for (int k = 0; k < segments; k++) (*list)[at[of[k] + 1]++] = other[k];
}

static sdlf_status make_items(const layered *g, sheet *s)
{
    s->item = memory_allocate((size_t)(g->node_count + 1) * sizeof *s->item);
    find_ranks(g, s);
    int64_t bends = 0;
    for (int e = 0; e < g->edge_count; e++) bends += bends_of(g, s, e);
    if (bends > BENDS_MOST)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "the graph cannot be drawn: its edges cross %lld ranks, at most %d can be drawn",
                         (long long)bends, BENDS_MOST);
    s->count = g->node_count + (int)bends;
    s->item = memory_resize(s->item, (size_t)(s->count + 1) * sizeof *s->item);
    for (int i = 0; i < s->count; i++) {
        bool node = i < g->node_count;
        s->item[i] = (item){.rank = node ? s->item[i].rank : 0,
                            .width = node ? g->node[i].width : bend_width,
                            .weight = node ? node_weight : 1};
    }
    int segments = g->edge_count + (int)bends, next = g->node_count, k = 0;
    int *upper = memory_allocate((size_t)(segments + 1) * sizeof *upper),
        *lower = memory_allocate((size_t)(segments + 1) * sizeof *lower);
    for (int e = 0; e < g->edge_count; e++) {
        int at = g->edge[e].from, count = bends_of(g, s, e);
        for (int b = 0; b < count; b++, next++) {
            s->item[next].rank = s->item[g->edge[e].from].rank + 1 + b;
            upper[k] = at;
            lower[k++] = at = next;
        }
        upper[k] = at;
        lower[k++] = g->edge[e].to;
    }
    join(lower, upper, segments, s->count, &s->above, &s->above_first);
    join(upper, lower, segments, s->count, &s->below, &s->below_first);
    free(upper);
    free(lower);
    return SDLF_OK;
}

static void make_rows(sheet *s)
{
    s->row = memory_allocate((size_t)(s->count + 1) * sizeof *s->row);
    s->row_first = memory_allocate((size_t)(s->rank_count + 2) * sizeof *s->row_first);
    for (int i = 0; i < s->count; i++) s->row_first[s->item[i].rank + 2]++;
    for (int r = 0; r <= s->rank_count; r++) s->row_first[r + 1] += s->row_first[r];
    for (int i = 0; i < s->count; i++) {
        int at = s->row_first[s->item[i].rank + 1]++;
        s->row[at] = i;
    }
    for (int r = 0; r < s->rank_count; r++)
        for (int k = s->row_first[r]; k < s->row_first[r + 1]; k++) s->item[s->row[k]].place = k - s->row_first[r];
}

/* The mean over the neighbours on one side, of their positions in the rank or of their x, in which bends count less.
 * Without neighbours, the item's own. */
static double mean_of(const sheet *s, int i, bool above, double own, bool places)
{
    const int *list = above ? s->above : s->below, *first = above ? s->above_first : s->below_first;
    double sum = 0, weight = 0;
    for (int k = first[i]; k < first[i + 1]; k++) {
        const item *other = &s->item[list[k]];
        sum += places ? other->place : other->weight * other->x;
        weight += places ? 1 : other->weight;
    }
    return weight > 0 ? sum / weight : own;
}

static void order_row(sheet *s, int rank, bool above)
{
    int *row = s->row + s->row_first[rank], count = s->row_first[rank + 1] - s->row_first[rank];
    for (int k = 0; k < count; k++) s->item[row[k]].wanted = mean_of(s, row[k], above, k, true);
    for (int k = 1; k < count; k++) { /* nearly sorted, and the sort must be stable */
        int moved = row[k], at = k;
        for (; at > 0 && s->item[row[at - 1]].wanted > s->item[moved].wanted; at--) row[at] = row[at - 1];
        row[at] = moved;
    }
    for (int k = 0; k < count; k++) s->item[row[k]].place = k;
}

static double distance(const item *left, const item *right)
{
    return (left->width + right->width) / 2 + node_gap;
}

/* Computes the coordinates nearest to the wanted ones, by least squares, that keep order and distances: after
 * subtracting the cumulative distances this is an isotonic regression, solved by pooling adjacent violators. */
static void place_row(sheet *s, int rank, double *mean, double *weight, int *size)
{
    const int *row = s->row + s->row_first[rank];
    int count = s->row_first[rank + 1] - s->row_first[rank], pools = 0;
    double offset = 0;
    for (int k = 0; k < count; k++) {
        item *at = &s->item[row[k]];
        if (k > 0) offset += distance(&s->item[row[k - 1]], at);
        mean[pools] = at->wanted - offset;
        weight[pools] = at->weight;
        size[pools++] = 1;
        while (pools > 1 && mean[pools - 2] > mean[pools - 1]) {
            double both = weight[pools - 2] + weight[pools - 1];
            mean[pools - 2] = (mean[pools - 2] * weight[pools - 2] + mean[pools - 1] * weight[pools - 1]) / both;
            weight[pools - 2] = both;
            size[pools - 2] += size[pools - 1];
            pools--;
        }
    }
    offset = 0;
    for (int pool = 0, k = 0; pool < pools; pool++)
        for (int n = 0; n < size[pool]; n++, k++) {
            if (k > 0) offset += distance(&s->item[row[k - 1]], &s->item[row[k]]);
            s->item[row[k]].x = mean[pool] + offset;
        }
}

static void place_rows(sheet *s)
{
    double *mean = memory_allocate((size_t)(s->count + 1) * sizeof *mean),
           *weight = memory_allocate((size_t)(s->count + 1) * sizeof *weight);
    int *size = memory_allocate((size_t)(s->count + 1) * sizeof *size);
    for (int turn = 0; turn < PLACINGS; turn++) {
        bool down = turn % 2 == 0;
        for (int n = 0; n < s->rank_count; n++) {
            int rank = down ? n : s->rank_count - 1 - n;
            for (int k = s->row_first[rank]; k < s->row_first[rank + 1]; k++) {
                item *at = &s->item[s->row[k]];
                at->wanted = mean_of(s, s->row[k], down, at->x, false);
            }
            place_row(s, rank, mean, weight, size);
        }
    }
    free(mean);
    free(weight);
    free(size);
}

static void fill_in(layered *g, const sheet *s)
{
    double least = 1e300, greatest = -1e300, at = 0;
    double *top = memory_allocate((size_t)(s->rank_count + 1) * sizeof *top),
           *height = memory_allocate((size_t)(s->rank_count + 1) * sizeof *height);
    for (int i = 0; i < s->count; i++) {
        const item *one = &s->item[i];
        if (one->x - one->width / 2 < least) least = one->x - one->width / 2;
        if (one->x + one->width / 2 > greatest) greatest = one->x + one->width / 2;
        if (i < g->node_count && g->node[i].height > height[one->rank]) height[one->rank] = g->node[i].height;
    }
    for (int r = 0; r < s->rank_count; r++, at += rank_gap) {
        top[r] = at;
        at += height[r];
    }
    g->width = g->node_count > 0 ? greatest - least : 0;
    g->height = g->node_count > 0 ? at - rank_gap : 0;
    for (int i = 0; i < g->node_count; i++) {
        g->node[i].x = s->item[i].x - least;
        g->node[i].y = top[s->item[i].rank] + g->node[i].height / 2;
        g->node[i].bottom = top[s->item[i].rank] + height[s->item[i].rank];
    }
    int next = g->node_count;
    for (int e = 0; e < g->edge_count; e++) {
        layered_edge *edge = &g->edge[e];
        edge->bend_count = bends_of(g, s, e);
        edge->bend = memory_allocate((size_t)(edge->bend_count + 1) * sizeof *edge->bend);
        for (int b = 0; b < edge->bend_count; b++, next++) {
            int rank = s->item[next].rank;
            edge->bend[b].x = s->item[next].x - least;
            edge->bend[b].top = top[rank];
            edge->bend[b].bottom = top[rank] + height[rank];
        }
    }
    free(top);
    free(height);
}

sdlf_status layered_arrange(layered *g)
{
    sheet s = {.item = NULL};
    for (int e = 0; e < g->edge_count; e++) g->edge[e].bend = NULL;
    sdlf_status status = make_items(g, &s);
    if (status == SDLF_OK) {
        make_rows(&s);
        for (int sweep = 0; sweep < SWEEPS; sweep++)
            for (int n = 1; n < s.rank_count; n++) order_row(&s, sweep % 2 ? s.rank_count - 1 - n : n, sweep % 2 == 0);
        place_rows(&s);
        fill_in(g, &s);
    }
    free(s.item);
    free(s.above);
    free(s.above_first);
    free(s.below);
    free(s.below_first);
    free(s.row);
    free(s.row_first);
    return status;
}

void layered_release(layered *g)
{
    for (int e = 0; e < g->edge_count; e++) free(g->edge[e].bend);
}
