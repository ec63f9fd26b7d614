/* SPDX-License-Identifier: MIT */
/* Options of a trainer: defaults and ranges, and the comparison with those of a checkpoint when training
 * resumes. */
#include "framework/trainer_internal.h"

#include <inttypes.h>
#include <string.h>

#include "framework/schedule.h"

enum { DEFAULT_BATCH = 64, MAXIMUM_BATCH = 1 << 20, MAXIMUM_EPOCHS = 1000000 };

const sdlf_field sdlf_trainer_fields[] = {
    {.name = "clip_norm",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, clip_norm),
     .maximum = 1e9,
     .help = "largest norm of all gradients together; 0: any"},
    {.name = "label_smoothing",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, label_smoothing),
     .maximum = 0.999999,
     .help = "share of the target that is spread over all classes"},
    {.name = NULL},
};

const sdlf_field sdlf_trainer_later_fields[] = {
    {.name = "huber_delta",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, huber_delta),
     .minimum = 1e-6,
     .maximum = 1e6,
     .fallback = 1,
     .zero_means_default = true,
     .help = "the difference from which on huber is linear"},
    {.name = "loss_scale",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, loss_scale),
     .minimum = (double)SDLF_LOSS_SCALE_DYNAMIC,
     .maximum = 1e30,
     .help = "what the loss's gradient is multiplied by; -1: dynamic; 1: nothing"},
    {.name = "ema",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, ema),
     .maximum = 0.9999999,
     .help = "what the average of the weights keeps of itself; 0: there is none"},
    {.name = "lookahead",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_trainer_options, lookahead),
     .maximum = 1 << 20,
     .help = "steps between those of Lookahead; 0: there are none"},
    {.name = "lookahead_share",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, lookahead_share),
     .minimum = 1e-6,
     .maximum = 1,
     .fallback = 0.5,
     .zero_means_default = true,
     .help = "how far the slow weights of Lookahead go"},
    {.name = "accumulate",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_trainer_options, accumulate),
     .minimum = 1,
     .maximum = 1 << 20,
     .fallback = 1,
     .zero_means_default = true,
     .help = "batches of a step"},
    {.name = "trivial",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_trainer_options, automatic.trivial),
     .help = "TrivialAugment"},
    {.name = "rand_augment",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_trainer_options, automatic.rand_augment),
     .maximum = 8,
     .help = "operations of RandAugment"},
    {.name = "rand_magnitude",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_trainer_options, automatic.rand_magnitude),
     .minimum = 1,
     .maximum = 30,
     .fallback = 9,
     .zero_means_default = true,
     .help = "magnitude of RandAugment"},
    {.name = "mixup",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, mixing.mixup),
     .maximum = 2,
     .help = "of the Beta distribution of shares; 0: samples are not mixed"},
    {.name = "cutmix",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, mixing.cutmix),
     .maximum = 2,
     .help = "of the Beta distribution of areas; 0: samples are not mixed"},
    {.name = "sync_batch_norm",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_trainer_options, sync_batch_norm),
     .help = "batch normalisation by the statistics of all ranks' samples"},
    {.name = NULL},
};

const sdlf_field sdlf_trainer_augment_fields[] = {
    {.name = "flip",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_augmentation, flip),
     .help = "left and right exchanged, of half of the images"},
    {.name = "crop",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_augmentation, crop),
     .maximum = 1000,
     .help = "pixels"},
    {.name = "shift",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, shift),
     .maximum = 1000,
     .help = "pixels"},
    {.name = "rotate",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, rotate),
     .maximum = 180,
     .help = "degrees"},
    {.name = "scale",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, scale),
     .maximum = 0.9,
     .help = "part of the size"},
    {.name = "elastic",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, elastic),
     .maximum = 1000,
     .help = "pixels"},
    {.name = "flip_alternate",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_augmentation, flip_alternate),
     .help = "left and right exchanged in every second epoch of an image"},
    {.name = "reflect",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_augmentation, reflect),
     .help = "the mirror image beyond the edges"},
    {.name = "resized_crop",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, resized_crop),
     .maximum = 1,
     .help = "smallest share of the area that is enlarged"},
    {.name = "cutout",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_augmentation, cutout),
     .maximum = 1000,
     .help = "pixels"},
    {.name = "brightness",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, brightness),
     .maximum = 1,
     .help = "factors of 1 +- so much"},
    {.name = "contrast",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, contrast),
     .maximum = 1,
     .help = "factors of 1 +- so much"},
    {.name = "saturation",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, saturation),
     .maximum = 1,
     .help = "factors of 1 +- so much"},
    {.name = "hue",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_augmentation, hue),
     .maximum = 0.5,
     .help = "circles, either way"},
    {.name = NULL},
};

sdlf_status sdlf_trainer_complete_options(sdlf_trainer_options *options)
{
    if (options->batch == 0) options->batch = DEFAULT_BATCH;
    if (options->epochs == 0) options->epochs = 1;
    if (options->seed == 0) options->seed = 1;
    if ((unsigned)options->math >= SDLF_MATH_COUNT)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: there is no math mode %d", (int)options->math);
    if ((unsigned)options->keep >= SDLF_KEEP_COUNT || options->patience < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: keep %d, patience %d: expected one of sdlf_keep, and 0 or more",
                         (int)options->keep, options->patience);
    if ((unsigned)options->loss >= SDLF_LOSS_COUNT)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: there is no loss %d", (int)options->loss);
    if (options->loss != SDLF_LOSS_CROSS_ENTROPY && (options->class_weights[0] != '\0' || options->label_smoothing > 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: %s is for classes, but the loss is %s",
                         options->label_smoothing > 0 ? "label_smoothing" : "class_weights",
                         sdlf_loss_names[options->loss]);
    if (options->loss_scale == 0) options->loss_scale = options->math == SDLF_MATH_FP16 ? SDLF_LOSS_SCALE_DYNAMIC : 1;
    if (!(options->loss_scale > 0) && options->loss_scale != SDLF_LOSS_SCALE_DYNAMIC)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: loss_scale: expected a number above 0, or -1: dynamic; found %g",
                         (double)options->loss_scale);
    if (options->augment.seed == 0) options->augment.seed = options->seed;
    if (options->batch < 1 || options->batch > MAXIMUM_BATCH)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: batch: expected 1 to %d, found %" PRId64, MAXIMUM_BATCH,
                         options->batch);
    if (options->epochs < 1 || options->epochs > MAXIMUM_EPOCHS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: epochs: expected 1 to %d, found %d", MAXIMUM_EPOCHS,
                         options->epochs);
    sdlf_status status = sdlf_fields_complete(sdlf_trainer_fields, options);
    if (status != SDLF_OK) return sdlf_fail_context(status, "trainer");
    status = sdlf_fields_complete(sdlf_trainer_later_fields, options);
    if (status != SDLF_OK) return sdlf_fail_context(status, "trainer");
    status = sdlf_fields_complete(sdlf_trainer_augment_fields, &options->augment);
    if (status != SDLF_OK) return sdlf_fail_context(status, "trainer: augment");
    status = sdlf_optimizer_complete(&options->optimizer);
    int states = status == SDLF_OK ? options->optimizer.type->state_count(&options->optimizer) : 0;
    if (status == SDLF_OK && states + (options->ema > 0) + (options->lookahead > 0) > 3)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: %s with these options, ema and lookahead keep more than 3 "
                         "copies of the weights: leave one out",
                         options->optimizer.type->name);
    if (status == SDLF_OK && options->schedule.peak == 0)
        options->schedule.peak = sdlf_optimizer_rate(&options->optimizer, options->batch);
    return status == SDLF_OK ? sdlf_schedule_complete(&options->schedule) : status;
}

/* ---- comparing ---- */

static sdlf_status differs(const char *where, const sdlf_field *field)
{
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: %s %s is not what the checkpoint was trained with", where,
                     field->name);
}

/* The rate is the option most often changed in a resumed run: the message has both values. */
static sdlf_status schedule_differs(const sdlf_field *field, const sdlf_schedule *found, const sdlf_schedule *wanted)
{
    if (strcmp(field->name, "peak") != 0) return differs("schedule", field);
    return sdlf_fail(
        SDLF_ERROR_ARGUMENT,
        "resume: the checkpoint was trained with a learning rate of %g, the peak of its schedule (learning-rate), "
        "but %g is asked for",
        (double)found->peak, (double)wanted->peak);
}

/* True if the rate of a step depends on the number of epochs. */
static bool depends_on_epochs(const sdlf_schedule *schedule)
{
    bool steady = schedule->kind == SDLF_SCHEDULE_CONSTANT || schedule->kind == SDLF_SCHEDULE_STEP;
    return !steady || schedule->warmup > 0;
}

sdlf_status sdlf_trainer_compare_options(const sdlf_trainer_options *found, const sdlf_trainer_options *wanted,
                                         bool finished)
{
    const sdlf_field *field = NULL;
    if (wanted->batch != found->batch)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "resume: the checkpoint was trained with a batch of %" PRId64 ", but %" PRId64 " is asked for",
                         found->batch, wanted->batch);
    if (wanted->seed != found->seed)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "resume: the checkpoint was trained with seed %" PRIu64 ", but %" PRIu64 " is asked for",
                         found->seed, wanted->seed);
    if (wanted->optimizer.type != found->optimizer.type)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with %s, but %s is asked for",
                         found->optimizer.type->name, wanted->optimizer.type->name);
    field =
        sdlf_fields_difference(wanted->optimizer.type->fields, &found->optimizer.options, &wanted->optimizer.options);
    if (field != NULL) return differs(wanted->optimizer.type->name, field);
    if (wanted->schedule.kind != found->schedule.kind)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "resume: the checkpoint was trained with schedule %s, but %s is asked for",
                         sdlf_schedule_names[found->schedule.kind], sdlf_schedule_names[wanted->schedule.kind]);
    field = sdlf_fields_difference(sdlf_schedule_fields(wanted->schedule.kind), &found->schedule, &wanted->schedule);
    if (field != NULL) return schedule_differs(field, &found->schedule, &wanted->schedule);
    field = sdlf_fields_difference(sdlf_trainer_fields, found, wanted);
    if (field != NULL) return differs("option", field);
    field = sdlf_fields_difference(sdlf_trainer_later_fields, found, wanted);
    if (field != NULL) return differs("option", field);
    if (strcmp(wanted->rate_scales, found->rate_scales) != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with learning rates scaled by '%s'",
                         found->rate_scales);
    if (strcmp(wanted->weight_decays, found->weight_decays) != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with weight decays of '%s'",
                         found->weight_decays);
    field = sdlf_fields_difference(sdlf_trainer_augment_fields, &found->augment, &wanted->augment);
    if (field != NULL) return differs("augment", field);
    if (wanted->augment.seed != found->augment.seed)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: augment seed is not what the checkpoint was trained with");
    if (wanted->loss != found->loss || strcmp(wanted->class_weights, found->class_weights) != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with loss %s and class weights '%s'",
                         sdlf_loss_names[found->loss], found->class_weights);
    if (wanted->gradient_dtype != found->gradient_dtype)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: gradient_dtype is not what the checkpoint was trained with (%s)",
                         sdlf_dtype_name(found->gradient_dtype));
    if (wanted->math != found->math)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with math %s, but %s is asked for",
                         sdlf_math_name(found->math), sdlf_math_name(wanted->math));
    if (wanted->epochs != found->epochs && !finished && depends_on_epochs(&found->schedule))
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "resume: the checkpoint was to train for %d epochs, which its %s schedule depends on, but %d are asked for "
            "(omit it, or give the same, to continue)",
            found->epochs, sdlf_schedule_names[found->schedule.kind], wanted->epochs);
    return SDLF_OK;
}
