/* SPDX-License-Identifier: MIT */
/* Networks by what a user wrote: a built-in name, a JSON file, an ONNX file, or a weights file. */
#ifndef SDLF_APPS_INPUT_NETWORK_H
#define SDLF_APPS_INPUT_NETWORK_H

#include <sdlf/formats.h>

#include "apps/arguments/arguments.h"

/* Is it the name of a network that comes with SDLF? */
bool network_is_builtin(const char *net);

/* In what follows `dimensions` is --dim NAME=SIZE, the sizes that an ONNX file leaves open; NULL: the command has no such option.
 *
 * --net NAME, --net FILE.json or --net FILE.onnx. The model is the caller's; of an ONNX file it has its weights, else none yet. Errors:
 * SDLF_ERROR_ARGUMENT with the names there are; what reading the file says. */
sdlf_status network_read(sdlf_model **model, const char *net, const argument_list *dimensions);

/* The same, built from `seed`. */
sdlf_status network_open(sdlf_model **model, const char *net, uint64_t seed, const argument_list *dimensions);

/* --weights FILE: the network that the file carries, or, with `net` not NULL, that network with the file's parameters. An ONNX
 * file carries its network always, and `net` is SDLF_ERROR_ARGUMENT beside it. */
sdlf_status network_open_weights(sdlf_model **model, const char *weights, const char *net,
                                 const argument_list *dimensions);

/* The same for one plan that takes the parameters: those of a file that carries its network stay there until then. */
sdlf_status network_open_to_take(sdlf_model **model, const char *weights, const char *net,
                                 const argument_list *dimensions);

/* Is this an ONNX file, by what it holds, or by its ending where that says nothing? */
bool network_is_onnx(const char *path);

/* The shape of one sample of input 0; a scalar where there is no input. */
sdlf_shape network_sample_shape(const sdlf_model *model);

/* Prints the built-in networks, for help. */
void network_print_list(void);

#endif
