/* SPDX-License-Identifier: MIT */
/* A layer's options in a network file, by the field table of its class: nothing here knows any layer. */
#ifndef SDLF_FORMATS_NETWORK_OPTIONS_H
#define SDLF_FORMATS_NETWORK_OPTIONS_H

#include <stdbool.h>

#include <jansson.h>

#include <sdlf/layer.h>

#include "framework/formats/network_text.h"

/* Where options come from: the object of one layer. */
typedef struct network_object {
    const network_text *file;
    const json_t *json;
    const json_place *place;
    const char *label;           /* begins messages: "layer 'c1' (conv2d)" */
    const char *const *keywords; /* members that are no options, NULL-terminated */
} network_object;

/* Set a zeroed options struct to what a file means when it says nothing. */
void network_default_options(void *options, const sdlf_layer_class *type);

/* Read the members of `object` into `options`, which hold the defaults. Errors: SDLF_ERROR_FORMAT: a member that the
 * class has not (the message lists those it has), one of another type or out of range, a required one that is
 * missing. */
sdlf_status network_read_options(void *options, const sdlf_layer_class *type, const network_object *object);

/* Add the options that differ from the defaults to `object`. False when memory is out. */
bool network_write_options(json_t *object, const sdlf_layer_class *type, const void *options);

#endif
