/* SPDX-License-Identifier: MIT */
/* rmat:V,E,SEED and uniform:V,E,SEED: E random directed edges among V nodes. Duplicate edges are merged, so a graph has
 * somewhat fewer.
 *
 * uniform draws both ends uniformly. rmat picks a quarter of the matrix with probabilities 0.57, 0.19, 0.19 and 0.05,
 * then a quarter of that quarter, and so on (D. Chakrabarti, Y. Zhan, C. Faloutsos: R-MAT, a recursive model for graph
 * mining, 2004): few nodes have many edges and many have few, as on the web. A node beyond V is redrawn. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <sdlf/machine.h>
#include <sdlf/random.h>

#include "graphs/edges.h"
#include "graphs/graphs_internal.h"

enum { ATTEMPTS = 64 }; /* each succeeds with probability above 1/2 if V fills its square, else at least 1/4 */

typedef struct random_graph {
    int64_t nodes, edges;
    uint64_t seed;
} random_graph;

/* The size of web-Stanford. */
static const random_graph usual = {281903, 2312497, 1};

static bool read_number(const char **at, uint64_t limit, uint64_t *number)
{
    const char *first = *at;
    for (*number = 0; **at >= '0' && **at <= '9'; ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (*number > (limit - digit) / 10) return false;
        *number = 10 * *number + digit;
    }
    return *at != first;
}

static sdlf_status read_argument(random_graph *wanted, const char *name, const char *argument)
{
    *wanted = usual;
    if (argument == NULL) return SDLF_OK;
    uint64_t number[3] = {0, 0, usual.seed};
    static const uint64_t limits[3] = {INT32_MAX, INT64_C(1) << 40, UINT64_MAX};
    const char *at = argument;
    for (int i = 0; i < 3; i++) {
        if (!read_number(&at, limits[i], &number[i])) goto malformed;
        if (*at == '\0' && i >= 1) break;
        if (i == 2 || *at != ',') goto malformed;
        at++;
    }
    if (*at != '\0' || number[0] < 1) goto malformed;
    *wanted = (random_graph){(int64_t)number[0], (int64_t)number[1], number[2]};
    return SDLF_OK;
malformed:
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "%s: expected %s:V,E or %s:V,E,SEED with V from 1 to %d and E to 2^40, found '%s:%s'", name, name,
                     name, INT32_MAX, name, argument);
}

/* Check in advance that memory suffices for the list of edges and the matrix built from it. */
static sdlf_status check_memory(const random_graph *wanted, const char *name)
{
    char what[96];
    snprintf(what, sizeof what, "%s: %" PRId64 " edges among %" PRId64 " nodes", name, wanted->edges, wanted->nodes);
    return sdlf_machine_check(24 * wanted->edges + 16 * wanted->nodes, what);
}

static int64_t below(uint32_t word, int64_t limit)
{
    return (int64_t)((uint64_t)word * (uint64_t)limit >> 32);
}

static void draw_uniform(const random_graph *wanted, int64_t e, int64_t ends[2])
{
    sdlf_philox random = sdlf_philox4x32(wanted->seed, (uint64_t)e, SDLF_STREAM_DATASET, 0);
    ends[0] = below(random.word[0], wanted->nodes);
    ends[1] = below(random.word[1], wanted->nodes);
}

/* Each level of the recursion uses half a random word. */
static void draw_quarters(const random_graph *wanted, int64_t e, uint32_t attempt, int64_t ends[2])
{
    static const uint32_t until[3] = {(uint32_t)(0.57 * 65536), (uint32_t)(0.76 * 65536), (uint32_t)(0.95 * 65536)};
    sdlf_philox random = {{0}};
    ends[0] = ends[1] = 0;
    for (int level = 0; (INT64_C(1) << level) < wanted->nodes; level++) {
        if (level % 8 == 0)
            random = sdlf_philox4x32(wanted->seed, (uint64_t)e, SDLF_STREAM_DATASET, attempt * 4 + (uint32_t)level / 8);
        uint32_t half = random.word[level % 8 / 2] >> 16 * (level % 2) & 0xffff;
        ends[0] = 2 * ends[0] + (half >= until[1]);
        ends[1] = 2 * ends[1] + ((half >= until[0] && half < until[1]) || half >= until[2]);
    }
}

static void draw_rmat(const random_graph *wanted, int64_t e, int64_t ends[2])
{
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        draw_quarters(wanted, e, attempt, ends);
        if (ends[0] < wanted->nodes && ends[1] < wanted->nodes) return;
    }
    draw_uniform(wanted, e, ends);
}

static sdlf_status load(sdlf_graph *graph, const char *argument, const char *name,
                        void (*draw)(const random_graph *wanted, int64_t e, int64_t ends[2]))
{
    random_graph wanted;
    edges list = {.count = 0};
    sdlf_status status = read_argument(&wanted, name, argument);
    if (status == SDLF_OK)
        status = sdlf_graph_set_name(graph, "%s (%" PRId64 " nodes, %" PRId64 " edges drawn, seed %" PRIu64 ")", name,
                                     wanted.nodes, wanted.edges, wanted.seed);
    if (status == SDLF_OK) status = check_memory(&wanted, name);
    if (status == SDLF_OK) status = edges_reserve(&list, wanted.edges);
    for (int64_t e = 0; e < wanted.edges && status == SDLF_OK; e++) {
        int64_t ends[2];
        draw(&wanted, e, ends);
        status = edges_add(&list, ends[0], ends[1]);
    }
    graph->node_count = wanted.nodes;
    if (status == SDLF_OK) status = edges_to_adjacency(&list, wanted.nodes, false, &graph->adjacency);
    edges_release(&list);
    return status;
}

static sdlf_status load_rmat(sdlf_graph *graph, const char *argument)
{
    return load(graph, argument, "rmat", draw_rmat);
}

static sdlf_status load_uniform(sdlf_graph *graph, const char *argument)
{
    return load(graph, argument, "uniform", draw_uniform);
}

const sdlf_graph_class sdlf_rmat_graph_class = {
    .name = "rmat",
    .summary = "random, with few nodes of many edges, as on the web: rmat:V,E,SEED (default 281903,2312497,1)",
    .load = load_rmat,
};

const sdlf_graph_class sdlf_uniform_graph_class = {
    .name = "uniform",
    .summary = "random, uniform: uniform:V,E,SEED (default 281903,2312497,1)",
    .load = load_uniform,
};
