/* SPDX-License-Identifier: MIT */
/* A causal network of characters that computes one position at a time: keys and values of those before are kept
 * (sdlf/stateful.h). */
#ifndef SDLF_APPS_GENERATE_CACHED_H
#define SDLF_APPS_GENERATE_CACHED_H

#include <sdlf/sdlf.h>

typedef struct cached_network cached_network;

/* From a network (N,T) -> (N,T,classes) of one input, whose layers look at each position by itself, except for causal
 * self-attention; without its heads turned by position. NULL: it is none of these, or the calculator is not in the
 * host's memory. The model is read, and not kept. */
cached_network *cached_network_create(sdlf_model *model, sdlf_calculator *calculator, int64_t length, int classes);
void cached_network_free(cached_network *network);

/* The next position's scores, behind `position` others; 0 begins anew. */
sdlf_status cached_network_step(cached_network *network, int32_t token, int64_t position, float *scores);

#endif
