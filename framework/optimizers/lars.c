/* SPDX-License-Identifier: MIT */
/* lars: gradient descent with momentum and a rate adapted to each parameter (You, Gitman, Ginsburg 2017).
 *
 *   rate' = rate trust max(|w|, 1e-3) / (max(|g|, 1e-3) + weight_decay max(|w|, 1e-3));   then as sgd (sgd.c) with
 *   rate'
 *
 * for parameters that decay; biases, and scales and shifts of normalisations, use the plain rate. State: v.
 * framework/plan/lower/forms.c computes rate'. */
#include "framework/optimizers/optimizers.h"

static const sdlf_field fields[] = {
    OPTIMIZER_MOMENTUM(sdlf_lars_options, 0.9),
    {.name = "trust",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_lars_options, trust),
     .maximum = 1,
     .fallback = 0.001,
     .zero_means_default = true,
     .help = "step of a parameter, as a share of its norm"},
    OPTIMIZER_WEIGHT_DECAY(sdlf_lars_options),
    OPTIMIZER_DECAY_ALL(sdlf_lars_options),
    {.name = NULL},
};

static int state_count(const sdlf_optimizer *optimizer)
{
    (void)optimizer;
    return 1;
}

static void update(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation)
{
    const sdlf_lars_options *options = &optimizer->options.lars;
    operation->kind = SDLF_SGD_UPDATE;
    operation->sgd.momentum = (float)options->momentum;
    operation->sgd.decay = decay || options->decay_all ? (float)options->weight_decay : 0;
}

const sdlf_optimizer_class sdlf_lars_class = {
    .name = "lars",
    .summary = "gradient descent with momentum, its rate adapted to each parameter's norm",
    .fields = fields,
    .learning_rate = 0.5f,
    .state_count = state_count,
    .update = update,
    .form = SDLF_UPDATE_TRUST,
};

sdlf_optimizer sdlf_lars_make(sdlf_lars_options options)
{
    return (sdlf_optimizer){.type = &sdlf_lars_class, .options.lars = options};
}
