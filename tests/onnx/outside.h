/* SPDX-License-Identifier: MIT */
/* The external weight files of a graph, "GRAPH.HASH.data". */
#ifndef SDLF_TESTS_ONNX_OUTSIDE_H
#define SDLF_TESTS_ONNX_OUTSIDE_H

#include <glob.h>
#include <stdio.h>

/* Returns their number. The last one's path goes to `last`, unless that is NULL. */
static inline int outside_files(const char *graph, char last[600])
{
    char pattern[700];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s.????????????????.data", graph);
    int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    if (last != NULL) snprintf(last, 600, "%s", count > 0 ? found.gl_pathv[count - 1] : "");
    if (count > 0) globfree(&found);
    return count;
}

#endif
