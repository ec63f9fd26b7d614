/* SPDX-License-Identifier: MIT */
/* Layers that multiply matrices. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_PRODUCTS_H
#define SDLF_LAYERS_PRODUCTS_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x weight^T + bias. Input (N, ...), flattened to (N,I); output (N,units); parameters weight (units,I), bias
 * (units). Default initialisation: he_uniform, bias zero. With an axis, the axes before it are kept: for tokens
 * (N,T,C), -1 gives (N,T,units). */
typedef struct sdlf_fully_connected_options {
    const char *name;
    int units; /* required */
    bool no_bias;
    int initializer;         /* sdlf_initializer_kind of the weight */
    int axis;                /* first of the axes that are flattened to I, default 1; negative: from the end */
    float initializer_scale; /* of uniform and normal, default 0.1 */
    void *reserved[4];       /* zero; reserved for new members */
} sdlf_fully_connected_options;
sdlf_node sdlf_fully_connected(sdlf_model *model, sdlf_node x, const sdlf_fully_connected_options *options);

/* y = a b: a (...,m,k), b (...,k,n), y (...,m,n). Axes before the last two broadcast as in numpy; a vector is a row on
 * the left or a column on the right, and y lacks that axis. For int8 and uint8 (not transposed), y is int32, modulo
 * 2^32. Two more inputs, through sdlf_model_add, are zero points that are subtracted first, of a's and b's type: a
 * scalar, one for each row of a or column of b, or any shape that broadcasts. */
typedef struct sdlf_matmul_options {
    const char *name;
    bool transpose_a;  /* a is (...,k,m) */
    bool transpose_b;  /* b is (...,n,k) */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_matmul_options;
sdlf_node sdlf_matmul(sdlf_model *model, sdlf_node a, sdlf_node b, const sdlf_matmul_options *options);

/* y = A (x weight) + bias: x (N,I) for N nodes, A (N,N) sparse (sdlf_sparse_input), y (N,units); parameters weight
 * (I,units), bias (units). `transposed` is the transpose of A, for the gradient with respect to x weight. If A is
 * symmetric (an undirected graph), pass A twice or use sdlf_graph_conv. */
typedef struct sdlf_graph_conv_options {
    const char *name;
    int units; /* outputs per node; required */
    bool no_bias;
    bool no_decay;     /* no weight decay for the weight */
    int initializer;   /* sdlf_initializer_kind of the weight; xavier_uniform by default */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_graph_conv_options;
sdlf_node sdlf_graph_conv(sdlf_model *model, sdlf_node x, sdlf_node matrix, const sdlf_graph_conv_options *options);
sdlf_node sdlf_graph_conv_directed(sdlf_model *model, sdlf_node x, sdlf_node matrix, sdlf_node transposed,
                                   const sdlf_graph_conv_options *options);

#ifdef __cplusplus
}
#endif

#endif
