/* SPDX-License-Identifier: MIT */
/* Weights in a file beside the graph, and the two of them taking their places.
 *
 * The file is called after its content, "GRAPH.HASH.data" with 16 hexadecimal digits. So new weights never take the
 * place of those that an older graph reads: only the graph's rename decides which weights are read, wherever a process
 * is killed or a disk is full. Weights that no graph reads any more are removed after it. An export that failed removes
 * its own, and what a killed one has left goes with the next. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_OUTSIDE_H
#define SDLF_FORMATS_ONNX_EXPORT_OUTSIDE_H

#include "framework/formats/atomic_file.h"
#include "framework/formats/onnx/export/export.h"

typedef struct export_outside {
    const char *path; /* of the file, the arena's; NULL: all weights are in the graph */
    const char *name; /* the last part of it, or NULL */
    int64_t bytes;
    atomic_file file; /* open, where there is a path */
} export_outside;

/* Write all weights but the smallest, each at a page of its own, for a graph at `path`; their tensors then refer to
 * them. Where all are small there is no file. End it with
 * export_outside_commit or _abandon; after a failure there is nothing to end. */
sdlf_status export_outside_write(export_outside *outside, onnx_export *e, const char *path);

/* The graph, open and written to its end, takes its place at `path`, and before it the weights that it refers to. After
 * a failure the graph that was there is whole, with its weights. Ends both files in every case. */
sdlf_status export_outside_commit(export_outside *outside, atomic_file *graph, const char *path);

void export_outside_abandon(export_outside *outside);

#endif
