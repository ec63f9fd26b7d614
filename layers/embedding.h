/* SPDX-License-Identifier: MIT */
/* Shared by token and position embeddings: a table of vectors, initialised from a normal distribution. */
#ifndef SDLF_LAYERS_EMBEDDING_H
#define SDLF_LAYERS_EMBEDDING_H

#include "layers/views.h"

/* Adds the parameter "weight" of that shape. */
sdlf_status sdlf_embedding_add_weight(sdlf_signature *signature, sdlf_shape shape, float deviation, bool decay);

/* The field-table row for the member `deviation` of the options. */
#define SDLF_EMBEDDING_DEVIATION(options, usual)                                                                       \
    {                                                                                                                  \
        .name = "deviation", .type = SDLF_FIELD_FLOAT, .offset = offsetof(options, deviation), .minimum = 1e-6,        \
        .maximum = 1000, .fallback = (usual), .zero_means_default = true,                                              \
        .help = "standard deviation of the initial weights"                                                            \
    }

#endif
