/* SPDX-License-Identifier: MIT */
/* How a network is trained: the options of `train` that become sdlf_trainer_options. */
#ifndef SDLF_APPS_TRAIN_OPTIONS_H
#define SDLF_APPS_TRAIN_OPTIONS_H

#include <sdlf/trainer.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/optimizer.h"

typedef struct training {
    int64_t epochs, batch, seed;
    double label_smoothing, clip_norm, ema, lookahead_share;
    int64_t lookahead;
    int64_t accumulate;
    const char *rate_scales, *weight_decays;
    const char *loss_scale; /* a number, or "dynamic" */
    char loss_scale_text[24];
    int loss; /* sdlf_loss */
    double huber_delta;
    const char *class_weights;
    int schedule;
    double learning_rate, final_rate, warmup, gamma, start_divisor, final_divisor;
    int64_t every;
    double shift, rotate, scale, elastic;
    double resized_crop, brightness, contrast, saturation, hue;
    double mixup, cutmix;
    int64_t crop, cutout;
    bool flip, flip_alternate, reflect, trivial;
    int64_t rand_augment, rand_magnitude;
    bool sync_batch_norm;
} training;

extern const argument training_arguments[], schedule_arguments[], augmentation_arguments[];

/* Copy the values to `options`; if `resumed`, only those that were given, overriding the checkpoint's.
 * optimizer_from_arguments sets the optimizer. Errors: SDLF_ERROR_ARGUMENT: an option that belongs to another
 * schedule. */
sdlf_status training_to_trainer(const training *training, const arguments *arguments, bool resumed,
                                sdlf_trainer_options *options);

/* The inverse, from complete options: the effective values. Options of other schedules become NaN, or 0. */
void training_from_trainer(training *training, const sdlf_trainer_options *options);

#endif
