/* SPDX-License-Identifier: MIT */
/* What the sources of graphs share: their class tables, for the registry, and names. */
#ifndef SDLF_GRAPHS_INTERNAL_H
#define SDLF_GRAPHS_INTERNAL_H

#include <sdlf/graph.h>

extern const sdlf_graph_class sdlf_snap_graph_class;
extern const sdlf_graph_class sdlf_planetoid_graph_class;
extern const sdlf_graph_class sdlf_rmat_graph_class;
extern const sdlf_graph_class sdlf_uniform_graph_class;

/* graph->name = the text. SDLF_ERROR_MEMORY. */
sdlf_status sdlf_graph_set_name(sdlf_graph *graph, const char *format, ...) SDLF_PRINTF(2, 3);

#endif
