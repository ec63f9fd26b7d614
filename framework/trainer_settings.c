/* What a trainer was asked for: defaults and ranges, JSON for checkpoints, and the comparison when training goes on.
 *
 *   {"optimizer":{"type":"sgd","momentum":0.9,...},"schedule":{"type":"one_cycle","peak":0.05,...},
 *    "trainer":{"clip_norm":0,"label_smoothing":0},"augment":{"shift":2,...,"seed":"1"},"math":"fp32"}
 * Numbers have 17 digits, which tell any two doubles apart. */
#include "framework/trainer_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/field.h"
#include "framework/formats/json_text.h"
#include "framework/require.h"
#include "framework/schedule.h"

enum { DEFAULT_BATCH = 64, MAXIMUM_BATCH = 1 << 20, MAXIMUM_EPOCHS = 1000000 };

static const sdlf_field trainer_fields[] = {
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

/* What came later than some checkpoints, which lack them. */
static const sdlf_field later_fields[] = {
    {.name = "huber_delta",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, huber_delta),
     .minimum = 1e-6,
     .maximum = 1e6,
     .fallback = 1,
     .zero_means_default = true,
     .help = "the difference from which on huber is linear"},
    {.name = "ema",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_trainer_options, ema),
     .maximum = 0.9999999,
     .help = "what the average of the weights keeps of itself; 0: there is none"},
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
     .offset = offsetof(sdlf_trainer_options, trivial),
     .help = "TrivialAugment"},
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

static const sdlf_field augment_fields[] = {
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
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: %s is for classes, and the loss is %s",
                         options->label_smoothing > 0 ? "label_smoothing" : "class_weights",
                         sdlf_loss_names[options->loss]);
    if (options->augment.seed == 0) options->augment.seed = options->seed;
    if (options->batch < 1 || options->batch > MAXIMUM_BATCH)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: batch: expected 1 to %d, found %" PRId64, MAXIMUM_BATCH,
                         options->batch);
    if (options->epochs < 1 || options->epochs > MAXIMUM_EPOCHS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: epochs: expected 1 to %d, found %d", MAXIMUM_EPOCHS,
                         options->epochs);
    sdlf_status status = sdlf_fields_complete(trainer_fields, options);
    if (status != SDLF_OK) return sdlf_fail_context(status, "trainer");
    status = sdlf_fields_complete(later_fields, options);
    if (status != SDLF_OK) return sdlf_fail_context(status, "trainer");
    status = sdlf_fields_complete(augment_fields, &options->augment);
    if (status != SDLF_OK) return sdlf_fail_context(status, "trainer: augment");
    status = sdlf_optimizer_complete(&options->optimizer);
    if (status == SDLF_OK && options->schedule.peak == 0)
        options->schedule.peak = sdlf_optimizer_rate(&options->optimizer, options->batch);
    return status == SDLF_OK ? sdlf_schedule_complete(&options->schedule) : status;
}

/* ---- writing ---- */

/* An object of the described members, numbers and flags alone; NULL: no memory. `type` NULL: none. */
static json_t *fields_to_json(const sdlf_field *fields, const char *type, const void *options)
{
    json_t *object = json_object();
    int failed = type != NULL ? json_object_set_new(object, "type", json_string(type)) : 0;
    for (const sdlf_field *field = fields; field->name != NULL; field++) {
        const void *member = (const char *)options + field->offset;
        json_t *value = NULL;
        if (field->type == SDLF_FIELD_FLOAT) value = json_real((double)*(const float *)member);
        if (field->type == SDLF_FIELD_DOUBLE) value = json_real(*(const double *)member);
        if (field->type == SDLF_FIELD_INT) value = json_integer(*(const int *)member);
        if (field->type == SDLF_FIELD_BOOL) value = json_boolean(*(const bool *)member);
        failed |= json_object_set_new(object, field->name, value);
    }
    if (failed == 0) return object;
    json_decref(object);
    return NULL;
}

sdlf_status sdlf_trainer_write_settings(const sdlf_trainer_options *options, char *text, size_t size)
{
    char seed[24], *printed = NULL;
    snprintf(seed, sizeof seed, "%" PRIu64, options->augment.seed);
    json_t *augment = fields_to_json(augment_fields, NULL, &options->augment), *root = json_object();
    int failed = augment != NULL ? json_object_set_new(augment, "seed", json_string(seed)) : -1;
    failed |= json_object_set_new(
        root, "optimizer",
        fields_to_json(options->optimizer.type->fields, options->optimizer.type->name, &options->optimizer.options));
    failed |= json_object_set_new(root, "schedule",
                                  fields_to_json(sdlf_schedule_fields(options->schedule.kind),
                                                 sdlf_schedule_names[options->schedule.kind], &options->schedule));
    failed |= json_object_set_new(root, "trainer", fields_to_json(trainer_fields, NULL, options));
    failed |= json_object_set_new(root, "augment", augment);
    failed |= json_object_set_new(root, "more", fields_to_json(later_fields, NULL, options));
    if (options->rate_scales[0] != '\0')
        failed |= json_object_set_new(root, "rate_scales", json_string(options->rate_scales));
    if (options->weight_decays[0] != '\0')
        failed |= json_object_set_new(root, "weight_decays", json_string(options->weight_decays));
    if (options->gradient_dtype != SDLF_NONE)
        failed |= json_object_set_new(root, "gradient_dtype", json_string(sdlf_dtype_name(options->gradient_dtype)));
    if (options->loss != SDLF_LOSS_CROSS_ENTROPY)
        failed |= json_object_set_new(root, "loss", json_string(sdlf_loss_names[options->loss]));
    if (options->class_weights[0] != '\0')
        failed |= json_object_set_new(root, "class_weights", json_string(options->class_weights));
    failed |= json_object_set_new(root, "math", json_string(sdlf_math_name(options->math)));
    if (failed == 0) printed = json_text_print(root, JSON_COMPACT | JSON_REAL_PRECISION(17), NULL);
    json_decref(root);
    sdlf_status status = SDLF_OK;
    if (printed == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory to write the settings down");
    else if (strlen(printed) >= size)
        status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: the settings take %zu bytes, but a checkpoint has room for %zu",
                      strlen(printed), size - 1);
    else
        memcpy(text, printed, strlen(printed) + 1);
    free(printed);
    return status;
}

/* ---- reading ---- */

static sdlf_status bad_settings(const char *where, const char *name)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "training state: settings: '%s%s%s' is missing or of another type", where,
                     where[0] != '\0' ? "." : "", name);
}

/* The described members from object `where` of `root`. */
static sdlf_status fields_from_json(const json_t *root, const char *where, const sdlf_field *fields, void *options)
{
    const json_t *object = json_object_get(root, where);
    if (!json_is_object(object)) return bad_settings("", where);
    for (const sdlf_field *field = fields; field->name != NULL; field++) {
        const json_t *value = json_object_get(object, field->name);
        void *member = (char *)options + field->offset;
        bool later = fields == augment_fields || fields == later_fields || strcmp(field->name, "rest_momentum") == 0 ||
                     strcmp(field->name, "newton_schulz") == 0;
        if (value == NULL && later) continue; /* the checkpoint is older than the kind */
        if (field->type == SDLF_FIELD_FLOAT && json_is_number(value))
            *(float *)member = (float)json_number_value(value);
        else if (field->type == SDLF_FIELD_DOUBLE && json_is_number(value))
            *(double *)member = json_number_value(value);
        else if (field->type == SDLF_FIELD_INT && json_is_integer(value) && json_integer_value(value) >= INT32_MIN &&
                 json_integer_value(value) <= INT32_MAX)
            *(int *)member = (int)json_integer_value(value);
        else if (field->type == SDLF_FIELD_BOOL && (value == NULL || json_is_boolean(value)))
            *(bool *)member = json_is_true(value); /* missing: the checkpoint is older than the flag */
        else
            return bad_settings(where, field->name);
    }
    return SDLF_OK;
}

static const char *type_of(const json_t *root, const char *where)
{
    return json_string_value(json_object_get(json_object_get(root, where), "type"));
}

/* What is there only where it is not the usual. */
static sdlf_status read_unusual(const json_t *root, sdlf_trainer_options *options)
{
    const char *loss = json_string_value(json_object_get(root, "loss"));
    const char *weights = json_string_value(json_object_get(root, "class_weights"));
    int kind = 0;
    while (loss != NULL && kind < SDLF_LOSS_COUNT && strcmp(loss, sdlf_loss_names[kind]) != 0) kind++;
    if (kind == SDLF_LOSS_COUNT) return bad_settings("", "loss");
    if (weights != NULL && strlen(weights) >= sizeof options->class_weights) return bad_settings("", "class_weights");
    const char *rounded = json_string_value(json_object_get(root, "gradient_dtype"));
    sdlf_dtype dtype = rounded != NULL ? sdlf_dtype_from_name(rounded) : SDLF_NONE;
    if (rounded != NULL && dtype != SDLF_FLOAT16 && dtype != SDLF_BFLOAT16) return bad_settings("", "gradient_dtype");
    const char *scales = json_string_value(json_object_get(root, "rate_scales"));
    if (scales != NULL && strlen(scales) >= sizeof options->rate_scales) return bad_settings("", "rate_scales");
    snprintf(options->rate_scales, sizeof options->rate_scales, "%s", scales != NULL ? scales : "");
    const char *decays = json_string_value(json_object_get(root, "weight_decays"));
    if (decays != NULL && strlen(decays) >= sizeof options->weight_decays) return bad_settings("", "weight_decays");
    snprintf(options->weight_decays, sizeof options->weight_decays, "%s", decays != NULL ? decays : "");
    options->ema = 0;
    options->huber_delta = 0;
    options->accumulate = 1;
    options->mixing = (sdlf_mixing){.mixup = 0};
    options->trivial = false;
    options->sync_batch_norm = false;
    options->gradient_dtype = dtype;
    options->loss = (sdlf_loss)kind;
    snprintf(options->class_weights, sizeof options->class_weights, "%s", weights != NULL ? weights : "");
    return SDLF_OK;
}

static sdlf_status read_settings(const json_t *root, sdlf_trainer_options *options)
{
    const char *schedule = type_of(root, "schedule");
    const char *seed = json_string_value(json_object_get(json_object_get(root, "augment"), "seed"));
    char *end = NULL;
    int kind = 0;
    options->optimizer = (sdlf_optimizer){.type = sdlf_optimizer_class_find(type_of(root, "optimizer"))};
    if (options->optimizer.type == NULL) return bad_settings("optimizer", "type");
    while (kind < SDLF_SCHEDULE_COUNT && (schedule == NULL || strcmp(schedule, sdlf_schedule_names[kind]) != 0)) kind++;
    if (kind == SDLF_SCHEDULE_COUNT) return bad_settings("schedule", "type");
    options->schedule = (sdlf_schedule){.kind = (sdlf_schedule_kind)kind};
    options->augment = (sdlf_augmentation){.seed = seed != NULL ? strtoull(seed, &end, 10) : 0};
    if (end == NULL || end == seed || *end != '\0') return bad_settings("augment", "seed");
    const json_t *math = json_object_get(root, "math"); /* checkpoints from before there was a choice have none */
    options->math = math == NULL           ? SDLF_MATH_FP32
                    : json_is_string(math) ? sdlf_math_from_name(json_string_value(math))
                                           : SDLF_MATH_COUNT;
    if (options->math == SDLF_MATH_COUNT) return bad_settings("", "math");
    sdlf_status status = read_unusual(root, options);
    if (status == SDLF_OK && json_object_get(root, "more") != NULL)
        status = fields_from_json(root, "more", later_fields, options);
    if (status == SDLF_OK)
        status = fields_from_json(root, "optimizer", options->optimizer.type->fields, &options->optimizer.options);
    if (status == SDLF_OK)
        status = fields_from_json(root, "schedule", sdlf_schedule_fields(options->schedule.kind), &options->schedule);
    if (status == SDLF_OK) status = fields_from_json(root, "trainer", trainer_fields, options);
    return status == SDLF_OK ? fields_from_json(root, "augment", augment_fields, &options->augment) : status;
}

sdlf_status sdlf_trainer_restore_options(sdlf_trainer_options *options, const sdlf_training_state *state)
{
    SDLF_REQUIRE(options);
    SDLF_REQUIRE(state);
    if (!state->present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "there is no training state to go on from");
    json_t *root = NULL;
    json_text_error error;
    sdlf_trainer_options restored = *options;
    restored.batch = state->batch;
    restored.epochs = state->epochs;
    restored.seed = state->seed;
    sdlf_status status = json_text_parse(&root, state->settings, strlen(state->settings), &error);
    if (status == SDLF_ERROR_MEMORY) return sdlf_fail(status, "training state: no memory to read the settings");
    if (status != SDLF_OK)
        return sdlf_fail(status, "training state: settings: byte %zu: %s", error.position, error.text);
    status = read_settings(root, &restored);
    json_decref(root);
    if (status != SDLF_OK) return status;
    if (restored.batch == 0 || restored.epochs == 0 || restored.seed == 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "training state: batch, epochs and seed are not all above 0");
    status = sdlf_trainer_complete_options(&restored);
    if (status != SDLF_OK) return sdlf_fail_context(SDLF_ERROR_FORMAT, "training state");
    *options = restored;
    return SDLF_OK;
}

/* ---- comparing ---- */

static sdlf_status differs(const char *where, const sdlf_field *field)
{
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: %s %s is not what the checkpoint was trained with", where,
                     field->name);
}

/* Does the rate of a step depend on how many epochs there are? */
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
    if (field != NULL) return differs("schedule", field);
    field = sdlf_fields_difference(trainer_fields, found, wanted);
    if (field != NULL) return differs("option", field);
    field = sdlf_fields_difference(later_fields, found, wanted);
    if (field != NULL) return differs("option", field);
    if (strcmp(wanted->rate_scales, found->rate_scales) != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with learning rates scaled by '%s'",
                         found->rate_scales);
    if (strcmp(wanted->weight_decays, found->weight_decays) != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "resume: the checkpoint was trained with weight decays of '%s'",
                         found->weight_decays);
    field = sdlf_fields_difference(augment_fields, &found->augment, &wanted->augment);
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
            "resume: the checkpoint was to train for %d epochs, which its %s schedule depends on, but %d are "
            "asked for",
            found->epochs, sdlf_schedule_names[found->schedule.kind], wanted->epochs);
    return SDLF_OK;
}
