/* SPDX-License-Identifier: MIT */
/* sgd: gradient descent with momentum (Polyak 1964), plain or in Nesterov's form.
 *
 *   g += weight_decay w;   v = momentum v + g;   w -= rate (nesterov ? g + momentum v : v)
 *   State: v with momentum, none otherwise. */
#include "framework/optimizers/optimizers.h"

static const sdlf_field fields[] = {
    OPTIMIZER_MOMENTUM(sdlf_sgd_options, 0),
    {.name = "nesterov",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_sgd_options, nesterov),
     .help = "use Nesterov momentum"},
    OPTIMIZER_WEIGHT_DECAY(sdlf_sgd_options),
    OPTIMIZER_DECAY_ALL(sdlf_sgd_options),
    {.name = NULL},
};

static int state_count(const sdlf_optimizer *optimizer)
{
    return optimizer->options.sgd.momentum > 0 ? 1 : 0;
}

static void update(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation)
{
    const sdlf_sgd_options *options = &optimizer->options.sgd;
    operation->kind = SDLF_SGD_UPDATE;
    operation->sgd.momentum = (float)options->momentum;
    operation->sgd.nesterov = options->nesterov;
    operation->sgd.decay = decay || options->decay_all ? (float)options->weight_decay : 0;
}

const sdlf_optimizer_class sdlf_sgd_class = {
    .name = "sgd",
    .summary = "gradient descent, optionally with momentum or Nesterov momentum",
    .fields = fields,
    .learning_rate = 0.05f,
    .full_batch = 64,
    .state_count = state_count,
    .update = update,
};

sdlf_optimizer sdlf_sgd_make(sdlf_sgd_options options)
{
    return (sdlf_optimizer){.type = &sdlf_sgd_class, .options.sgd = options};
}
