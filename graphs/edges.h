/* SPDX-License-Identifier: MIT */
/* A list of edges, from which an adjacency matrix is built. */
#ifndef SDLF_GRAPHS_EDGES_H
#define SDLF_GRAPHS_EDGES_H

#include <sdlf/graph.h>

#include "framework/formats/budget.h"

/* Zeroed storage is an empty list. Nodes have the numbers that the source gives them. */
typedef struct edges {
    int64_t *from, *to; /* owned */
    int64_t count, capacity;
    read_budget budget; /* of the source file; zeroed: no file */
} edges;

void edges_release(edges *list);

/* Reserve capacity for `count` edges in all. */
sdlf_status edges_reserve(edges *list, int64_t count);

/* Append an edge. Errors: SDLF_ERROR_MEMORY. */
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

/* Renumber the nodes that appear as 0, 1, ... in the order of their original numbers, in place. `declared` is the node
 * count that the source states, or 0: if all numbers are within 0 .. declared - 1, or 1 .. declared, then all nodes of
 * that range count, even without edges. `ids` becomes the original numbers, or stays absent if they are 0, 1, ... */
sdlf_status edges_number_nodes(edges *list, int64_t declared, int64_t *node_count, sdlf_tensor *ids);

/* Build the adjacency matrix of a graph of `node_count` nodes; all edges must be within range. Duplicate edges are
 * merged. If `undirected`, each edge is added in both directions. */
sdlf_status edges_to_adjacency(const edges *list, int64_t node_count, bool undirected, sdlf_tensor *adjacency);

#endif
