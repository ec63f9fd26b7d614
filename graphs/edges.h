/* SPDX-License-Identifier: MIT */
/* A list of edges on its way to an adjacency matrix. */
#ifndef SDLF_GRAPHS_EDGES_H
#define SDLF_GRAPHS_EDGES_H

#include <sdlf/graph.h>

#include "framework/formats/budget.h"

/* Zeroed storage is an empty list. Nodes have whatever numbers the source gives them. */
typedef struct edges {
    int64_t *from, *to; /* owned */
    int64_t count, capacity;
    read_budget budget; /* of the file that they come from; zeroed: of none */
} edges;

void edges_release(edges *list);

/* Room for `count` edges in all. */
sdlf_status edges_reserve(edges *list, int64_t count);

/* Append; SDLF_ERROR_MEMORY. */
static inline sdlf_status edges_add(edges *list, int64_t from, int64_t to)
{
    if (list->count == list->capacity) {
        sdlf_status status = edges_reserve(list, list->capacity > 0 ? 2 * list->capacity : 1024);
        if (status != SDLF_OK) return status;
    }
    list->from[list->count] = from;
    list->to[list->count++] = to;
    return SDLF_OK;
}

/* Number the nodes that appear 0, 1, ... in the order of their own numbers, in place. `declared` is how many the source
 * says there are (0: it does not): where the numbers are 0 .. declared - 1, or 1 .. declared, they are those, whether
 * they appear or not. `ids` becomes their own numbers, or stays absent where these are 0, 1, ... */
sdlf_status edges_number_nodes(edges *list, int64_t declared, int64_t *node_count, sdlf_tensor *ids);

/* The adjacency of a graph of `node_count` nodes, which all edges are within; equal edges are one. Where `undirected`,
 * each edge goes both ways. */
sdlf_status edges_to_adjacency(const edges *list, int64_t node_count, bool undirected, sdlf_tensor *adjacency);

#endif
