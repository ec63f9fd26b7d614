/* SPDX-License-Identifier: MIT */
/* The graph of a network file: inputs, layers and outputs become a model. */
#ifndef SDLF_FORMATS_NETWORK_GRAPH_H
#define SDLF_FORMATS_NETWORK_GRAPH_H

#include <stdbool.h>

#include <jansson.h>

#include <sdlf/model.h>

#include "framework/formats/network_names.h"
#include "framework/formats/network_text.h"

/* More inputs and layers than that are refused. */
#define NETWORK_MAX_LAYERS 30000
/* And more outputs, each of whose names is compared with all others. */
#define NETWORK_MAX_OUTPUTS 4096

/* An input or a layer of the file. They are numbered in one row, inputs first, by the position they get in the
 * model. */
typedef struct network_item {
    const json_t *json;
    json_place place;
    int line;
    bool is_input; /* from "input" or "inputs", so without a type */
} network_item;

typedef struct network_graph {
    const network_text *file;
    sdlf_model *model;
    network_item *items; /* owned, and what they need to have places */
    int count;
    json_place lists[2]; /* "input" or "inputs", and "layers" */
    network_names names;
} network_graph;

/* Zeroed storage with `file` and `model` set is ready for all of these. Errors: SDLF_ERROR_FORMAT with the line, and
 * those of building a model. The graph borrows `root`, a network file's object. */
sdlf_status network_graph_collect(network_graph *graph, const json_t *root); /* what there is, and its names */
sdlf_status network_graph_add_item(network_graph *graph, int position);      /* one by one, in order */
sdlf_status network_graph_add_outputs(network_graph *graph, const json_t *outputs);
void network_graph_release(network_graph *graph);

#endif
