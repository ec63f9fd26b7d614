/* SPDX-License-Identifier: MIT */
/* The graph of a network file: converts inputs, layers and outputs to a model. */
#ifndef SDLF_FORMATS_NETWORK_GRAPH_H
#define SDLF_FORMATS_NETWORK_GRAPH_H

#include <stdbool.h>

#include <jansson.h>

#include <sdlf/model.h>

#include "framework/formats/network_names.h"
#include "framework/formats/network_text.h"

/* The maximum number of inputs and layers. */
#define NETWORK_MAX_LAYERS 30000
/* The maximum number of outputs, whose names are compared pairwise. */
#define NETWORK_MAX_OUTPUTS 4096

/* An input or a layer of the file. They are numbered consecutively, inputs first, by their position in the
 * model. */
typedef struct network_item {
    const json_t *json;
    json_place place;
    int line;
    bool is_input; /* from "input" or "inputs", and so without a type */
} network_item;

typedef struct network_graph {
    const network_text *file;
    sdlf_model *model;
    network_item *items; /* owned, with their places */
    int count;
    json_place lists[2]; /* "input" or "inputs", and "layers" */
    network_names names;
} network_graph;

/* Initialise to zero and set `file` and `model` first. Errors: SDLF_ERROR_FORMAT with the line, and those of building a
 * model. The graph borrows `root`, a network file's object. */
sdlf_status network_graph_collect(network_graph *graph, const json_t *root); /* collects items and names */
sdlf_status network_graph_add_item(network_graph *graph, int position);      /* one by one, in order */
sdlf_status network_graph_add_outputs(network_graph *graph, const json_t *outputs);
void network_graph_release(network_graph *graph);

#endif
