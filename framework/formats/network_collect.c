/* SPDX-License-Identifier: MIT */
/* Finds the inputs and layers of a network file, their lines and their names, before any is created. */
#include "framework/formats/network_graph.h"

#include <stdlib.h>

/* The list of inputs: "inputs", or just "input" (then `single`). */
static sdlf_status find_inputs(network_graph *graph, const json_t *root, const json_t **inputs, bool *single)
{
    const json_t *one = json_object_get(root, "input"), *many = json_object_get(root, "inputs");
    *single = one != NULL;
    *inputs = *single ? one : many;
    graph->lists[0] = (json_place){.key = *single ? "input" : "inputs"};
    if (one != NULL && many != NULL)
        return network_fail(graph->file, &graph->lists[0], "there must be 'input' or 'inputs', not both");
    if (*inputs == NULL)
        return network_fail(graph->file, NULL,
                            "'input' is missing, such as {\"name\": \"image\", \"shape\": [1, 28, 28]}");
    if (!*single && json_array_size(*inputs) == 0)
        return network_fail(graph->file, &graph->lists[0], "'inputs' must be a list of at least one input, found %s",
                            json_is_array(*inputs) ? "none" : network_show(*inputs).text);
    return SDLF_OK;
}

static sdlf_status make_items(network_graph *graph, const json_t *inputs, bool single, const json_t *layers)
{
    size_t input_count = single ? 1 : json_array_size(inputs), layer_count = json_array_size(layers);
    size_t count = input_count + layer_count;
    graph->items = calloc(count, sizeof *graph->items);
    int *lines = malloc(count * sizeof *lines);
    if (graph->items == NULL || lines == NULL) {
        free(lines);
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for %zu layers", graph->file->origin, count);
    }
    graph->count = (int)count;
    const network_text *file = graph->file;
    json_locate_elements(file->text, file->length, &graph->lists[0], lines, input_count);
    json_locate_elements(file->text, file->length, &graph->lists[1], lines + input_count, layer_count);
    for (size_t i = 0; i < count; i++) {
        network_item *item = &graph->items[i];
        item->line = lines[i];
        item->is_input = i < input_count;
        item->place = (json_place){&graph->lists[!item->is_input], NULL, item->is_input ? i : i - input_count};
        item->json = item->is_input ? json_array_get(inputs, i) : json_array_get(layers, i - input_count);
    }
    if (single) {
        graph->items[0].place = graph->lists[0];
        graph->items[0].json = inputs;
    }
    free(lines);
    return SDLF_OK;
}

/* Records the names that the file gives, so that chosen ones do not collide with them. */
static sdlf_status collect_names(network_graph *graph)
{
    sdlf_status status = network_names_init(&graph->names);
    for (int i = 0; i < graph->count && status == SDLF_OK; i++) {
        const network_item *item = &graph->items[i];
        const char *what = item->is_input ? "an input" : "a layer";
        if (!json_is_object(item->json))
            return network_fail(graph->file, &item->place, "%s must be an object, found %s", what,
                                network_show(item->json).text);
        const json_t *name = json_object_get(item->json, "name");
        if (name == NULL) continue;
        const json_place place = {&item->place, "name", 0};
        status = network_check_name(graph->file, &place, name, what);
        if (status != SDLF_OK) return status;
        int taken = network_names_find(&graph->names, json_string_value(name));
        if (taken >= 0)
            return network_fail(graph->file, &place, "the name %s is taken already, at line %d",
                                network_show(name).text, graph->items[taken].line);
        status = network_names_add(&graph->names, json_string_value(name), i);
    }
    return status;
}

sdlf_status network_graph_collect(network_graph *graph, const json_t *root)
{
    const json_t *inputs = NULL, *layers = json_object_get(root, "layers");
    bool single = false;
    sdlf_status status = find_inputs(graph, root, &inputs, &single);
    if (status != SDLF_OK) return status;
    graph->lists[1] = (json_place){.key = "layers"};
    if (layers == NULL) return network_fail(graph->file, NULL, "'layers' is missing: a list of layers");
    if (json_array_size(layers) == 0)
        return network_fail(graph->file, &graph->lists[1], "'layers' must be a list of at least one layer, found %s",
                            json_is_array(layers) ? "none" : network_show(layers).text);
    bool many_layers = json_array_size(layers) > NETWORK_MAX_LAYERS;
    if (json_array_size(inputs) > NETWORK_MAX_LAYERS || many_layers)
        return network_fail(graph->file, &graph->lists[many_layers], "a network has at most %d %s, found %zu",
                            NETWORK_MAX_LAYERS, many_layers ? "layers" : "inputs",
                            json_array_size(many_layers ? layers : inputs));
    status = make_items(graph, inputs, single, layers);
    return status == SDLF_OK ? collect_names(graph) : status;
}

void network_graph_release(network_graph *graph)
{
    network_names_release(&graph->names);
    free(graph->items);
    graph->items = NULL;
}
