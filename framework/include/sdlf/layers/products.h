/* SPDX-License-Identifier: MIT */
/* Layers that multiply matrices. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_PRODUCTS_H
#define SDLF_LAYERS_PRODUCTS_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x weight^T + bias. Input (N, ...), flattened to (N,I); output (N,units); parameters weight (units,I), bias
 * (units). Default initialisation: he_uniform, bias zero. With an axis, what stands before it stays: of tokens (N,T,C),
 * -1 gives (N,T,units). */
typedef struct sdlf_fully_connected_options {
    const char *name;
    int units; /* required */
    bool no_bias;
    int initializer;         /* sdlf_initializer_kind of the weight */
    int axis;                /* the first of the axes that become I, default 1; negative ones count from the end */
    float initializer_scale; /* of uniform and normal, default 0.1 */
    void *reserved[4];       /* zero: room for members to come */
} sdlf_fully_connected_options;
sdlf_node sdlf_fully_connected(sdlf_model *model, sdlf_node x, const sdlf_fully_connected_options *options);

/* y = a b of two nodes: a (...,m,k), b (...,k,n), y (...,m,n). Axes before the last two are broadcast as in numpy;
 * a vector is a row on the left, a column on the right, and that axis is missing in y. Of bytes (int8, uint8; not
 * transposed) y is int32, modulo 2^32; two more inputs, by sdlf_model_add, are zero points of a's and of b's type,
 * which are subtracted first: one number, one for each row of a or column of b, or any shape that broadcasts. */
typedef struct sdlf_matmul_options {
    const char *name;
    bool transpose_a;  /* a is (...,k,m) */
    bool transpose_b;  /* b is (...,n,k) */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_matmul_options;
sdlf_node sdlf_matmul(sdlf_model *model, sdlf_node a, sdlf_node b, const sdlf_matmul_options *options);

/* y = A (x weight) + bias: x (N,I) of N nodes, A (N,N) sparse (sdlf_sparse_input), y (N,units); parameters weight
 * (I,units), bias (units). `transposed` is A's transpose, for the gradient by x weight; where the two are equal (an
 * undirected graph), give A twice or use sdlf_graph_conv. */
typedef struct sdlf_graph_conv_options {
    const char *name;
    int units; /* outputs of a node; required */
    bool no_bias;
    bool no_decay;     /* no weight decay of the weight */
    int initializer;   /* sdlf_initializer_kind of the weight; xavier_uniform by default */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_graph_conv_options;
sdlf_node sdlf_graph_conv(sdlf_model *model, sdlf_node x, sdlf_node matrix, const sdlf_graph_conv_options *options);
sdlf_node sdlf_graph_conv_directed(sdlf_model *model, sdlf_node x, sdlf_node matrix, sdlf_node transposed,
                                   const sdlf_graph_conv_options *options);

#ifdef __cplusplus
}
#endif

#endif
