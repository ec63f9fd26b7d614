/* SPDX-License-Identifier: MIT */
/* A layered drawing of a directed acyclic graph (Sugiyama, Tagawa, Toda 1981): edges point downwards, the nodes of a
 * rank are side by side, and edges that cross a rank are routed around its nodes. */
#ifndef SDLF_APPS_GRAPH_LAYERED_H
#define SDLF_APPS_GRAPH_LAYERED_H

#include <sdlf/status.h>

typedef struct layered_node {
    double width, height; /* given */
    double x, y;          /* of its middle: filled in */
    double bottom;        /* of the tallest node of its rank, which edges pass before they bend: filled in */
} layered_node;

typedef struct layered_edge {
    int from, to; /* given; from < to */
    /* filled in: the x where the edge crosses each rank between the two, from the top, and that rank's extent.
     * Owned. */
    struct {
        double x, top, bottom;
    } * bend;
    int bend_count;
} layered_edge;

typedef struct layered {
    layered_node *node;
    layered_edge *edge;
    int node_count, edge_count;
    double width, height; /* of all: filled in. Coordinates are from 0 to these */
} layered;

/* Place every node and route every edge. Ends the program when memory runs out. Errors: SDLF_ERROR_UNSUPPORTED: the
 * edges cross too many ranks in total to be readable. End with layered_release, whatever the status; nodes and edges
 * are the caller's. */
sdlf_status layered_arrange(layered *graph);
void layered_release(layered *graph);

#endif
