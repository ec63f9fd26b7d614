/* How a network is trained. */
#include "apps/train/options.h"

const argument training_arguments[] = {
    {.name = "Training", .type = ARGUMENT_HEADING},
    {"epochs", ARGUMENT_INT, offsetof(training, epochs), "N", .minimum = 1, .maximum = 100000, .fallback = "3",
     .help = "times through the data"},
    {"batch", ARGUMENT_INT, offsetof(training, batch), "N", .minimum = 1, .maximum = 1000000, .fallback = "64",
     .help = "samples a step"},
    {"seed", ARGUMENT_INT, offsetof(training, seed), "N", .minimum = 1, .maximum = 9e18, .fallback = "1",
     .help = "of first weights, order, dropout and augmentation: the same seed gives the same weights"},
    {"label-smoothing", ARGUMENT_FLOAT, offsetof(training, label_smoothing), "X", .minimum = 0, .maximum = 0.999,
     .help = "part of each target that is spread over all classes"},
    {"clip-norm", ARGUMENT_FLOAT, offsetof(training, clip_norm), "X", .minimum = 0, .maximum = 1e6, .above = true,
     .help = "scale the gradient of a step down to this norm where it is longer"},
    {0},
};

const argument schedule_arguments[] = {
    {.name = "Learning rate", .type = ARGUMENT_HEADING},
    {"learning-rate", ARGUMENT_FLOAT, offsetof(training, learning_rate), "X", .minimum = 1e-12, .maximum = 1000,
     .help = "the highest rate (default: what suits optimizer and batch: 0.05 for sgd, less below 64 samples a step)"},
    {"schedule", ARGUMENT_CHOICE, offsetof(training, schedule), "NAME", .choices = sdlf_schedule_names,
     .fallback = "one_cycle", .help = "how the rate changes over the steps"},
    {"warmup", ARGUMENT_FLOAT, offsetof(training, warmup), "X", .minimum = 0, .maximum = 0.999,
     .help = "part of all steps in which the rate rises (default: 0.3 for one_cycle, else 0)"},
    {"final-rate", ARGUMENT_FLOAT, offsetof(training, final_rate), "X", .minimum = 0, .maximum = 1000,
     .help = "the last rate of cosine and linear (default: 0)"},
    {"gamma", ARGUMENT_FLOAT, offsetof(training, gamma), "X", .minimum = 1e-6, .maximum = 1,
     .help = "step: what the rate is multiplied by (default: 0.1)"},
    {"every", ARGUMENT_INT, offsetof(training, every), "N", .minimum = 1, .maximum = 100000,
     .help = "step: epochs between two drops (default: 1)"},
    {"start-divisor", ARGUMENT_FLOAT, offsetof(training, start_divisor), "X", .minimum = 1, .maximum = 1e9,
     .help = "one_cycle: begins at the highest rate divided by this (default: 25)"},
    {"final-divisor", ARGUMENT_FLOAT, offsetof(training, final_divisor), "X", .minimum = 1, .maximum = 1e9,
     .help = "one_cycle: ends at the highest rate divided by this (default: 10000)"},
    {0},
};

const argument augmentation_arguments[] = {
    {.name = "Augmentation: random changes of each picture, drawn anew in each epoch", .type = ARGUMENT_HEADING},
    {"augment-shift", ARGUMENT_FLOAT, offsetof(training, shift), "PIXELS", .minimum = 0, .maximum = 1000,
     .help = "at most so far, down or up and to either side"},
    {"augment-rotate", ARGUMENT_FLOAT, offsetof(training, rotate), "DEGREES", .minimum = 0, .maximum = 180,
     .help = "at most so far, either way"},
    {"augment-scale", ARGUMENT_FLOAT, offsetof(training, scale), "X", .minimum = 0, .maximum = 0.9,
     .help = "0.1: to between 0.9 and 1.1 of its size"},
    {"augment-elastic", ARGUMENT_FLOAT, offsetof(training, elastic), "PIXELS", .minimum = 0, .maximum = 1000,
     .help = "bend it, moving no point further than this"},
    {0},
};

/* Options that make sense for some schedules only. */
static sdlf_status check_schedule(const arguments *a, sdlf_schedule_kind kind)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } owner[] = {
        {"final-rate", 1u << SDLF_SCHEDULE_COSINE | 1u << SDLF_SCHEDULE_LINEAR},
        {"gamma", 1u << SDLF_SCHEDULE_STEP},
        {"every", 1u << SDLF_SCHEDULE_STEP},
        {"start-divisor", 1u << SDLF_SCHEDULE_ONE_CYCLE},
        {"final-divisor", 1u << SDLF_SCHEDULE_ONE_CYCLE},
    };
    for (size_t i = 0; i < sizeof owner / sizeof owner[0]; i++) {
        if (!arguments_given(a, owner[i].name) || owner[i].kinds >> kind & 1) continue;
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s has no meaning for --schedule %s", owner[i].name,
                         sdlf_schedule_names[kind]);
    }
    return SDLF_OK;
}

sdlf_status training_to_trainer(const training *t, const arguments *a, bool resumed, sdlf_trainer_options *options)
{
    /* what was not given keeps the checkpoint's value */
    bool all = !resumed;
    if (all || arguments_given(a, "epochs")) options->epochs = (int)t->epochs;
    if (all || arguments_given(a, "batch")) options->batch = t->batch;
    if (all || arguments_given(a, "seed")) options->seed = (uint64_t)t->seed;
    if (all || arguments_given(a, "label-smoothing")) options->label_smoothing = (float)t->label_smoothing;
    if (all || arguments_given(a, "clip-norm")) options->clip_norm = (float)t->clip_norm;

    sdlf_schedule *schedule = &options->schedule;
    if (all || arguments_given(a, "schedule")) schedule->kind = (sdlf_schedule_kind)t->schedule;
    if (all || arguments_given(a, "learning-rate")) schedule->peak = (float)t->learning_rate;
    if (all || arguments_given(a, "warmup")) schedule->warmup = (float)t->warmup;
    if (all || arguments_given(a, "final-rate")) schedule->final = (float)t->final_rate;
    if (all || arguments_given(a, "gamma")) schedule->gamma = (float)t->gamma;
    if (all || arguments_given(a, "every")) schedule->every = (int)t->every;
    if (all || arguments_given(a, "start-divisor")) schedule->start_divisor = (float)t->start_divisor;
    if (all || arguments_given(a, "final-divisor")) schedule->final_divisor = (float)t->final_divisor;

    sdlf_augmentation *augment = &options->augment;
    if (all || arguments_given(a, "augment-shift")) augment->shift = (float)t->shift;
    if (all || arguments_given(a, "augment-rotate")) augment->rotate = (float)t->rotate;
    if (all || arguments_given(a, "augment-scale")) augment->scale = (float)t->scale;
    if (all || arguments_given(a, "augment-elastic")) augment->elastic = (float)t->elastic;
    return check_schedule(a, schedule->kind);
}
