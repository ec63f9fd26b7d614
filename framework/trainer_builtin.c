/* SPDX-License-Identifier: MIT */
/* Recommended training options of the built-in networks. Those of fast_cnn were chosen on 10,000 of MNIST's training
 * images, held out for this (docs/guides/train.md); those of cifar_fast are Jordan's recipe for CIFAR-10. */
#include <sdlf/trainer.h>

#include <stdio.h>
#include <string.h>

static const struct {
    const char *network;
    int epochs; /* 0: as many as requested */
    int64_t batch;
    enum { SGD, MUON } optimizer;
    sdlf_sgd_options sgd;
    sdlf_muon_options muon;
    sdlf_schedule schedule;
    float label_smoothing;
    sdlf_augmentation augment;
    const char *rate_scales, *weight_decays;
} own[] = {
    {.network = "fast_cnn",
     .batch = 32,
     .sgd = {.momentum = 0.9, .nesterov = true, .weight_decay = 0.001},
     .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE, .peak = 0.06f},
     .label_smoothing = 0.1f,
     .augment = {.shift = 1}},
    /* Of a loss that is summed over the batch, the recipe's rates are 0.053 of biases and 0.67 of the head, with decays
     * of 0.004 over these: of the mean, 106 and 1340. The head's weights are the recipe's by 256
     * (builtin_cifar_fast.c). */
    {.network = "cifar_fast",
     .epochs = 8,
     .batch = 2000,
     .optimizer = MUON,
     .muon = {.momentum = 0.6, .rest_momentum = 0.85, .newton_schulz = 3, .filters_only = true, .unit_filters = true},
     .schedule = {.kind = SDLF_SCHEDULE_LINEAR, .peak = 0.24f},
     .label_smoothing = 0.2f,
     .augment = {.flip_alternate = true, .reflect = true, .crop = 2},
     .rate_scales = "whiten.bias=441.6667@0.375,norm*=441.6667,head=0.08519491",
     .weight_decays = "head=0.1956299,whiten.bias=3.773585e-5,norm*=3.773585e-5"},
};

bool sdlf_network_builtin_training(sdlf_trainer_options *options, const char *name)
{
    if (options == NULL || name == NULL) return false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].network, name) != 0) continue;
        if (own[i].epochs > 0) options->epochs = own[i].epochs;
        options->batch = own[i].batch;
        options->optimizer = own[i].optimizer == MUON ? sdlf_muon_make(own[i].muon) : sdlf_sgd_make(own[i].sgd);
        options->schedule = own[i].schedule;
        options->label_smoothing = own[i].label_smoothing;
        options->augment = own[i].augment;
        snprintf(options->rate_scales, sizeof options->rate_scales, "%s",
                 own[i].rate_scales != NULL ? own[i].rate_scales : "");
        snprintf(options->weight_decays, sizeof options->weight_decays, "%s",
                 own[i].weight_decays != NULL ? own[i].weight_decays : "");
        return true;
    }
    return false;
}
