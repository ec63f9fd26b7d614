/* SPDX-License-Identifier: MIT */
/* The list of graph classes, in the order of listings. Whoever includes it defines SDLF_GRAPH(class) first; a class is
 * declared and registered by its line here. No include guard: it is read more than once. */
SDLF_GRAPH(sdlf_snap_graph_class)
SDLF_GRAPH(sdlf_planetoid_graph_class)
SDLF_GRAPH(sdlf_rmat_graph_class)
SDLF_GRAPH(sdlf_uniform_graph_class)
