/* SPDX-License-Identifier: MIT */
#include "framework/formats/network_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/suggest.h>

#include "framework/formats/network_options.h"
#include "framework/input_layer.h"
#include "framework/model_internal.h"

typedef struct item_label {
    char text[176];
} item_label;

static item_label label_of(const network_item *item, const sdlf_layer_class *type, const char *name)
{
    item_label label;
    if (item->is_input)
        snprintf(label.text, sizeof label.text, "input '%s'", text_show(name).text);
    else
        snprintf(label.text, sizeof label.text, "layer '%s' (%s)", text_show(name).text, type->name);
    return label;
}

/* ---- references ---- */

/* The position of a reference's layer, and its output: the whole text is a name, or the part before ":NUMBER". */
static int split_reference(const network_names *names, const char *text, int *output)
{
    *output = 0;
    int position = network_names_find(names, text);
    const char *colon = strrchr(text, ':');
    if (position >= 0 || colon == NULL) return position;
    size_t length = (size_t)(colon - text);
    if (colon[1] < '0' || colon[1] >= '0' + SDLF_MAX_LAYER_OUTPUTS || colon[2] != '\0' || length > NETWORK_MAX_NAME)
        return -1;
    char name[NETWORK_MAX_NAME + 1];
    memcpy(name, text, length);
    name[length] = '\0';
    *output = colon[1] - '0';
    return network_names_find(names, name);
}

/* "..., a, b": the last few nodes before a position. */
static void list_before(const network_graph *graph, int position, char *text, size_t size)
{
    enum { SHOWN = 10 };
    size_t length = 0;
    text[0] = '\0';
    for (int i = position > SHOWN ? position - SHOWN : 0; i < position && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%.40s",
                                   length > 0 ? ", "
                                   : i > 0    ? "..., "
                                              : "",
                                   text_show(sdlf_model_layer(graph->model, i)->name).text);
}

/* The node that a reference "NAME" or "NAME:OUTPUT" in item `position` names; messages start with `label`. Only earlier
 * items may be named. */
static sdlf_status resolve(const network_graph *graph, sdlf_node *node, const json_t *reference, int position,
                           const char *label, const json_place *place)
{
    const char *text = json_string_value(reference);
    if (text == NULL)
        return network_fail(graph->file, place, "%s: expected the name of a layer or an input, found %s", label,
                            network_show(reference).text);
    int output, found = split_reference(&graph->names, text, &output);
    if (found == position)
        return network_fail(graph->file, place, "%s: it reads its own output; a network has no cycles", label);
    if (found > position)
        return network_fail(
            graph->file, place,
            "%s: '%s' comes later, at line %d; a layer reads only what comes before it, so there are no cycles", label,
            text_show(text).text, graph->items[found].line);
    if (found < 0) {
        char known[500];
        sdlf_suggestion near = {.word = text};
        for (int i = 0; i < position; i++) sdlf_suggest(&near, sdlf_model_layer(graph->model, i)->name);
        list_before(graph, position, known, sizeof known);
        return network_fail(graph->file, place, "%s: unknown layer or input '%s'%s; before it are %s", label,
                            text_show(text).text, sdlf_suggestion_print(&near).text, known);
    }
    *node = (sdlf_node){.layer = found, .output = output};
    return SDLF_OK;
}

/* The input nodes of a layer: those of "inputs", or the preceding one; the first layer's input is the first input. */
static sdlf_status read_inputs(const network_graph *graph, int position, const sdlf_layer_class *type,
                               const char *label, sdlf_node *nodes, int *count)
{
    const network_item *item = &graph->items[position];
    const json_t *list = json_object_get(item->json, "inputs");
    const json_place place = {&item->place, "inputs", 0};
    if (list != NULL && !json_is_array(list))
        return network_fail(graph->file, &place, "%s: 'inputs' must be a list of names, found %s", label,
                            network_show(list).text);
    bool first = position > 0 && graph->items[position - 1].is_input;
    size_t size = list != NULL ? json_array_size(list) : type->maximum_inputs > 0;
    if (size < (size_t)type->minimum_inputs || size > (size_t)type->maximum_inputs) {
        char range[32];
        snprintf(range, sizeof range, type->maximum_inputs > type->minimum_inputs ? "%d to %d" : "%d",
                 type->minimum_inputs, type->maximum_inputs);
        return network_fail(graph->file, list != NULL ? &place : &item->place, "%s: it takes %s inputs, found %zu%s",
                            label, range, size, list == NULL ? "; name them, such as \"inputs\": [\"a\", \"b\"]" : "");
    }
    *count = (int)size;
    nodes[0] = (sdlf_node){.layer = first ? 0 : position - 1};
    for (size_t i = 0; list != NULL && i < size; i++) {
        sdlf_status status =
            resolve(graph, &nodes[i], json_array_get(list, i), position, label, &(json_place){&place, NULL, i});
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* ---- layers ---- */

/* A layer with a similar name; or one that computes several functions, such as gelu, with the function. */
static sdlf_suggestion_text suggest_type(const char *word)
{
    sdlf_suggestion near = {.word = word}, function = {.word = word};
    const sdlf_layer_class *type, *owner = NULL;
    sdlf_suggest(&near, sdlf_input_layer_class.name);
    for (int i = 0; (type = sdlf_layer_class_at(i)) != NULL; i++) {
        sdlf_suggest(&near, type->name);
        for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
            if (field->type != SDLF_FIELD_CHOICE || strcmp(field->name, "function") != 0) continue;
            const char *before = function.best;
            for (int j = 0; field->choices[j] != NULL; j++) sdlf_suggest(&function, field->choices[j]);
            if (function.best != before) owner = type;
        }
    }
    if (owner == NULL || (near.best != NULL && near.rank <= function.rank)) return sdlf_suggestion_print(&near);
    sdlf_suggestion_text text;
    snprintf(text.text, sizeof text.text, " (did you mean '%s' with \"function\": \"%s\"?)", owner->name,
             function.best);
    return text;
}

static sdlf_status find_type(const network_graph *graph, const network_item *item, const sdlf_layer_class **type)
{
    *type = &sdlf_input_layer_class;
    if (item->is_input) return SDLF_OK;
    const json_t *name = json_object_get(item->json, "type");
    const json_place place = {&item->place, "type", 0};
    if (name == NULL) return network_fail(graph->file, &item->place, "a layer's 'type' is missing, such as \"relu\"");
    if (json_is_string(name) && strcmp(json_string_value(name), (*type)->name) == 0) return SDLF_OK;
    *type = sdlf_layer_class_find(json_string_value(name));
    if (*type != NULL) return SDLF_OK;
    int count = 0;
    while (sdlf_layer_class_at(count) != NULL) count++;
    return network_fail(graph->file, &place, "unknown layer type %s%s; 'sdlf info' lists all %d",
                        network_show(name).text, suggest_type(json_string_value(name)).text, count + 1);
}

/* Appends the layer, with its line as its origin. */
static sdlf_status append(network_graph *graph, const network_item *item, const sdlf_layer_class *type,
                          const void *options, const sdlf_node *nodes, int count)
{
    char origin[512];
    snprintf(origin, sizeof origin, "%s:%d", graph->file->origin, item->line);
    sdlf_model_set_origin(graph->model, origin);
    sdlf_model_add(graph->model, type, options, nodes, count);
    return sdlf_model_status(graph->model);
}

/* Reads the names of parameters that training does not change. */
static sdlf_status read_frozen(network_graph *graph, int position, const char *label)
{
    const network_item *item = &graph->items[position];
    const json_t *list = json_object_get(item->json, "frozen");
    const json_place place = {&item->place, "frozen", 0};
    sdlf_status status = SDLF_OK;
    for (size_t i = 0; i < json_array_size(list) && status == SDLF_OK; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL || name[0] == '\0' || strchr(name, ' ') != NULL) break;
        status = model_freeze(graph->model, position, name);
        if (status == SDLF_OK && i + 1 == json_array_size(list)) return SDLF_OK;
    }
    if (status != SDLF_OK || list == NULL || (json_is_array(list) && json_array_size(list) == 0)) return status;
    return network_fail(graph->file, &place, "%s: 'frozen' must be a list of parameters such as [\"weight\"], found %s",
                        label, network_show(list).text);
}

sdlf_status network_graph_add_item(network_graph *graph, int position)
{
    static const char *const input_keywords[] = {"name", NULL}, *const layer_keywords[] = {"type", "name", "inputs",
                                                                                           "frozen", NULL};
    const network_item *item = &graph->items[position];
    const sdlf_layer_class *type = NULL;
    sdlf_status status = find_type(graph, item, &type);
    if (status != SDLF_OK) return status;
    const char *name = json_string_value(json_object_get(item->json, "name"));
    if (name == NULL) status = network_names_choose(&graph->names, &name, type->name, position);
    if (status != SDLF_OK) return status;

    void *options = calloc(1, type->options_size);
    if (options == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", graph->file->origin);
    *(const char **)options = name;
    network_default_options(options, type);
    item_label label = label_of(item, type, name);
    sdlf_node nodes[SDLF_MAX_LAYER_INPUTS];
    int count = 0;
    status = network_read_options(options, type,
                                  &(network_object){.file = graph->file,
                                                    .json = item->json,
                                                    .place = &item->place,
                                                    .label = label.text,
                                                    .keywords = item->is_input ? input_keywords : layer_keywords});
    if (status == SDLF_OK) status = read_inputs(graph, position, type, label.text, nodes, &count);
    if (status == SDLF_OK) status = append(graph, item, type, options, nodes, count);
    if (status == SDLF_OK && !item->is_input) status = read_frozen(graph, position, label.text);
    free(options);
    return status;
}

/* ---- outputs ---- */

sdlf_status network_graph_add_outputs(network_graph *graph, const json_t *outputs)
{
    if (outputs == NULL) {
        sdlf_output(graph->model, "output", (sdlf_node){.layer = graph->count - 1});
        return sdlf_model_status(graph->model);
    }
    const json_place place = {.key = "outputs"};
    if (!json_is_object(outputs))
        return network_fail(graph->file, &place,
                            "'outputs' must be an object such as {\"class\": \"softmax\"}, found %s",
                            network_show(outputs).text);
    if (json_object_size(outputs) > NETWORK_MAX_OUTPUTS)
        return network_fail(graph->file, &place, "a network has at most %d outputs, found %zu", NETWORK_MAX_OUTPUTS,
                            json_object_size(outputs));
    const char *name;
    json_t *reference;
    json_object_foreach((json_t *)outputs, name, reference)
    {
        const json_place at = {&place, name, 0};
        char label[120];
        snprintf(label, sizeof label, "output '%s'", text_show(name).text);
        if (name[0] == '\0' || strlen(name) > NETWORK_MAX_NAME)
            return network_fail(graph->file, &at, "%s: a name has 1 to %d bytes", label, NETWORK_MAX_NAME);
        sdlf_node node;
        sdlf_status status = resolve(graph, &node, reference, graph->count, label, &at);
        if (status != SDLF_OK) return status;
        sdlf_output(graph->model, name, node);
    }
    return sdlf_model_status(graph->model);
}
