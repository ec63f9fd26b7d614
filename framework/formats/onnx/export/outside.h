/* SPDX-License-Identifier: MIT */
/* External weights in a file beside the graph, and the atomic replacement of both.
 *
 * The file is named after its content, "GRAPH.HASH.data" with 16 hexadecimal digits. So new weights never overwrite
 * those that an older graph reads: the graph's rename alone decides which weights are read, whenever a process is
 * killed or a disk is full. Weights that no graph reads any more are removed afterwards. A failed export removes its
 * own, and the leftovers of a killed one are removed by the next. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_OUTSIDE_H
#define SDLF_FORMATS_ONNX_EXPORT_OUTSIDE_H

#include "framework/formats/atomic_file.h"
#include "framework/formats/onnx/export/export.h"

typedef struct export_outside {
    const char *path; /* of the file, in the arena; NULL: all weights are in the graph */
    const char *name; /* its last component, or NULL */
    int64_t bytes;
    atomic_file file; /* open if there is a path */
} export_outside;

/* Writes all weights but the smallest, page-aligned, for a graph at `path`; their tensors then refer to them. If all
 * are small there is no file. End it with export_outside_commit or _abandon; after a failure there is nothing to
 * end. */
sdlf_status export_outside_write(export_outside *outside, onnx_export *e, const char *path);

/* Moves the graph, open and completely written, to `path`, and before it the weights that it refers to. After a failure
 * the previous graph and its weights are intact. Ends both files in every case. */
sdlf_status export_outside_commit(export_outside *outside, atomic_file *graph, const char *path);

void export_outside_abandon(export_outside *outside);

#endif
