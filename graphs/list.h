/* SPDX-License-Identifier: MIT */
/* The list of graph classes, in the order of listings. Define SDLF_GRAPH(class) before including it. A line here
 * declares and registers a class. There is no include guard, because the file is included more than once. */
SDLF_GRAPH(sdlf_snap_graph_class)
SDLF_GRAPH(sdlf_planetoid_graph_class)
SDLF_GRAPH(sdlf_rmat_graph_class)
SDLF_GRAPH(sdlf_uniform_graph_class)
