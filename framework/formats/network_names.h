/* SPDX-License-Identifier: MIT */
/* The names of a network's inputs and layers, and their positions. */
#ifndef SDLF_FORMATS_NETWORK_NAMES_H
#define SDLF_FORMATS_NETWORK_NAMES_H

#include <jansson.h>

#include <sdlf/status.h>

typedef struct network_names {
    json_t *positions; /* name -> position */
    json_t *counts;    /* layer type -> number of its last chosen name */
} network_names;

/* Zero-initialised storage can be released. Errors here and below: SDLF_ERROR_MEMORY. */
sdlf_status network_names_init(network_names *names);
void network_names_release(network_names *names);

sdlf_status network_names_add(network_names *names, const char *name, int position);

/* The position of a name; -1 if there is none. */
int network_names_find(const network_names *names, const char *name);

/* Chooses a name as models do, the type with the first free number appended, and adds it. `name` is valid as long as
 * `names`. */
sdlf_status network_names_choose(network_names *names, const char **name, const char *type, int position);

#endif
