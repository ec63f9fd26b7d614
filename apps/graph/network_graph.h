/* SPDX-License-Identifier: MIT */
/* A drawing of a network: boxes of layers, joined by the tensors that flow between them. */
#ifndef SDLF_APPS_GRAPH_NETWORK_GRAPH_H
#define SDLF_APPS_GRAPH_NETWORK_GRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include <sdlf/model.h>

typedef struct network_graph network_graph;

/* Lay out a built model. A box holds a layer and the element-wise layers that follow it (an activation, a
 * normalisation): those with one input, of the same shape, that no other layer reads. The caller frees the graph, which
 * borrows from the model. Errors: those of layered_arrange. */
sdlf_status network_graph_make(network_graph **graph, sdlf_model *model);
void network_graph_free(network_graph *graph); /* accepts NULL */

/* Print the graph as SVG. With `links` it is part of an HTML page and uses its style; each layer links to #layer-N, its
 * position in the model. Without, it is a self-contained file for light and dark screens. */
void network_graph_print(FILE *file, const network_graph *graph, bool links);

#endif
