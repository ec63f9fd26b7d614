/* SPDX-License-Identifier: MIT */
/* adam (Kingma and Ba 2015) and adamw (Loshchilov and Hutter 2019), which apply weight decay differently.
 *
 *   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2;   t = steps done + 1
 *   w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
 *   adam:  g += weight_decay w before all that;   adamw:  w -= rate weight_decay w before the step.
 *   State: m, v. */
#include "framework/optimizers/optimizers.h"

static const sdlf_field fields[] = {
    {.name = "beta1",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_adam_options, beta1),
     .minimum = 1e-6,
     .maximum = 0.999999,
     .fallback = 0.9,
     .zero_means_default = true,
     .help = "share of the mean gradient that is kept"},
    {.name = "beta2",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_adam_options, beta2),
     .minimum = 1e-6,
     .maximum = 0.9999999,
     .fallback = 0.999,
     .zero_means_default = true,
     .help = "share of the mean squared gradient that is kept"},
    {.name = "epsilon",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_adam_options, epsilon),
     .minimum = 1e-12,
     .maximum = 1,
     .fallback = 1e-8,
     .zero_means_default = true,
     .help = "added to the divisor"},
    OPTIMIZER_WEIGHT_DECAY(sdlf_adam_options),
    OPTIMIZER_DECAY_ALL(sdlf_adam_options),
    {.name = NULL},
};

static int state_count(const sdlf_optimizer *optimizer)
{
    (void)optimizer;
    return 2;
}

static void update(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation)
{
    const sdlf_adam_options *options = &optimizer->options.adam;
    operation->kind = SDLF_ADAM_UPDATE;
    operation->adam.beta1 = options->beta1;
    operation->adam.beta2 = options->beta2;
    operation->adam.epsilon = options->epsilon;
    operation->adam.decay = decay || options->decay_all ? options->weight_decay : 0;
    operation->adam.decoupled = optimizer->type == &sdlf_adamw_class;
}

const sdlf_optimizer_class sdlf_adam_class = {
    .name = "adam",
    .summary = "steps scaled by running moments of the gradient",
    .fields = fields,
    .learning_rate = 1e-3f,
    .state_count = state_count,
    .update = update,
};

const sdlf_optimizer_class sdlf_adamw_class = {
    .name = "adamw",
    .summary = "adam with decoupled weight decay",
    .fields = fields,
    .learning_rate = 1e-3f,
    .state_count = state_count,
    .update = update,
};

sdlf_optimizer sdlf_adam_make(sdlf_adam_options options)
{
    return (sdlf_optimizer){.type = &sdlf_adam_class, .options.adam = options};
}

sdlf_optimizer sdlf_adamw_make(sdlf_adam_options options)
{
    return (sdlf_optimizer){.type = &sdlf_adamw_class, .options.adam = options};
}
