/* SPDX-License-Identifier: MIT */
/* A layer's options in a network file, by the field table of its class; independent of any particular layer. */
#ifndef SDLF_FORMATS_NETWORK_OPTIONS_H
#define SDLF_FORMATS_NETWORK_OPTIONS_H

#include <stdbool.h>

#include <jansson.h>

#include <sdlf/layer.h>

#include "framework/formats/network_text.h"

/* The source of options: the object of one layer. */
typedef struct network_object {
    const network_text *file;
    const json_t *json;
    const json_place *place;
    const char *label;           /* start of messages: "layer 'c1' (conv2d)" */
    const char *const *keywords; /* members that are not options, NULL-terminated */
} network_object;

/* Sets a zeroed options struct to the defaults of a file that omits all options. */
void network_default_options(void *options, const sdlf_layer_class *type);

/* Reads the members of `object` into `options`, which hold the defaults. Errors: SDLF_ERROR_FORMAT: a member that the
 * class lacks (the message lists those it has), one of another type or out of range, or a required one that is
 * missing. */
sdlf_status network_read_options(void *options, const sdlf_layer_class *type, const network_object *object);

/* Adds the options that differ from the defaults to `object`. False when out of memory. */
bool network_write_options(json_t *object, const sdlf_layer_class *type, const void *options);

#endif
