/* SPDX-License-Identifier: MIT */
/* rmsprop: steps divided by the running root mean square of the gradient (Tieleman and Hinton 2012).
 *
 *   g += weight_decay w;   v = rho v + (1 - rho) g^2;   u = g / (sqrt(v) + epsilon)
 *   with momentum b = momentum b + u and w -= rate b; without, w -= rate u.   State: v, and b with
 *   momentum. */
#include "framework/optimizers/optimizers.h"

static const sdlf_field fields[] = {
    {.name = "rho",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_rmsprop_options, rho),
     .minimum = 1e-6,
     .maximum = 0.9999999,
     .fallback = 0.99,
     .zero_means_default = true,
     .help = "share of the mean squared gradient that is kept"},
    {.name = "epsilon",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_rmsprop_options, epsilon),
     .minimum = 1e-12,
     .maximum = 1,
     .fallback = 1e-8,
     .zero_means_default = true,
     .help = "added to the divisor"},
    OPTIMIZER_MOMENTUM(sdlf_rmsprop_options, 0),
    OPTIMIZER_WEIGHT_DECAY(sdlf_rmsprop_options),
    OPTIMIZER_DECAY_ALL(sdlf_rmsprop_options),
    {.name = NULL},
};

static int state_count(const sdlf_optimizer *optimizer)
{
    return optimizer->options.rmsprop.momentum > 0 ? 2 : 1;
}

static void update(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation)
{
    const sdlf_rmsprop_options *options = &optimizer->options.rmsprop;
    operation->kind = SDLF_RMSPROP_UPDATE;
    operation->rmsprop.rho = options->rho;
    operation->rmsprop.epsilon = options->epsilon;
    operation->rmsprop.momentum = options->momentum;
    operation->rmsprop.decay = decay || options->decay_all ? options->weight_decay : 0;
}

const sdlf_optimizer_class sdlf_rmsprop_class = {
    .name = "rmsprop",
    .summary = "steps divided by the gradient's running root mean square",
    .fields = fields,
    .learning_rate = 1e-3f,
    .state_count = state_count,
    .update = update,
};

sdlf_optimizer sdlf_rmsprop_make(sdlf_rmsprop_options options)
{
    return (sdlf_optimizer){.type = &sdlf_rmsprop_class, .options.rmsprop = options};
}
