/* SPDX-License-Identifier: MIT */
/* Graphs by name: "NAME" or "NAME:ARGUMENT". */
#include <sdlf/graph.h>
#include <sdlf/suggest.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs/graphs_internal.h"

static const sdlf_graph_class *const classes[] = {
#define SDLF_GRAPH(class) &class,
#include "graphs/list.h"
#undef SDLF_GRAPH
};

const sdlf_graph_class *sdlf_graph_class_at(int index)
{
    return index >= 0 && index < (int)(sizeof classes / sizeof classes[0]) ? classes[index] : NULL;
}

sdlf_status sdlf_graph_set_name(sdlf_graph *graph, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    graph->name = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (graph->name != NULL) vsnprintf(graph->name, (size_t)length + 1, format, again);
    va_end(again);
    return graph->name != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a graph's name");
}

sdlf_status sdlf_graph_open(sdlf_graph **graph, const char *specification)
{
    if (graph == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_graph_open: graph is NULL");
    *graph = NULL;
    if (specification == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_graph_open: specification is NULL");
    size_t length = strcspn(specification, ":");
    const sdlf_graph_class *type = NULL;
    char known[256] = "", word[64];
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, specification);
    sdlf_suggestion near = {.word = word};
    size_t used = 0;
    for (int i = 0; sdlf_graph_class_at(i) != NULL; i++) {
        const char *name = classes[i]->name;
        if (strlen(name) == length && memcmp(name, specification, length) == 0) type = classes[i];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", name);
        sdlf_suggest(&near, name);
    }
    if (type == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "graph '%s' is unknown%s; known are: %s", word,
                         sdlf_suggestion_print(&near).text, known);
    sdlf_graph *made = calloc(1, sizeof *made);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "graph '%s': no memory", specification);
    made->type = type;
    sdlf_status status = type->load(made, specification[length] == ':' ? specification + length + 1 : NULL);
    if (status != SDLF_OK) {
        sdlf_graph_free(made);
        return status;
    }
    *graph = made;
    return SDLF_OK;
}

void sdlf_graph_free(sdlf_graph *graph)
{
    if (graph == NULL) return;
    free(graph->name);
    sdlf_tensor_release(&graph->adjacency, NULL);
    sdlf_tensor_release(&graph->ids, NULL);
    sdlf_tensor_release(&graph->features, NULL);
    sdlf_tensor_release(&graph->labels, NULL);
    sdlf_tensor_release(&graph->parts, NULL);
    free(graph);
}
