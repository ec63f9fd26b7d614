/* SPDX-License-Identifier: MIT */
/* A trainer's options as JSON, for checkpoints.
 *
 *   {"optimizer":{"type":"sgd","momentum":0.9,...},"schedule":{"type":"one_cycle","peak":0.05,...},
 *    "trainer":{"clip_norm":0,"label_smoothing":0},"augment":{"shift":2,...,"seed":"1"},"math":"fp32"}
 * Numbers have 17 digits, which distinguish any two doubles. */
#include "framework/trainer_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "framework/require.h"
#include "framework/schedule.h"

/* ---- writing ---- */

static const char *const keep_names[SDLF_KEEP_COUNT] = {"last", "best_accuracy", "best_loss"};

/* An object with the described members, only numbers and flags; NULL: out of memory. `type` NULL: none. */
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
    json_t *augment = fields_to_json(sdlf_trainer_augment_fields, NULL, &options->augment), *root = json_object();
    int failed = augment != NULL ? json_object_set_new(augment, "seed", json_string(seed)) : -1;
    failed |= json_object_set_new(
        root, "optimizer",
        fields_to_json(options->optimizer.type->fields, options->optimizer.type->name, &options->optimizer.options));
    failed |= json_object_set_new(root, "schedule",
                                  fields_to_json(sdlf_schedule_fields(options->schedule.kind),
                                                 sdlf_schedule_names[options->schedule.kind], &options->schedule));
    failed |= json_object_set_new(root, "trainer", fields_to_json(sdlf_trainer_fields, NULL, options));
    failed |= json_object_set_new(root, "augment", augment);
    failed |= json_object_set_new(root, "more", fields_to_json(sdlf_trainer_later_fields, NULL, options));
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
    if (options->keep != SDLF_KEEP_LAST)
        failed |= json_object_set_new(root, "keep", json_string(keep_names[options->keep]));
    if (options->patience > 0) failed |= json_object_set_new(root, "patience", json_integer(options->patience));
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

/* Reads the described members from object `where` of `root`. */
static sdlf_status fields_from_json(const json_t *root, const char *where, const sdlf_field *fields, void *options)
{
    const json_t *object = json_object_get(root, where);
    if (!json_is_object(object)) return bad_settings("", where);
    for (const sdlf_field *field = fields; field->name != NULL; field++) {
        const json_t *value = json_object_get(object, field->name);
        void *member = (char *)options + field->offset;
        bool later = fields == sdlf_trainer_augment_fields || fields == sdlf_trainer_later_fields ||
                     strcmp(field->name, "rest_momentum") == 0 || strcmp(field->name, "newton_schulz") == 0;
        if (value == NULL && later) continue; /* the checkpoint is older than this member */
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

/* Reads options that are stored only if they are not the default. */
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
    options->lookahead = 0;
    options->lookahead_share = 0;
    options->huber_delta = 0;
    options->loss_scale = 1; /* checkpoints older than loss scaling do not have it */
    options->accumulate = 1;
    options->mixing = (sdlf_mixing){.mixup = 0};
    options->automatic = (sdlf_auto_augment){.trivial = false};
    options->sync_batch_norm = false;
    const json_t *keep = json_object_get(root, "keep"), *patience = json_object_get(root, "patience");
    const char *kept = json_string_value(keep);
    int which = 0;
    while (kept != NULL && which < SDLF_KEEP_COUNT && strcmp(kept, keep_names[which]) != 0) which++;
    if (which == SDLF_KEEP_COUNT || (keep != NULL && kept == NULL)) return bad_settings("", "keep");
    const json_int_t epochs = json_integer_value(patience);
    if (patience != NULL && (epochs < 1 || epochs > INT32_MAX)) return bad_settings("", "patience");
    options->keep = (sdlf_keep)which;
    options->patience = (int)epochs;
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
    const json_t *math = json_object_get(root, "math"); /* checkpoints older than this option do not have it */
    options->math = math == NULL           ? SDLF_MATH_FP32
                    : json_is_string(math) ? sdlf_math_from_name(json_string_value(math))
                                           : SDLF_MATH_COUNT;
    if (options->math == SDLF_MATH_COUNT) return bad_settings("", "math");
    sdlf_status status = read_unusual(root, options);
    if (status == SDLF_OK && json_object_get(root, "more") != NULL)
        status = fields_from_json(root, "more", sdlf_trainer_later_fields, options);
    if (status == SDLF_OK)
        status = fields_from_json(root, "optimizer", options->optimizer.type->fields, &options->optimizer.options);
    if (status == SDLF_OK)
        status = fields_from_json(root, "schedule", sdlf_schedule_fields(options->schedule.kind), &options->schedule);
    if (status == SDLF_OK) status = fields_from_json(root, "trainer", sdlf_trainer_fields, options);
    return status == SDLF_OK ? fields_from_json(root, "augment", sdlf_trainer_augment_fields, &options->augment)
                             : status;
}

sdlf_status sdlf_trainer_restore_options(sdlf_trainer_options *options, const sdlf_training_state *state)
{
    SDLF_REQUIRE(options);
    SDLF_REQUIRE(state);
    if (!state->present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "there is no training state to continue from");
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
