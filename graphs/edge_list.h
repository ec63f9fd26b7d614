/* SPDX-License-Identifier: MIT */
/* Edge lists as text, in the format of the SNAP collection: one edge a line, as two node numbers separated by blanks or
 * tabs. Lines that begin with # or % are comments; empty lines are skipped. Plain or gzip. */
#ifndef SDLF_GRAPHS_EDGE_LIST_H
#define SDLF_GRAPHS_EDGE_LIST_H

#include "framework/formats/byte_stream.h"
#include "graphs/edges.h"

/* Read a whole stream. `declared` becomes the N of a comment "Nodes: N", or 0. Node numbers range from 0 to `largest`,
 * at most 2^63 - 1. Errors: SDLF_ERROR_FORMAT with "NAME:LINE: " and what was expected and found; those of the stream;
 * SDLF_ERROR_MEMORY. */
sdlf_status edge_list_read(edges *list, int64_t *declared, int64_t largest, sdlf_byte_stream *stream);

/* Load a whole graph called `name` from a file or from memory, with its nodes numbered and its edges sorted. */
sdlf_status edge_list_load(sdlf_graph *graph, const char *path, bool undirected);
sdlf_status edge_list_parse(sdlf_graph *graph, const void *bytes, size_t size, const char *name, bool undirected);

#endif
