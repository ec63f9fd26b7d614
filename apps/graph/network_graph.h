/* SPDX-License-Identifier: MIT */
/* A network as a drawing: boxes of layers, joined by what flows between them. */
#ifndef SDLF_APPS_GRAPH_NETWORK_GRAPH_H
#define SDLF_APPS_GRAPH_NETWORK_GRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include <sdlf/model.h>

typedef struct network_graph network_graph;

/* Lay out a model that is built. A box holds a layer and those behind it that only change its values (an activation, a
 * normalisation): of one input, read by nothing else, with the same shape. The graph is the caller's, and borrows from
 * the model. Errors: those of layered_arrange. */
sdlf_status network_graph_make(network_graph **graph, sdlf_model *model);
void network_graph_free(network_graph *graph); /* accepts NULL */

/* As SVG. `links`: part of an HTML page, whose style it takes; each layer is a link to #layer-N, by its position in the
 * model. Without: a file of its own, for light and dark screens. */
void network_graph_print(FILE *file, const network_graph *graph, bool links);

#endif
