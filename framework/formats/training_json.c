/* SPDX-License-Identifier: MIT */
#include "framework/formats/training_json.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "framework/formats/text.h"

/* ---- writing ---- */

static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *unsigned_json(uint64_t value)
{
    char text[24]; /* this parser's JSON integers end at 2^63 - 1 */
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

/* A name for display only: bytes that are not UTF-8 become '?'. */
static json_t *shown_json(const char *text)
{
    if (text_is_utf8(text)) return json_string(text);
    char copy[sizeof((sdlf_training_state *)NULL)->data];
    size_t length = strnlen(text, sizeof copy - 1);
    for (size_t i = 0; i < length; i++) copy[i] = (char)((unsigned char)text[i] < 0x80 ? text[i] : '?');
    copy[length] = '\0';
    return json_string(copy);
}

/* Prints and releases the object; `ok` tells whether all members were added. */
static sdlf_status print(char **text, json_t *object, bool ok)
{
    *text = ok ? json_text_print(object, JSON_REAL_PRECISION(17), NULL) : NULL;
    json_decref(object);
    return *text != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing the training state");
}

sdlf_status training_json_write(char **text, const sdlf_training_state *state)
{
    *text = NULL;
    if (!text_is_utf8(state->optimizer) || !text_is_utf8(state->settings))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "the training state's optimizer and settings must be UTF-8");
    json_t *object = json_object();
    bool ok = json_object_set_new(object, "step", json_integer(state->step)) == 0 &&
              json_object_set_new(object, "epoch", json_integer(state->epoch)) == 0 &&
              json_object_set_new(object, "epoch_step", json_integer(state->epoch_step)) == 0 &&
              json_object_set_new(object, "loss_sum", real_json(state->loss_sum)) == 0 &&
              json_object_set_new(object, "correct", real_json(state->correct)) == 0 &&
              json_object_set_new(object, "samples", real_json(state->samples)) == 0 &&
              json_object_set_new(object, "seed", unsigned_json(state->seed)) == 0 &&
              json_object_set_new(object, "batch", json_integer(state->batch)) == 0 &&
              json_object_set_new(object, "epochs", json_integer(state->epochs)) == 0 &&
              json_object_set_new(object, "optimizer", json_string(state->optimizer)) == 0 &&
              json_object_set_new(object, "data", shown_json(state->data)) == 0 &&
              json_object_set_new(object, "settings", json_string(state->settings)) == 0;
    const sdlf_loss_scale *scale = &state->loss_scale;
    if (scale->scale > 0)
        ok = ok && json_object_set_new(object, "loss_scale", json_real(scale->scale)) == 0 &&
             json_object_set_new(object, "good_steps", json_integer(scale->good)) == 0 &&
             json_object_set_new(object, "skipped_steps", json_integer(scale->skipped)) == 0;
    return print(text, object, ok);
}

static const char *const fits[] = {
    [SDLF_FIT_WHOLE] = "whole", [SDLF_FIT_CROP] = "crop", [SDLF_FIT_STRETCH] = "stretch"};

/* One number, or a list of per-channel values. */
static json_t *numbers_json(float one, const float *each, int count)
{
    if (count == 0) return json_real((double)one);
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        if (json_array_append_new(list, json_real((double)each[i])) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

sdlf_status normalization_json_write(char **text, const sdlf_normalization *normalization)
{
    const sdlf_channel_normalization *channels = &normalization->channels;
    *text = NULL;
    if (channels->count < 0 || channels->count > SDLF_NORMALIZED_CHANNELS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "the normalisation of %d channels: expected at most %d", channels->count,
                         SDLF_NORMALIZED_CHANNELS);
    for (int i = 0; i == 0 || i < channels->count; i++) {
        double mean = (double)(channels->count > 0 ? channels->mean[i] : normalization->mean);
        double scale = (double)(channels->count > 0 ? channels->scale[i] : normalization->scale);
        if (!isfinite(mean) || !isfinite(scale))
            return sdlf_fail(SDLF_ERROR_NUMERIC, "the normalisation must be finite, found mean %g and scale %g", mean,
                             scale);
    }
    json_t *object = json_object();
    bool ok =
        json_object_set_new(object, "mean", numbers_json(normalization->mean, channels->mean, channels->count)) == 0 &&
        json_object_set_new(object, "scale", numbers_json(normalization->scale, channels->scale, channels->count)) == 0;
    if (ok && normalization->fit != SDLF_FIT_WHOLE)
        ok = json_object_set_new(object, "fit", json_string(fits[normalization->fit])) == 0;
    return print(text, object, ok);
}

sdlf_status classes_json_write(char **text, const model_classes *classes)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < classes->count && ok; i++) ok = json_array_append_new(list, shown_json(classes->name[i])) == 0;
    return print(text, list, ok);
}

/* ---- reading ---- */

/* Reads members in sequence; the first failure is kept, and later reads do nothing. */
typedef struct reader {
    const json_t *object;
    const char *path, *what;
    sdlf_status status;
} reader;

static void wrong(reader *from, const char *key, const char *expected)
{
    from->status =
        sdlf_fail(SDLF_ERROR_FORMAT, "%s: %s in its metadata: '%s' must be %s", from->path, from->what, key, expected);
}

static sdlf_status parse(json_t **object, const char *text, const char *path, const char *what)
{
    json_text_error error;
    sdlf_status status = json_text_check(text, strlen(text));
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s: %s in its metadata", path, what);
    status = json_text_parse(object, text, strlen(text), &error);
    if (status == SDLF_ERROR_MEMORY) return sdlf_fail(status, "%s: out of memory reading %s", path, what);
    if (status != SDLF_OK)
        return sdlf_fail(status, "%s: %s in its metadata is not JSON: %s", path, what, text_show(error.text).text);
    return SDLF_OK;
}

static int64_t read_count(reader *from, const char *key, int64_t maximum)
{
    const json_t *value = json_object_get(from->object, key);
    if (from->status != SDLF_OK) return 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= maximum)
        return json_integer_value(value);
    wrong(from, key, "an integer from 0 up");
    return 0;
}

/* null represents a number that JSON cannot express. */
static double read_real(reader *from, const char *key)
{
    const json_t *value = json_object_get(from->object, key);
    if (from->status != SDLF_OK) return 0;
    if (json_is_null(value)) return NAN;
    if (json_is_number(value)) return json_number_value(value);
    wrong(from, key, "a number");
    return 0;
}

static float read_float(reader *from, const char *key)
{
    double value = read_real(from, key);
    if (from->status == SDLF_OK && !(fabs(value) <= FLT_MAX)) wrong(from, key, "a finite number");
    return from->status == SDLF_OK ? (float)value : 0;
}

static uint64_t read_unsigned(reader *from, const char *key)
{
    const char *text = json_string_value(json_object_get(from->object, key));
    if (from->status != SDLF_OK) return 0;
    size_t digits = text != NULL ? strspn(text, "0123456789") : 0;
    if (digits >= 1 && digits <= 20 && text[digits] == '\0') return strtoull(text, NULL, 10);
    wrong(from, key, "a string of digits");
    return 0;
}

static void read_text(reader *from, const char *key, char *text, size_t size)
{
    const json_t *value = json_object_get(from->object, key);
    if (from->status != SDLF_OK) return;
    if (json_is_string(value) && json_string_length(value) < size)
        memcpy(text, json_string_value(value), json_string_length(value) + 1);
    else
        wrong(from, key, size > 100 ? "a string" : "a short string");
}

sdlf_status training_json_read(sdlf_training_state *state, const char *text, const char *path)
{
    json_t *object = NULL;
    reader from = {.path = path, .what = "the training state"};
    from.status = parse(&object, text, path, from.what);
    from.object = object;
    sdlf_training_state found = {.present = true};
    found.step = read_count(&from, "step", INT64_MAX);
    found.epoch = (int)read_count(&from, "epoch", INT_MAX);
    found.epoch_step = read_count(&from, "epoch_step", INT64_MAX);
    found.loss_sum = read_real(&from, "loss_sum");
    found.correct = read_real(&from, "correct");
    found.samples = read_real(&from, "samples");
    found.seed = read_unsigned(&from, "seed");
    found.batch = read_count(&from, "batch", INT64_MAX);
    found.epochs = (int)read_count(&from, "epochs", INT_MAX);
    if (json_object_get(object, "loss_scale") != NULL) {
        found.loss_scale.scale = read_real(&from, "loss_scale");
        found.loss_scale.good = read_count(&from, "good_steps", INT64_MAX);
        found.loss_scale.skipped = read_count(&from, "skipped_steps", INT64_MAX);
    }
    read_text(&from, "optimizer", found.optimizer, sizeof found.optimizer);
    read_text(&from, "data", found.data, sizeof found.data);
    read_text(&from, "settings", found.settings, sizeof found.settings);
    json_decref(object);
    if (from.status == SDLF_OK) *state = found;
    return from.status;
}

/* Reads a number, or a list of `count` numbers, where the first list sets `count`. */
static void read_numbers(reader *from, const char *key, float *one, float *each, int *count)
{
    json_t *value = json_object_get(from->object, key);
    size_t size = json_array_size(value);
    if (from->status != SDLF_OK) return;
    if (!json_is_array(value)) {
        if (*count > 0)
            wrong(from, key, "a list as long as the other");
        else
            *one = read_float(from, key);
        return;
    }
    if (size < 1 || size > SDLF_NORMALIZED_CHANNELS || (*count > 0 && size != (size_t)*count)) {
        wrong(from, key, "a list of 1 to 16 numbers, as long as the other");
        return;
    }
    *count = (int)size;
    for (size_t i = 0; i < size; i++) {
        double number = json_number_value(json_array_get(value, i));
        if (!json_is_number(json_array_get(value, i)) || !(fabs(number) <= FLT_MAX)) {
            wrong(from, key, "a list of finite numbers");
            return;
        }
        each[i] = (float)number;
    }
}

static sdlf_fit read_fit(reader *from)
{
    const json_t *value = json_object_get(from->object, "fit");
    if (from->status != SDLF_OK || value == NULL) return SDLF_FIT_WHOLE;
    for (size_t i = 0; json_is_string(value) && i < sizeof fits / sizeof fits[0]; i++)
        if (strcmp(json_string_value(value), fits[i]) == 0) return (sdlf_fit)i;
    wrong(from, "fit", "whole, crop or stretch");
    return SDLF_FIT_WHOLE;
}

sdlf_status normalization_json_read(sdlf_normalization *normalization, const char *text, const char *path)
{
    json_t *object = NULL;
    reader from = {.path = path, .what = "the normalisation"};
    from.status = parse(&object, text, path, from.what);
    from.object = object;
    sdlf_normalization found = {.known = true, .scale = 1};
    read_numbers(&from, "mean", &found.mean, found.channels.mean, &found.channels.count);
    if (from.status == SDLF_OK && found.channels.count > 0 && !json_is_array(json_object_get(object, "scale")))
        wrong(&from, "scale", "a list as long as the other");
    int scales = found.channels.count;
    read_numbers(&from, "scale", &found.scale, found.channels.scale, &scales);
    if (from.status == SDLF_OK && scales != found.channels.count) wrong(&from, "mean", "a list as long as the other");
    found.fit = read_fit(&from);
    json_decref(object);
    if (from.status == SDLF_OK) *normalization = found;
    return from.status;
}

sdlf_status classes_json_read(model_classes *classes, const char *text, const char *path)
{
    json_t *list = NULL;
    sdlf_status status = parse(&list, text, path, "the names of classes");
    if (status == SDLF_OK && !json_is_array(list))
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the names of classes in its metadata: expected a list", path);
    model_classes found = {.name = status == SDLF_OK ? calloc(json_array_size(list) + 1, sizeof *found.name) : NULL};
    if (status == SDLF_OK && found.name == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
    for (size_t i = 0; status == SDLF_OK && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the names of classes in its metadata: expected strings", path);
        else if ((found.name[i] = strdup(name)) == NULL)
            status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
        else
            found.count++;
    }
    json_decref(list);
    if (status == SDLF_OK)
        *classes = found;
    else
        model_release_classes(&found);
    return status;
}
