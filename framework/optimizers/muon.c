/* SPDX-License-Identifier: MIT */
/* muon: gradient descent with an orthogonalised momentum (Jordan 2024), in Nesterov's form.
 *
 *   v = momentum v + g;   u = g + momentum v;   X = u / |u|;   newton_schulz times X = 3.4445 X - 4.775 (X X') X +
 *                         2.0315 (X X')^2 X
 *   w = (1 - rate weight_decay) w - rate sqrt(max(1, rows / columns)) X;   with unit_filters, w sqrt(rows) / |w|
 *   replaces w
 *
 * for parameters of two axes or more (filters_only: of four), as matrices of shape (first axis, all others); other
 * parameters follow sgd (sgd.c) with Nesterov's form of rest_momentum. State: v. framework/plan/lower/forms.c builds it
 * from matrix products and sums. */
#include "framework/optimizers/optimizers.h"

static const sdlf_field fields[] = {
    OPTIMIZER_MOMENTUM(sdlf_muon_options, 0.95),
    OPTIMIZER_WEIGHT_DECAY(sdlf_muon_options),
    OPTIMIZER_DECAY_ALL(sdlf_muon_options),
    {.name = "rest_momentum",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(sdlf_muon_options, rest_momentum),
     .maximum = 0.999999,
     .help = "momentum of parameters that are not orthogonalised; that of the others unless given"},
    {.name = "newton_schulz",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_muon_options, newton_schulz),
     .minimum = 1,
     .maximum = 8,
     .fallback = 5,
     .zero_means_default = true,
     .help = "Newton-Schulz steps towards the orthogonal matrix; 5 unless given"},
    {.name = "filters_only",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_muon_options, filters_only),
     .help = "orthogonalise the weights of convolutions, not those of fully connected layers"},
    {.name = "unit_filters",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_muon_options, unit_filters),
     .help = "scale the weights of K filters to norm sqrt(K) before each step"},
    {.name = NULL},
};

static int state_count(const sdlf_optimizer *optimizer)
{
    (void)optimizer;
    return 1;
}

static void update(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation)
{
    const sdlf_muon_options *options = &optimizer->options.muon;
    operation->kind = SDLF_SGD_UPDATE;
    operation->sgd.momentum = (float)(options->rest_momentum > 0 ? options->rest_momentum : options->momentum);
    operation->sgd.nesterov = true;
    operation->sgd.decay = decay || options->decay_all ? (float)options->weight_decay : 0;
}

const sdlf_optimizer_class sdlf_muon_class = {
    .name = "muon",
    .summary = "orthogonalised momentum for matrices; Nesterov's for the rest",
    .fields = fields,
    .learning_rate = 0.02f,
    .state_count = state_count,
    .update = update,
    .form = SDLF_UPDATE_ORTHOGONAL,
};

sdlf_optimizer sdlf_muon_make(sdlf_muon_options options)
{
    return (sdlf_optimizer){.type = &sdlf_muon_class, .options.muon = options};
}
