/* SPDX-License-Identifier: MIT */
/* The outputs of a model that was run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/scores.h"
#include "apps/output/stream.h"
#include "apps/run/run.h"
#include "apps/system/memory.h"

enum { SHOWN = 8, SMALL = 4096 };

/* The largest remaining value that is not NaN; -1: none. */
static int64_t largest(const double *value, int64_t count)
{
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(value[i]) && (best < 0 || value[i] > value[best])) best = i;
    return best;
}

/* Shows the most probable classes of one sample by its scores, which are overwritten; NaN scores come last. */
static void show_top(const run_session *s, double *score, int64_t classes, json_t *list)
{
    double *raw = memory_allocate((size_t)classes * sizeof *raw),
           *left = memory_allocate((size_t)classes * sizeof *left);
    for (int64_t i = 0; i < classes; i++) {
        raw[i] = score[i];
        left[i] = isnan(score[i]) ? -INFINITY : score[i];
    }
    scores_to_probabilities(score, classes);
    for (int64_t i = 0; i < s->set.top && i < classes; i++) {
        int64_t best = largest(left, classes);
        const char *label = labels_name(&s->labels, best);
        if (list != NULL)
            json_array_append_new(list, json_pack("{sI so so so}", "class", (json_int_t)best, "label",
                                                  label ? json_text(label) : json_null(), "score",
                                                  json_number(raw[best]), "probability", json_number(score[best])));
        else if (label != NULL)
            printf("  %6s  %5lld  %-10.6g  %s\n", number_percent(score[best], 1).text, (long long)best, raw[best],
                   label);
        else
            printf("  %6s  %5lld  %.6g\n", number_percent(score[best], 1).text, (long long)best, raw[best]);
        left[best] = NAN;
    }
    free(left);
    free(raw);
}

/* Elements first .. first + count - 1 of a tensor, as double. */
static void take_values(const sdlf_tensor *tensor, int64_t first, int64_t count, double *value)
{
    const char *from = (const char *)tensor->data + (size_t)first * sdlf_dtype_size(tensor->dtype);
    sdlf_convert(SDLF_FLOAT64, value, tensor->dtype, from, count);
}

/* NaN scores are shown, and make the run fail at its end. */
static void note_scores(run_session *s, const char *name, const double *score, int64_t classes)
{
    if (s->not_finite != NULL || scores_check(score, classes) == SDLF_OK) return;
    s->not_finite = memory_print("output '%s': %s", name, sdlf_error_message());
}

static void show_tops(run_session *s, const char *name, const sdlf_tensor *tensor, json_t *object)
{
    int64_t count = sdlf_tensor_count(tensor), samples = tensor->shape.rank > 1 ? tensor->shape.dim[0] : 1;
    int64_t classes = samples > 0 ? count / samples : 0;
    json_t *all = object != NULL ? json_array() : NULL;
    double *value = memory_allocate((size_t)classes * sizeof *value);
    if (sdlf_model_output_count(s->model) == 1) labels_warn(&s->labels, classes, "run");
    for (int64_t n = 0; n < samples; n++) {
        json_t *list = object != NULL ? json_array() : NULL;
        if (object == NULL && n < s->set.inputs.count && samples == s->set.inputs.count)
            terminal_print_name(stdout, s->input[n].path);
        take_values(tensor, n * classes, classes, value);
        note_scores(s, name, value, classes);
        show_top(s, value, classes, list);
        if (list != NULL) json_array_append_new(all, list);
    }
    free(value);
    if (object != NULL) json_object_set_new(object, "top", all);
}

static void summarise(const char *name, const sdlf_tensor *tensor, json_t *object)
{
    int64_t count = sdlf_tensor_count(tensor);
    int64_t finite = 0;
    double low = INFINITY, high = -INFINITY, sum = 0, value[SMALL];
    for (int64_t first = 0; first < count; first += SMALL) {
        int64_t length = count - first < SMALL ? count - first : SMALL;
        take_values(tensor, first, length, value);
        for (int64_t i = 0; i < length; i++) {
            low = fmin(low, value[i]);
            high = fmax(high, value[i]);
            sum += value[i];
            finite += isfinite(value[i]);
        }
    }
    take_values(tensor, 0, count < SMALL ? count : SMALL, value); /* the first ones again */
    if (object == NULL) {
        printf("%s  %s %s  ", name, sdlf_dtype_name(tensor->dtype), sdlf_shape_print(tensor->shape).text);
        if (count == 0) {
            puts("no elements");
            return;
        }
        if (low > high) {
            puts("no element is a number");
            return;
        }
        printf("from %.6g to %.6g, mean %.6g", low, high, sum / (double)count);
        if (finite < count)
            printf("; %s of %s not finite", number_count(count - finite).text, number_count(count).text);
        fputs("\n ", stdout);
        for (int64_t i = 0; i < count && i < SHOWN; i++) printf(" %.6g", value[i]);
        puts(count > SHOWN ? " ..." : "");
        return;
    }
    json_object_set_new(object, "minimum", json_number(low));
    json_object_set_new(object, "maximum", json_number(high));
    json_object_set_new(object, "mean", json_number(sum / (double)count));
    if (count > SMALL) return;
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, json_number(value[i]));
    json_object_set_new(object, "values", list);
}

/* Writes an output to the files that request it. */
static sdlf_status write_files(const run_session *s, int index, const char *name, const sdlf_tensor *tensor)
{
    int unnamed = 0;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->set.outputs.count && status == SDLF_OK; i++) {
        const run_file *file = &s->output[i];
        bool mine = file->name != NULL ? strcmp(file->name, name) == 0 : unnamed == index;
        unnamed += file->name == NULL;
        if (!mine) continue;
        output_stream out;
        status = output_stream_open(&out, file->path);
        if (status == SDLF_OK) status = sdlf_tensor_write_file(tensor, out.path);
        status = output_stream_close(&out, status);
    }
    return status;
}

static sdlf_status show_output(run_session *s, int index, json_t *all)
{
    const char *name = sdlf_model_output_name(s->model, index);
    sdlf_tensor tensor;
    sdlf_status status = run_read_output(s, name, &tensor);
    if (status == SDLF_OK) {
        json_t *object = all != NULL ? json_pack("{so ss so}", "name", json_text(name), "dtype",
                                                 sdlf_dtype_name(tensor.dtype), "shape", json_shape(tensor.shape))
                                     : NULL;
        char *shown = memory_copy_text(name);
        terminal_clean(shown);
        bool arrays = run_prints_array(s); /* and nothing else */
        if (object != NULL || (s->set.top == 0 && !arrays)) summarise(shown, &tensor, object);
        if (s->set.top > 0) show_tops(s, shown, &tensor, object);
        free(shown);
        if (object != NULL) json_array_append_new(all, object);
        status = write_files(s, index, name, &tensor);
    }
    free(tensor.data);
    return status;
}

bool run_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

bool run_prints_array(const run_session *s)
{
    for (int i = 0; i < s->set.outputs.count; i++)
        if (output_is_standard(s->output[i].path)) return true;
    return false;
}

sdlf_status run_check_outputs(const run_session *s)
{
    if (run_prints_array(s) && (s->set.json || s->set.top > 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--output - and --%s: only one of the two can go to standard output",
                         s->set.json ? "json" : "top");
    for (int i = 0; i < s->set.outputs.count; i++) {
        const char *path = s->output[i].path;
        if (run_ends_with(path, ".pb") || run_ends_with(path, ".npz"))
            return sdlf_fail(SDLF_ERROR_ARGUMENT,
                             "--output %s: outputs are written as NumPy arrays: expected a name such as y.npy", path);
        for (int j = 0; j < i; j++)
            if (strcmp(path, s->output[j].path) == 0)
                return sdlf_fail(SDLF_ERROR_ARGUMENT, "--output %s: two outputs cannot be one file", path);
        sdlf_status status = output_stream_check(path);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static sdlf_status check_names(const run_session *s)
{
    int unnamed = 0;
    for (int i = 0; i < s->set.outputs.count; i++) {
        const char *name = s->output[i].name;
        bool found = name == NULL;
        if (found && ++unnamed > sdlf_model_output_count(s->model))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--output %s: the model has %d output%s, and other files take %s",
                             s->output[i].path, sdlf_model_output_count(s->model), unnamed == 2 ? "" : "s",
                             unnamed == 2 ? "it" : "them");
        for (int j = 0; j < sdlf_model_output_count(s->model) && !found; j++)
            found = strcmp(name, sdlf_model_output_name(s->model, j)) == 0;
        if (!found)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--output %s=%s: the model has no output '%s'", name,
                             s->output[i].path, name);
    }
    return SDLF_OK;
}

sdlf_status run_show_outputs(run_session *s)
{
    json_t *all = s->set.json ? json_array() : NULL;
    sdlf_status status = check_names(s);
    for (int i = 0; i < sdlf_model_output_count(s->model) && status == SDLF_OK; i++)
        if (!sdlf_model_output_is_length(s->model, i) && !run_is_state(s, sdlf_model_output_name(s->model, i)))
            status = show_output(s, i, all);
    if (status == SDLF_OK && all != NULL)
        status = json_print_result(all);
    else
        json_decref(all);
    return status == SDLF_OK && s->not_finite != NULL ? sdlf_fail(SDLF_ERROR_NUMERIC, "%s", s->not_finite) : status;
}
