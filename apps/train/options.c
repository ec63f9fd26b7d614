/* SPDX-License-Identifier: MIT */
/* How a network is trained. */
#include "apps/train/options.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const argument training_arguments[] = {
    {.name = "Training", .type = ARGUMENT_HEADING},
    {"epochs", ARGUMENT_INT, offsetof(training, epochs), "N", .minimum = 1, .maximum = 100000, .fallback = "3",
     .help = "passes over the data"},
    {"batch", ARGUMENT_INT, offsetof(training, batch), "N", .minimum = 1, .maximum = 1000000, .fallback = "64",
     .help = "samples a step"},
    {"seed", ARGUMENT_INT, offsetof(training, seed), "N", .minimum = 1, .maximum = 9e18, .fallback = "1",
     .help = "seed of initial weights, order, dropout and augmentation: the same seed gives the same weights with the "
             "same build, options, calculator and vector instructions"},
    {"label-smoothing", ARGUMENT_FLOAT, offsetof(training, label_smoothing), "X", .minimum = 0, .maximum = 0.999,
     .help = "share of each target that is spread over all classes"},
    {"loss", ARGUMENT_CHOICE, offsetof(training, loss), "NAME", .choices = sdlf_loss_names, .fallback = "cross_entropy",
     .help = "cross_entropy for classification; mse, mae and huber for regression on the float targets of a csv, npz "
             "or npy set; bce_with_logits for several labels of 0 or 1"},
    {"huber-delta", ARGUMENT_FLOAT, offsetof(training, huber_delta), "X", .minimum = 1e-6, .maximum = 1e6,
     .fallback = "1", .help = "huber: the difference above which the loss is linear"},
    {"class-weights", ARGUMENT_TEXT, offsetof(training, class_weights), "LIST",
     .help = "weight of each class's samples: 1,2,0.5, or balanced: as if all classes had equally many"},
    {"ema", ARGUMENT_FLOAT, offsetof(training, ema), "X", .minimum = 0, .maximum = 0.999999, .above = true,
     .help = "test and keep a moving average of the weights, with a decay of X per step, such as 0.999"},
    {"lookahead", ARGUMENT_INT, offsetof(training, lookahead), "K", .minimum = 0, .maximum = 1 << 20,
     .help = "Lookahead: every K steps, move the slow weights a share of the way, and continue from them"},
    {"lookahead-share", ARGUMENT_FLOAT, offsetof(training, lookahead_share), "X", .minimum = 1e-6, .maximum = 1,
     .fallback = "0.5", .help = "Lookahead: the share of the way"},
    {"accumulate", ARGUMENT_INT, offsetof(training, accumulate), "N", .minimum = 1, .maximum = 1 << 20, .fallback = "1",
     .help = "batches per step: their gradients are averaged, as for one batch N times as large"},
    {"lr-scale", ARGUMENT_TEXT, offsetof(training, rate_scales), "LIST",
     .help = "multiply the learning rate of parameters: trunk=0.1,conv2d.*=0.5; names as for --freeze, and head. With "
             "the linear "
             "schedule, head=2@0.5 reaches 0 half-way through the training"},
    {"decay", ARGUMENT_TEXT, offsetof(training, weight_decays), "LIST",
     .help = "weight decay of parameters, in place of --weight-decay: head=1e-4,norm*=0"},
    {"clip-norm", ARGUMENT_FLOAT, offsetof(training, clip_norm), "X", .minimum = 0, .maximum = 1e6, .above = true,
     .help = "scale the gradient of a step down to this norm if it is larger"},
    {"loss-scale", ARGUMENT_TEXT, offsetof(training, loss_scale), "N|dynamic",
     .help =
         "multiply the loss's gradient by N until the update, which skips steps whose gradients are not finite; "
         "dynamic: from 65536, halved by a skip, doubled after 2000 good steps (default: dynamic for --math fp16, else "
         "1)"},
    {0},
};

const argument schedule_arguments[] = {
    {.name = "Learning rate", .type = ARGUMENT_HEADING},
    {"learning-rate", ARGUMENT_FLOAT, offsetof(training, learning_rate), "X", .minimum = 1e-12, .maximum = 1000,
     .help = "the highest rate (default: by optimizer and batch: 0.05 for sgd, less below 64 samples a step)"},
    {"schedule", ARGUMENT_CHOICE, offsetof(training, schedule), "NAME", .choices = sdlf_schedule_names,
     .fallback = "one_cycle", .help = "how the rate changes over the steps"},
    {"warmup", ARGUMENT_FLOAT, offsetof(training, warmup), "X", .minimum = 0, .maximum = 0.999,
     .help = "share of all steps in which the rate rises (default: 0.3 for one_cycle, else 0)"},
    {"final-rate", ARGUMENT_FLOAT, offsetof(training, final_rate), "X", .minimum = 0, .maximum = 1000,
     .help = "the last rate of cosine and linear (default: 0)"},
    {"gamma", ARGUMENT_FLOAT, offsetof(training, gamma), "X", .minimum = 1e-6, .maximum = 1,
     .help = "step: factor of each drop (default: 0.1)"},
    {"every", ARGUMENT_INT, offsetof(training, every), "N", .minimum = 1, .maximum = 100000,
     .help = "step: epochs between two drops (default: 1)"},
    {"start-divisor", ARGUMENT_FLOAT, offsetof(training, start_divisor), "X", .minimum = 1, .maximum = 1e9,
     .help = "one_cycle: begins at the highest rate divided by this (default: 25)"},
    {"final-divisor", ARGUMENT_FLOAT, offsetof(training, final_divisor), "X", .minimum = 1, .maximum = 1e9,
     .help = "one_cycle: ends at the highest rate divided by this (default: 10000)"},
    {0},
};

const argument augmentation_arguments[] = {
    {.name = "Augmentation: random changes of each picture, drawn again in each epoch", .type = ARGUMENT_HEADING},
    {"augment-flip", ARGUMENT_FLAG, offsetof(training, flip), .help = "mirror half of them, left to right"},
    {"augment-flip-alternate", ARGUMENT_FLAG, offsetof(training, flip_alternate),
     .help = "mirror each picture in every second epoch, instead of at random"},
    {"augment-reflect", ARGUMENT_FLAG, offsetof(training, reflect),
     .help = "fill beyond its edges with its mirror image, not black"},
    {"augment-crop", ARGUMENT_INT, offsetof(training, crop), "PIXELS", .minimum = 0, .maximum = 1000,
     .help = "move it by up to this many whole pixels, as if cropped from the picture with a black border"},
    {"augment-shift", ARGUMENT_FLOAT, offsetof(training, shift), "PIXELS", .minimum = 0, .maximum = 1000,
     .help = "move it by up to this much, vertically and horizontally"},
    {"augment-rotate", ARGUMENT_FLOAT, offsetof(training, rotate), "DEGREES", .minimum = 0, .maximum = 180,
     .help = "rotate it by up to this much, either way"},
    {"augment-scale", ARGUMENT_FLOAT, offsetof(training, scale), "X", .minimum = 0, .maximum = 0.9,
     .help = "0.1: scale it to 0.9 to 1.1 of its size"},
    {"augment-elastic", ARGUMENT_FLOAT, offsetof(training, elastic), "PIXELS", .minimum = 0, .maximum = 1000,
     .help = "distort it, moving no point further than this"},
    {"augment-resized-crop", ARGUMENT_FLOAT, offsetof(training, resized_crop), "X", .minimum = 0, .maximum = 1,
     .help = "enlarge a random part of it, at least X of its area, changing its proportions by 3/4 to 4/3"},
    {"augment-cutout", ARGUMENT_INT, offsetof(training, cutout), "PIXELS", .minimum = 0, .maximum = 1000,
     .help = "erase a square of this side at a random place"},
    {"augment-brightness", ARGUMENT_FLOAT, offsetof(training, brightness), "X", .minimum = 0, .maximum = 1,
     .help = "0.2: darker or brighter by factors of 0.8 to 1.2"},
    {"augment-contrast", ARGUMENT_FLOAT, offsetof(training, contrast), "X", .minimum = 0, .maximum = 1,
     .help = "the same for the distance from the mean"},
    {"augment-saturation", ARGUMENT_FLOAT, offsetof(training, saturation), "X", .minimum = 0, .maximum = 1,
     .help = "the same for the distance from grey (three channels)"},
    {"augment-hue", ARGUMENT_FLOAT, offsetof(training, hue), "X", .minimum = 0, .maximum = 0.5,
     .help = "0.1: rotate the hue by up to a tenth of the colour circle, either way (three channels)"},
    {"augment-trivial", ARGUMENT_FLAG, offsetof(training, trivial),
     .help = "TrivialAugment, before the others: one operation of 14 on each picture, of random strength"},
    {"augment-rand", ARGUMENT_INT, offsetof(training, rand_augment), "N", .minimum = 0, .maximum = 8,
     .help = "RandAugment, before the others: N of these operations on each picture, such as 2"},
    {"augment-magnitude", ARGUMENT_INT, offsetof(training, rand_magnitude), "M", .minimum = 1, .maximum = 30,
     .fallback = "9", .help = "RandAugment: M / 30 of the largest strength"},
    {"mixup", ARGUMENT_FLOAT, offsetof(training, mixup), "A", .minimum = 0, .maximum = 2,
     .help = "mix in another picture of the batch, and its label, in shares drawn from Beta(A, A), such as 0.2 or 1"},
    {"cutmix", ARGUMENT_FLOAT, offsetof(training, cutmix), "A", .minimum = 0, .maximum = 2,
     .help = "paste in a box of another picture of the batch, with that share of its label; with both, one is picked "
             "at random"},
    {0},
};

/* Where an option is stored, in both directions, so that a log records the values that were used. */
typedef struct binding {
    const char *option;
    size_t member; /* of `training`: bool, int64_t, int or double */
    size_t to;     /* of sdlf_trainer_options */
    enum { TO_BOOL, TO_INT, TO_INT64, TO_CHOICE, TO_FLOAT, TO_TEXT, TO_SCALE } type; /* TO_TEXT: of TEXT_SIZE bytes */
    unsigned schedules; /* the schedules that it applies to; 0: all */
} binding;

#define KIND(name) (1u << SDLF_SCHEDULE_##name)

static const binding bindings[] = {
    {"epochs", offsetof(training, epochs), offsetof(sdlf_trainer_options, epochs), TO_INT, 0},
    {"batch", offsetof(training, batch), offsetof(sdlf_trainer_options, batch), TO_INT64, 0},
    {"seed", offsetof(training, seed), offsetof(sdlf_trainer_options, seed), TO_INT64, 0},
    {"label-smoothing", offsetof(training, label_smoothing), offsetof(sdlf_trainer_options, label_smoothing), TO_FLOAT,
     0},
    {"loss", offsetof(training, loss), offsetof(sdlf_trainer_options, loss), TO_CHOICE, 0},
    {"huber-delta", offsetof(training, huber_delta), offsetof(sdlf_trainer_options, huber_delta), TO_FLOAT, 0},
    {"class-weights", offsetof(training, class_weights), offsetof(sdlf_trainer_options, class_weights), TO_TEXT, 0},
    {"ema", offsetof(training, ema), offsetof(sdlf_trainer_options, ema), TO_FLOAT, 0},
    {"lookahead", offsetof(training, lookahead), offsetof(sdlf_trainer_options, lookahead), TO_INT, 0},
    {"lookahead-share", offsetof(training, lookahead_share), offsetof(sdlf_trainer_options, lookahead_share), TO_FLOAT,
     0},
    {"accumulate", offsetof(training, accumulate), offsetof(sdlf_trainer_options, accumulate), TO_INT, 0},
    {"lr-scale", offsetof(training, rate_scales), offsetof(sdlf_trainer_options, rate_scales), TO_TEXT, 0},
    {"decay", offsetof(training, weight_decays), offsetof(sdlf_trainer_options, weight_decays), TO_TEXT, 0},
    {"clip-norm", offsetof(training, clip_norm), offsetof(sdlf_trainer_options, clip_norm), TO_FLOAT, 0},
    {"loss-scale", offsetof(training, loss_scale), offsetof(sdlf_trainer_options, loss_scale), TO_SCALE, 0},
    {"schedule", offsetof(training, schedule), offsetof(sdlf_trainer_options, schedule.kind), TO_CHOICE, 0},
    {"learning-rate", offsetof(training, learning_rate), offsetof(sdlf_trainer_options, schedule.peak), TO_FLOAT, 0},
    {"warmup", offsetof(training, warmup), offsetof(sdlf_trainer_options, schedule.warmup), TO_FLOAT, 0},
    {"final-rate", offsetof(training, final_rate), offsetof(sdlf_trainer_options, schedule.final), TO_FLOAT,
     KIND(COSINE) | KIND(LINEAR)},
    {"gamma", offsetof(training, gamma), offsetof(sdlf_trainer_options, schedule.gamma), TO_FLOAT, KIND(STEP)},
    {"every", offsetof(training, every), offsetof(sdlf_trainer_options, schedule.every), TO_INT, KIND(STEP)},
    {"start-divisor", offsetof(training, start_divisor), offsetof(sdlf_trainer_options, schedule.start_divisor),
     TO_FLOAT, KIND(ONE_CYCLE)},
    {"final-divisor", offsetof(training, final_divisor), offsetof(sdlf_trainer_options, schedule.final_divisor),
     TO_FLOAT, KIND(ONE_CYCLE)},
    {"augment-flip", offsetof(training, flip), offsetof(sdlf_trainer_options, augment.flip), TO_BOOL, 0},
    {"augment-crop", offsetof(training, crop), offsetof(sdlf_trainer_options, augment.crop), TO_INT, 0},
    {"augment-shift", offsetof(training, shift), offsetof(sdlf_trainer_options, augment.shift), TO_FLOAT, 0},
    {"augment-rotate", offsetof(training, rotate), offsetof(sdlf_trainer_options, augment.rotate), TO_FLOAT, 0},
    {"augment-scale", offsetof(training, scale), offsetof(sdlf_trainer_options, augment.scale), TO_FLOAT, 0},
    {"augment-elastic", offsetof(training, elastic), offsetof(sdlf_trainer_options, augment.elastic), TO_FLOAT, 0},
    {"augment-flip-alternate", offsetof(training, flip_alternate),
     offsetof(sdlf_trainer_options, augment.flip_alternate), TO_BOOL, 0},
    {"augment-reflect", offsetof(training, reflect), offsetof(sdlf_trainer_options, augment.reflect), TO_BOOL, 0},
    {"augment-resized-crop", offsetof(training, resized_crop), offsetof(sdlf_trainer_options, augment.resized_crop),
     TO_FLOAT, 0},
    {"augment-cutout", offsetof(training, cutout), offsetof(sdlf_trainer_options, augment.cutout), TO_INT, 0},
    {"augment-brightness", offsetof(training, brightness), offsetof(sdlf_trainer_options, augment.brightness), TO_FLOAT,
     0},
    {"augment-contrast", offsetof(training, contrast), offsetof(sdlf_trainer_options, augment.contrast), TO_FLOAT, 0},
    {"augment-saturation", offsetof(training, saturation), offsetof(sdlf_trainer_options, augment.saturation), TO_FLOAT,
     0},
    {"augment-hue", offsetof(training, hue), offsetof(sdlf_trainer_options, augment.hue), TO_FLOAT, 0},
    {"augment-trivial", offsetof(training, trivial), offsetof(sdlf_trainer_options, automatic.trivial), TO_BOOL, 0},
    {"augment-rand", offsetof(training, rand_augment), offsetof(sdlf_trainer_options, automatic.rand_augment), TO_INT,
     0},
    {"augment-magnitude", offsetof(training, rand_magnitude), offsetof(sdlf_trainer_options, automatic.rand_magnitude),
     TO_INT, 0},
    {"mixup", offsetof(training, mixup), offsetof(sdlf_trainer_options, mixing.mixup), TO_FLOAT, 0},
    {"cutmix", offsetof(training, cutmix), offsetof(sdlf_trainer_options, mixing.cutmix), TO_FLOAT, 0},
    {"sync-batch-norm", offsetof(training, sync_batch_norm), offsetof(sdlf_trainer_options, sync_batch_norm), TO_BOOL,
     0},
};
enum { TEXT_SIZE = sizeof((sdlf_trainer_options *)0)->class_weights };
static_assert(TEXT_SIZE == sizeof((sdlf_trainer_options *)0)->rate_scales &&
                  TEXT_SIZE == sizeof((sdlf_trainer_options *)0)->weight_decays,
              "one size of texts");
enum { BINDINGS = sizeof bindings / sizeof bindings[0] };

static_assert(sizeof(sdlf_schedule_kind) == sizeof(int), "a choice is an int");

static bool has_meaning(const binding *b, sdlf_schedule_kind kind)
{
    return b->schedules == 0 || (b->schedules >> kind & 1) != 0;
}

/* 0: not given; NaN: invalid. */
static float read_loss_scale(const char *text)
{
    char *end = NULL;
    if (text == NULL) return 0;
    if (strcmp(text, "dynamic") == 0) return SDLF_LOSS_SCALE_DYNAMIC;
    float scale = strtof(text, &end);
    return end != text && *end == '\0' && scale > 0 && isfinite(scale) ? scale : NAN;
}

static void print_loss_scale(training *t, const sdlf_trainer_options *options)
{
    float scale = options->loss_scale, usual = options->math == SDLF_MATH_FP16 ? SDLF_LOSS_SCALE_DYNAMIC : 1;
    t->loss_scale = scale == 0 || scale == usual ? NULL : t->loss_scale_text;
    if (scale == SDLF_LOSS_SCALE_DYNAMIC)
        snprintf(t->loss_scale_text, sizeof t->loss_scale_text, "dynamic");
    else
        snprintf(t->loss_scale_text, sizeof t->loss_scale_text, "%.9g", (double)scale);
}

static void copy_to_trainer(const binding *b, const training *t, sdlf_trainer_options *options)
{
    const void *from = (const char *)t + b->member;
    void *to = (char *)options + b->to;
    switch (b->type) {
    case TO_BOOL: *(bool *)to = *(const bool *)from; break;
    case TO_INT: *(int *)to = (int)*(const int64_t *)from; break;
    case TO_INT64: *(int64_t *)to = *(const int64_t *)from; break;
    case TO_CHOICE: *(int *)to = *(const int *)from; break;
    case TO_FLOAT: *(float *)to = (float)*(const double *)from; break;
    case TO_SCALE: *(float *)to = read_loss_scale(*(const char *const *)from); break;
    case TO_TEXT: snprintf(to, TEXT_SIZE, "%s", *(const char *const *)from ? *(const char *const *)from : ""); break;
    }
}

static void copy_from_trainer(const binding *b, training *t, const sdlf_trainer_options *options)
{
    bool known = has_meaning(b, options->schedule.kind);
    const void *from = (const char *)options + b->to;
    void *to = (char *)t + b->member;
    switch (b->type) {
    case TO_BOOL: *(bool *)to = *(const bool *)from; break;
    case TO_INT: *(int64_t *)to = known ? *(const int *)from : 0; break;
    case TO_INT64: *(int64_t *)to = *(const int64_t *)from; break;
    case TO_CHOICE: *(int *)to = *(const int *)from; break;
    case TO_FLOAT: *(double *)to = known ? (double)*(const float *)from : (double)NAN; break;
    case TO_SCALE: print_loss_scale(t, options); break;
    case TO_TEXT: *(const char **)to = *(const char *)from ? from : NULL; break; /* the options' strings outlive it */
    }
}

/* Commands may have only some of these options. */
static bool is_given(const arguments *a, const char *option)
{
    return arguments_has(a, option) && arguments_given(a, option);
}

sdlf_status training_to_trainer(const training *t, const arguments *a, bool resumed, sdlf_trainer_options *options)
{
    /* options not given keep the checkpoint's value */
    for (int i = 0; i < BINDINGS; i++)
        if (!resumed || is_given(a, bindings[i].option)) copy_to_trainer(&bindings[i], t, options);
    for (int i = 0; i < BINDINGS; i++) {
        const char *text =
            bindings[i].type == TO_TEXT ? *(const char *const *)((const char *)t + bindings[i].member) : NULL;
        if (text != NULL && strlen(text) >= TEXT_SIZE)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s: expected fewer than %d characters, found %zu",
                             bindings[i].option, (int)TEXT_SIZE, strlen(text));
    }
    if (isnan(options->loss_scale))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--loss-scale: expected a number above 0 or 'dynamic', found '%s'",
                         t->loss_scale);
    if (is_given(a, "huber-delta") && options->loss != SDLF_LOSS_HUBER)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--huber-delta is for --loss huber, but the loss is %s",
                         sdlf_loss_names[options->loss]);
    for (int i = 0; i < BINDINGS; i++) {
        if (!is_given(a, bindings[i].option) || has_meaning(&bindings[i], options->schedule.kind)) continue;
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s has no meaning for --schedule %s", bindings[i].option,
                         sdlf_schedule_names[options->schedule.kind]);
    }
    return SDLF_OK;
}

void training_from_trainer(training *t, const sdlf_trainer_options *options)
{
    for (int i = 0; i < BINDINGS; i++) copy_from_trainer(&bindings[i], t, options);
}
