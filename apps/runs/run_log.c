/* SPDX-License-Identifier: MIT */
/* See run_log.h. */
#include "apps/runs/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/input/json_size.h"
#include "apps/output/number.h"
#include "apps/system/memory.h"

enum { MOST_BYTES = 1 << 28, MOST_OF_A_LINE = 1 << 24 };

static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = memory_copy_text(slash ? slash + 1 : path), *dot = strrchr(name, '.');
    if (dot && dot != name) *dot = '\0';
    return name;
}

/* A run resumed within an epoch records that epoch again: the later line replaces the earlier. */
static void put_epoch(run_log *run, json_t *line)
{
    size_t last = json_array_size(run->epochs);
    if (last > 0 && run_number(json_array_get(run->epochs, last - 1), "epoch") >= run_number(line, "epoch"))
        json_array_remove(run->epochs, last - 1);
    json_array_append(run->epochs, line);
}

static sdlf_status take_line(run_log *run, json_t *line, const char *path, long number)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    if (!event)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s:%ld: expected an object with \"event\", as 'sdlf train --log' writes it", path, number);
    if (strcmp(event, "start") == 0) {
        json_decref(run->start);
        run->start = json_incref(line);
    } else if (!run->start) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%ld: expected the event \"start\" first, found \"%.40s\"", path, number,
                         event);
    } else if (strcmp(event, "step") == 0) {
        json_array_append(run->steps, line);
    } else if (strcmp(event, "epoch") == 0) {
        put_epoch(run, line);
    } else if (strcmp(event, "end") == 0) {
        json_decref(run->end);
        run->end = json_incref(line);
    }
    return SDLF_OK;
}

sdlf_status run_log_read(run_log *run, const char *path)
{
    *run = (run_log){.name = name_of(path), .steps = json_array(), .epochs = json_array()};
    unsigned char *bytes = NULL;
    size_t size = 0;
    sdlf_status status = input_json_read(&bytes, &size, path, MOST_BYTES);
    if (status != SDLF_OK) return status;
    const char *line = (const char *)bytes, *end = line + size;
    for (long number = 1; status == SDLF_OK && line < end; number++) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((next != NULL ? next : end) - line);
        json_error_t error;
        json_t *value = length <= MOST_OF_A_LINE ? json_loadb(line, length, 0, &error) : NULL;
        if (length > MOST_OF_A_LINE)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s:%ld: expected at most %d bytes in a line, found %zu", path,
                               number, (int)MOST_OF_A_LINE, length);
        else if (value == NULL && next == NULL)
            break; /* still being written */
        else
            status = value ? take_line(run, value, path, number)
                           : sdlf_fail(SDLF_ERROR_FORMAT, "%s:%ld: expected a JSON object: %s, at byte %d of the line",
                                       path, number, error.text, error.position);
        json_decref(value);
        line = next != NULL ? next + 1 : end;
    }
    free(bytes);
    if (status == SDLF_OK && !run->start)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected the log of a training run, but it is empty", path);
    return status;
}

void run_log_release(run_log *run)
{
    free(run->name);
    json_decref(run->start);
    json_decref(run->steps);
    json_decref(run->epochs);
    json_decref(run->end);
    *run = (run_log){.name = NULL};
}

double run_number(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

run_figures run_figures_of(const run_log *run)
{
    run_figures f = {
        .loss = NAN, .accuracy = NAN, .test_loss = NAN, .test_accuracy = NAN, .best_accuracy = NAN, .weights = ""};
    size_t i;
    json_t *epoch;
    double samples = 0;
    json_array_foreach(run->epochs, i, epoch)
    {
        f.loss = run_number(epoch, "loss");
        f.accuracy = run_number(epoch, "accuracy");
        f.test_loss = run_number(epoch, "test_loss");
        f.test_accuracy = run_number(epoch, "test_accuracy");
        if (isfinite(run_number(epoch, "seconds"))) f.seconds += run_number(epoch, "seconds");
        if (isfinite(run_number(epoch, "samples"))) samples += run_number(epoch, "samples");
        if (isfinite(f.test_accuracy) && !(f.test_accuracy <= f.best_accuracy)) {
            f.best_accuracy = f.test_accuracy;
            f.best_epoch = (int)json_integer_value(json_object_get(epoch, "epoch"));
        }
        const char *weights = json_string_value(json_object_get(epoch, "weights"));
        if (weights) f.weights = weights;
        f.epochs++;
    }
    f.samples_per_second = f.seconds > 0 ? samples / f.seconds : NAN;
    return f;
}

/* ---- options ---- */

static bool is_shown_elsewhere(const char *key)
{
    static const char *const keys[] = {"event",   "trained",   "command",     "own_options", "out",       "checkpoint",
                                       "log",     "log_steps", "tensorboard", "quiet",       "confusion", "no_save",
                                       "dry_run", "resume",    "serve",       "port"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

static char *text_of(const char *key, const json_t *value)
{
    if (json_is_integer(value) && strcmp(key, "memory") == 0)
        return memory_copy_text(number_bytes(json_integer_value(value)).text);
    if (!value || json_is_null(value)) return memory_copy_text("-");
    if (json_is_string(value)) return memory_copy_text(json_string_value(value));
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(7));
    if (!text) memory_exhausted();
    return text;
}

static bool all_equal(const run_log *runs, int run_count, const char *key)
{
    const json_t *first = json_object_get(runs[0].start, key);
    for (int i = 1; i < run_count; i++) {
        const json_t *other = json_object_get(runs[i].start, key);
        bool none = !first || json_is_null(first), other_none = !other || json_is_null(other);
        if (none != other_none || (!none && !json_equal(first, other))) return false;
    }
    return true;
}

/* True if an earlier run had that option, which was then compared there. */
static bool is_seen(const run_log *runs, int before, const char *key)
{
    for (int i = 0; i < before; i++)
        if (json_object_get(runs[i].start, key) != NULL) return true;
    return false;
}

run_difference *run_differences(const run_log *runs, int run_count, int *count)
{
    run_difference *list = memory_allocate(sizeof *list);
    *count = 0;
    for (int r = 0; r < run_count; r++) {
        const char *key;
        json_t *value;
        json_object_foreach(runs[r].start, key, value)
        {
            bool wanted =
                run_count == 1 ? !json_is_null(value) && !json_is_false(value) : !all_equal(runs, run_count, key);
            if (!wanted || is_shown_elsewhere(key) || is_seen(runs, r, key)) continue;
            list = memory_resize(list, (size_t)(*count + 1) * sizeof *list);
            run_difference *difference = &list[(*count)++];
            *difference = (run_difference){.key = key,
                                           .option = memory_copy_text(key),
                                           .value = memory_allocate((size_t)run_count * sizeof(char *))};
            for (char *c = difference->option; *c; c++) *c = *c == '_' ? '-' : *c;
            for (int k = 0; k < run_count; k++)
                difference->value[k] = text_of(key, json_object_get(runs[k].start, key));
        }
    }
    return list;
}

void run_differences_free(run_difference *differences, int count, int run_count)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < run_count; k++) free(differences[i].value[k]);
        free(differences[i].value);
        free(differences[i].option);
    }
    free(differences);
}
