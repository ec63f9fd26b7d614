/* SPDX-License-Identifier: MIT */
/* Opening a network from a command-line value: a built-in name, a JSON file, an ONNX file, or a weights file. */
#ifndef SDLF_APPS_INPUT_NETWORK_H
#define SDLF_APPS_INPUT_NETWORK_H

#include <sdlf/formats.h>

#include "apps/arguments/arguments.h"

/* True if it is the name of a built-in network. */
bool network_is_builtin(const char *net);

/* Below, `dimensions` is --dim NAME=SIZE, the sizes that an ONNX file leaves open; NULL: the command has no such option.
 *
 * --net NAME, --net FILE.json or --net FILE.onnx. The model is the caller's; from an ONNX file it has weights, otherwise none yet.
 * Errors: SDLF_ERROR_ARGUMENT with the list of names; those of reading the file. */
sdlf_status network_read(sdlf_model **model, const char *net, const argument_list *dimensions);

/* The same, built with weights drawn from `seed`. */
sdlf_status network_open(sdlf_model **model, const char *net, uint64_t seed, const argument_list *dimensions);

/* --weights FILE: the network stored in the file, or, with `net` not NULL, that network with the file's parameters. An ONNX
 * file always contains its network, and giving `net` as well is SDLF_ERROR_ARGUMENT. */
sdlf_status network_open_weights(sdlf_model **model, const char *weights, const char *net,
                                 const argument_list *dimensions);

/* The same for a single plan that takes over the parameters: those of a file with its network are read only then. */
sdlf_status network_open_to_take(sdlf_model **model, const char *weights, const char *net,
                                 const argument_list *dimensions);

/* True if this is an ONNX file, by its contents, or by its extension if they are inconclusive. */
bool network_is_onnx(const char *path);

/* The shape of one sample of input 0; a scalar if there is no input. */
sdlf_shape network_sample_shape(const sdlf_model *model);

/* Prints the built-in networks, for help. */
void network_print_list(void);

#endif
