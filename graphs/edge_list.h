/* SPDX-License-Identifier: MIT */
/* Edge lists as text, in the form of the SNAP collection: a line an edge, two node numbers with blanks or tabs between
 * them; lines that begin with # or % are comments, empty lines are passed over. Plain or gzip. */
#ifndef SDLF_GRAPHS_EDGE_LIST_H
#define SDLF_GRAPHS_EDGE_LIST_H

#include "framework/formats/byte_stream.h"
#include "graphs/edges.h"

/* Read all of a stream. `declared` becomes the N of a comment "Nodes: N", or 0. Node numbers are from 0 to `largest`,
 * 2^63 - 1 at most. Errors: SDLF_ERROR_FORMAT with "NAME:LINE: " and what was expected and found; those of the stream;
 * SDLF_ERROR_MEMORY. */
sdlf_status edge_list_read(edges *list, int64_t *declared, int64_t largest, sdlf_byte_stream *stream);

/* A whole graph of `name` from a file, or from memory: numbered, sorted. */
sdlf_status edge_list_load(sdlf_graph *graph, const char *path, bool undirected);
sdlf_status edge_list_parse(sdlf_graph *graph, const void *bytes, size_t size, const char *name, bool undirected);

#endif
