/* SPDX-License-Identifier: MIT */
/* snap:FILE: an edge list in the format of the SNAP collection (J. Leskovec, A. Krevl: SNAP datasets, 2014). */
#include <stdlib.h>
#include <string.h>

#include "graphs/edge_list.h"
#include "graphs/graphs_internal.h"

static sdlf_status load(sdlf_graph *graph, const char *argument)
{
    static const char ending[] = ",undirected";
    if (argument == NULL || *argument == '\0')
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "snap: expected snap:FILE or snap:FILE,undirected");
    size_t length = strlen(argument), tail = sizeof ending - 1;
    bool undirected = length > tail && strcmp(argument + length - tail, ending) == 0;
    char *path = strdup(argument);
    if (path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "snap: no memory");
    if (undirected) path[length - tail] = '\0';
    const char *slash = strrchr(path, '/');
    sdlf_status status = sdlf_graph_set_name(graph, "snap (%s)", slash != NULL ? slash + 1 : path);
    if (status == SDLF_OK) status = edge_list_load(graph, path, undirected);
    free(path);
    return status;
}

const sdlf_graph_class sdlf_snap_graph_class = {
    .name = "snap",
    .summary = "an edge list, plain or gzip: snap:FILE, or snap:FILE,undirected where an edge goes both ways",
    .load = load,
};
