/* SPDX-License-Identifier: MIT */
/* The optimizer classes; one file each beside this header. */
#ifndef SDLF_FRAMEWORK_OPTIMIZERS_H
#define SDLF_FRAMEWORK_OPTIMIZERS_H

#include <sdlf/optimizer.h>

/* Fields common to several optimizers, for an options struct with members of these names. */
#define OPTIMIZER_MOMENTUM(options, otherwise)                                                                         \
    {                                                                                                                  \
        .name = "momentum", .type = SDLF_FIELD_DOUBLE, .offset = offsetof(options, momentum), .maximum = 0.999999,     \
        .fallback = (otherwise), .zero_means_default = (otherwise) > 0,                                                \
        .help = "share of the last update that is kept"                                                                \
    }
#define OPTIMIZER_WEIGHT_DECAY(options)                                                                                \
    {                                                                                                                  \
        .name = "weight_decay", .type = SDLF_FIELD_DOUBLE, .offset = offsetof(options, weight_decay), .maximum = 10,   \
        .help = "weight decay, except of biases and normalisations"                                                    \
    }
#define OPTIMIZER_DECAY_ALL(options)                                                                                   \
    {                                                                                                                  \
        .name = "decay_all", .type = SDLF_FIELD_BOOL, .offset = offsetof(options, decay_all),                          \
        .help = "apply weight decay to biases and normalisations too"                                                  \
    }

#define SDLF_OPTIMIZER(class) extern const sdlf_optimizer_class class;
#include "framework/optimizers/list.h"
#undef SDLF_OPTIMIZER

#endif
