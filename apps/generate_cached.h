/* SPDX-License-Identifier: MIT */
/* Inference with a KV cache: a causal character network that computes one position at a time and keeps the keys and
 * values of earlier ones (sdlf/stateful.h). */
#ifndef SDLF_APPS_GENERATE_CACHED_H
#define SDLF_APPS_GENERATE_CACHED_H

#include <sdlf/sdlf.h>

typedef struct cached_network cached_network;

/* Create one from a network (N,T) -> (N,T,classes) with one input, whose layers are position-wise except for causal
 * self-attention without rotary embeddings. Returns NULL if the network has another form, or the calculator is not in
 * host memory. The model is read and not kept. */
cached_network *cached_network_create(sdlf_model *model, sdlf_calculator *calculator, int64_t length, int classes);
void cached_network_free(cached_network *network);

/* Compute the next position's scores, after `position` others; 0 starts a new sequence. */
sdlf_status cached_network_step(cached_network *network, int32_t token, int64_t position, float *scores);

#endif
