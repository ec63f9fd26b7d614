/* SPDX-License-Identifier: MIT */
/* Declarations shared by the graph sources: their class tables, for the registry, and names. */
#ifndef SDLF_GRAPHS_INTERNAL_H
#define SDLF_GRAPHS_INTERNAL_H

#include <sdlf/graph.h>

#define SDLF_GRAPH(class) extern const sdlf_graph_class class;
#include "graphs/list.h"
#undef SDLF_GRAPH

/* Set graph->name to the formatted text. Errors: SDLF_ERROR_MEMORY. */
sdlf_status sdlf_graph_set_name(sdlf_graph *graph, const char *format, ...) SDLF_PRINTF(2, 3);

#endif
