/* SPDX-License-Identifier: MIT */
/* Graphs in host memory, from edge lists, citation data or a random generator, and the matrices derived from them.
 *
 * Threads: a loaded graph does not change; any thread may read it.
 * Ownership: graphs and matrices are the caller's to free.
 * Errors: a status with a message (status.h) that names the file and the line. */
#ifndef SDLF_GRAPH_H
#define SDLF_GRAPH_H

#include <sdlf/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_graph_class sdlf_graph_class;

/* The part of the data that a node belongs to. */
typedef enum sdlf_node_part { SDLF_NODE_OTHER = 0, SDLF_NODE_TRAIN, SDLF_NODE_VALIDATE, SDLF_NODE_TEST } sdlf_node_part;

/* All tensors are in host memory and owned; features, labels and parts are absent where the source has none. */
typedef struct sdlf_graph {
    const sdlf_graph_class *type;
    char *name;            /* "snap (web-Stanford.txt.gz)" */
    int64_t node_count;    /* N, at most 2^31 - 1 */
    bool undirected;       /* the adjacency is its own transpose */
    sdlf_tensor adjacency; /* (N,N) sparse float32: 1 for each edge from row to column; columns ascending and unique */
    sdlf_tensor ids;       /* (N) int64: the source's identifiers of nodes; absent if they equal the node's index */
    sdlf_tensor features;  /* (N,F) float32 */
    sdlf_tensor labels;    /* (N) int32 in [0, class_count) */
    sdlf_tensor parts;     /* (N) uint8: sdlf_node_part */
    int class_count;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_graph;

struct sdlf_graph_class {
    const char *name;    /* "snap": the part of `snap:FILE` before the colon */
    const char *summary; /* one line with the argument's form */
    /* Load a graph into a zeroed struct. `argument` is the part after the colon, or NULL. sdlf_graph_free releases
     * whatever has been set, also after a failure. */
    sdlf_status (*load)(sdlf_graph *graph, const char *argument);
    void *reserved[4]; /* zero; reserved for new members */
};

/* Open "NAME" or "NAME:ARGUMENT". The graph is the caller's. Errors name the file and the line at fault. */
sdlf_status sdlf_graph_open(sdlf_graph **graph, const char *specification);
void sdlf_graph_free(sdlf_graph *graph);
const sdlf_graph_class *sdlf_graph_class_at(int index);

/* ---- matrices ---- */

typedef enum sdlf_normalization_kind {
    SDLF_NORMALIZE_NONE = 0,
    SDLF_NORMALIZE_SYMMETRIC, /* D^-1/2 B D^-1/2, D the row sums of B */
    SDLF_NORMALIZE_ROW,       /* D^-1 B: the mean over the neighbours */
} sdlf_normalization_kind;

typedef struct sdlf_graph_matrix_options {
    sdlf_dtype dtype;                      /* float32 (default) or float64 */
    sdlf_normalization_kind normalization; /* of B, the adjacency, with self loops if requested */
    bool self_loops;   /* add an edge from every node to itself; one that exists already counts only once */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_graph_matrix_options;

/* Make the matrix of a graph convolution: a new sparse matrix in host memory. A row whose sum is 0 stays empty. If
 * `options` is NULL, it is the unmodified adjacency matrix. */
sdlf_status sdlf_graph_matrix(sdlf_tensor *matrix, const sdlf_graph *graph, const sdlf_graph_matrix_options *options);

#ifdef __cplusplus
}
#endif
#endif
