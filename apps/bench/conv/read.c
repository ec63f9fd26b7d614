/* SPDX-License-Identifier: MIT */
/* A stored report of the convolution lab, read back.
 *
 * The file is checked as untrusted input: the first invalid value ends the reading, with its path in
 * the file ("convolutions[3].shape.stride"). After an error the readers below return harmless
 * values. */
#include "apps/bench/conv/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/input/json_size.h"

enum { MOST_BYTES = 4 << 20 }; /* twice what the largest report needs */

static const double work_most = 1e16; /* FLOPs or bytes of a convolution's layers */

/* Every machine is within these bounds, and sums and quotients of values within them can be shown in a chart. */
typedef struct bounds {
    double least, most;
} bounds;
static const bounds seconds_range = {1e-12, 1e12}, rate_range = {1, 1e24}; /* rates: FLOP/s or bytes/s */

typedef struct reader {
    const char *path;
    char where[64]; /* the current object, with a dot: "limits." */
    sdlf_status status;
} reader;

static void refuse(reader *r, const char *key, const char *expected)
{
    if (r->status == SDLF_OK)
        r->status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: %s%s: expected %s", r->path, r->where, key, expected);
}

/* Reads text for a terminal and a chart: without control characters. */
static const char *read_text(reader *r, const json_t *object, const char *key, const char *fallback)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    if (fallback && (!value || json_is_null(value))) return fallback;
    bool plain = text != NULL;
    for (size_t i = 0; plain && text[i]; i++) plain = (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    if (plain) return text;
    refuse(r, key, "text of one line");
    return "";
}

static double read_number(reader *r, const json_t *object, const char *key, bounds range)
{
    double value = json_number_value(json_object_get(object, key)); /* 0: missing */
    if (value >= range.least && value <= range.most) return value;
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %g to %g", range.least, range.most);
    refuse(r, key, expected);
    return 1;
}

/* Reads two times, NaN if missing. */
static void read_quarters(reader *r, const json_t *object, double *quarters)
{
    const json_t *array = json_object_get(object, "quarters");
    for (size_t i = 0; i < 2; i++) {
        const json_t *quarter = json_array_get(array, i);
        quarters[i] = json_is_number(quarter) ? json_number_value(quarter) : NAN;
        if (isnan(quarters[i]) || (quarters[i] >= 0 && quarters[i] <= seconds_range.most)) continue;
        char expected[64];
        snprintf(expected, sizeof expected, "numbers from 0 to %g", seconds_range.most);
        refuse(r, "quarters", expected);
    }
}

/* Reads a number >= 0, or returns the given value if it is missing. */
static double read_optional(reader *r, const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return missing;
    if (json_is_number(value) && json_number_value(value) >= 0) return json_number_value(value);
    refuse(r, key, "a number from 0 on");
    return missing;
}

static int64_t read_whole(reader *r, const json_t *object, const char *key, int64_t least)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value) && json_integer_value(value) >= least) return (int64_t)json_integer_value(value);
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from %d on", (int)least);
    refuse(r, key, expected);
    return least;
}

/* Reads the sizes of a shape. */
static void read_sizes(reader *r, const json_t *object, const char *key, int64_t least, int count, int64_t *values)
{
    const json_t *array = json_object_get(object, key);
    bool good = json_array_size(array) == (size_t)count;
    for (int i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        good = good && json_is_integer(value) && json_integer_value(value) >= least &&
               json_integer_value(value) <= LAB_SIDE_MOST;
        values[i] = good ? (int64_t)json_integer_value(value) : 1;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "%d whole numbers from %d to %d", count, (int)least, LAB_SIDE_MOST);
    if (!good) refuse(r, key, expected);
}

/* Reads the length of an array of 1 to `most` objects. */
static int read_count(reader *r, const json_t *object, const char *key, int most)
{
    size_t count = json_array_size(json_object_get(object, key));
    char expected[64];
    snprintf(expected, sizeof expected, "a list of 1 to %d", most);
    if (count >= 1 && count <= (size_t)most) return (int)count;
    refuse(r, key, expected);
    return 0;
}

static void read_rungs(reader *r, const json_t *report, lab *l)
{
    int count = read_count(r, report, "rungs", LAB_RUNGS);
    for (int i = 0; i < count && r->status == SDLF_OK; i++) {
        const json_t *json = json_array_get(json_object_get(report, "rungs"), (size_t)i);
        snprintf(r->where, sizeof r->where, "rungs[%d].", i);
        const char *name = read_text(r, json, "name", NULL);
        lab_rung rung = {.summary = read_text(r, json, "summary", ""), .of = read_text(r, json, "calculator", NULL)};
        rung.rival = strcmp(rung.of, l->calculator) != 0;
        rung.algorithm = strcmp(name, "auto") == 0 || strcmp(name, l->calculator) == 0 || rung.rival ? 0 : i + 1;
        if (strlen(name) == 0 || strlen(name) >= sizeof rung.name) refuse(r, "name", "1 to 63 characters");
        snprintf(rung.name, sizeof rung.name, "%s", name);
        for (int j = 0; j < i; j++) {
            if (strcmp(l->rung[j].name, rung.name) == 0) refuse(r, "name", "another name than those before");
        }
        l->rung[l->rungs++] = rung;
    }
    r->where[0] = '\0';
}

static lab_shape read_shape(reader *r, const json_t *json)
{
    lab_shape s = {.n = 1};
    int64_t x[4], filters[4];
    read_sizes(r, json, "x", 1, 4, x);
    read_sizes(r, json, "filters", 1, 4, filters);
    read_sizes(r, json, "stride", 1, 2, s.stride);
    read_sizes(r, json, "padding", 0, 2, s.padding);
    read_sizes(r, json, "dilation", 1, 2, s.dilation);
    s.groups = read_whole(r, json, "groups", 1);
    if (s.groups > LAB_SIDE_MOST) refuse(r, "groups", "no more groups than channels");
    s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3];
    s.k = filters[0], s.kernel[0] = filters[2], s.kernel[1] = filters[3];
    if (filters[1] != s.c / s.groups) refuse(r, "filters", "channels of x over groups");
    return s;
}

/* Reads the work of a convolution; for all its layers it must not exceed work_most, so that sums fit int64. */
static int64_t read_work(reader *r, const json_t *json, const char *key, int64_t least, int layers)
{
    int64_t work = read_whole(r, json, key, least);
    if ((double)work * layers <= work_most) return work;
    refuse(r, key, "1e16 at most, of all layers");
    return least;
}

static void read_result(reader *r, const json_t *json, int layers, lab_result *result)
{
    *result = (lab_result){.ran = json_is_true(json_object_get(json, "ran"))};
    if (!result->ran) {
        snprintf(result->why, sizeof result->why, "%s", read_text(r, json, "why", ""));
        return;
    }
    result->channels_last = json_is_true(json_object_get(json, "channels_last"));
    result->prepared = (int64_t)fmin(read_optional(r, json, "prepared_bytes", 0), work_most);
    const char *taken = read_text(r, json, "taken", "");
    result->taken = taken[0] ? taken : NULL;
    result->seconds = read_number(r, json, "seconds", seconds_range);
    read_quarters(r, json, result->quarter);
    result->samples = (int)fmin(read_optional(r, json, "samples", 0), 1e6);
    result->runs = (int)fmin(read_optional(r, json, "runs_a_sample", 0), 1e6);
    result->work =
        (sdlf_cost){read_work(r, json, "work_flops", 0, layers), read_work(r, json, "work_bytes", 1, layers)};
    result->error = read_optional(r, json, "error", NAN);
    result->compared = read_optional(r, json, "compared", 0);
}

static void read_case(reader *r, const json_t *json, lab *l, int index)
{
    lab_case *item = &l->workload.item[index];
    sdlf_operation operation;
    snprintf(r->where, sizeof r->where, "convolutions[%d].", index);
    snprintf(item->name, sizeof item->name, "%s", read_text(r, json, "name", NULL));
    snprintf(item->row, sizeof item->row, "%s", read_text(r, json, "row", item->name));
    int64_t layers = read_whole(r, json, "layers", 1);
    item->count = layers < 10000 ? (int)layers : 10000;
    snprintf(r->where, sizeof r->where, "convolutions[%d].shape.", index);
    item->shape = read_shape(r, json_object_get(json, "shape"));
    if (r->status == SDLF_OK) {
        r->status = lab_shape_operation(&item->shape, l->dtype, &operation);
        if (r->status != SDLF_OK) r->status = sdlf_fail_context(r->status, "%s: convolutions[%d]", r->path, index);
    }
    if (r->status != SDLF_OK) return;
    l->cost[index] = sdlf_operation_cost(&operation);
    snprintf(r->where, sizeof r->where, "convolutions[%d].", index);
    if ((double)l->cost[index].flops * item->count > work_most) refuse(r, "layers", "fewer, or a smaller shape");
    const json_t *results = json_object_get(json, "rungs");
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *result = json_array_get(results, i);
        snprintf(r->where, sizeof r->where, "convolutions[%d].rungs[%zu].", index, i);
        const char *name = read_text(r, result, "rung", NULL);
        int rung = 0;
        while (rung < l->rungs && strcmp(l->rung[rung].name, name) != 0) rung++;
        if (rung == l->rungs)
            refuse(r, "rung", "a name among the rungs");
        else
            read_result(r, result, item->count, &l->result[index][rung]);
    }
    r->where[0] = '\0';
}

/* Keeps the wanted rungs, in their order. */
static sdlf_status keep(lab *l, const argument_list *wanted, const char *path)
{
    bool kept[LAB_RUNGS] = {false};
    for (int i = 0; i < wanted->count; i++) {
        int rung = 0;
        while (rung < l->rungs && strcmp(l->rung[rung].name, wanted->item[i]) != 0) rung++;
        if (rung == l->rungs)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--rung %s: %s has no such rung", wanted->item[i], path);
        kept[rung] = true;
    }
    int count = 0;
    for (int i = 0; i < l->rungs && wanted->count > 0; i++) {
        if (!kept[i]) continue;
        l->rung[count] = l->rung[i];
        for (int j = 0; j < l->cases; j++) l->result[j][count] = l->result[j][i];
        count++;
    }
    if (wanted->count > 0) l->rungs = count;
    return SDLF_OK;
}

static void read_report(reader *r, lab *l)
{
    const json_t *report = l->source, *limits = json_object_get(report, "limits");
    if (!json_is_object(report) || !json_object_get(report, "convolutions")) {
        refuse(r, "convolutions", "what `sdlf bench conv --json` writes");
        return;
    }
    l->workload = (lab_workload){.name = read_text(r, report, "workload", NULL)};
    snprintf(l->workload.about, sizeof l->workload.about, "%s", read_text(r, report, "about", ""));
    l->calculator = read_text(r, report, "calculator", NULL);
    l->math = read_text(r, report, "math", "fp32");
    snprintf(l->runs_on, sizeof l->runs_on, "%s", read_text(r, report, "runs_on", ""));
    const char *dtype = read_text(r, report, "dtype", "float32");
    l->dtype = strcmp(dtype, "float64") == 0 ? SDLF_FLOAT64 : SDLF_FLOAT32;
    if (strcmp(dtype, sdlf_dtype_name(l->dtype)) != 0) refuse(r, "dtype", "float32 or float64");
    l->interrupted = json_is_true(json_object_get(report, "interrupted"));
    snprintf(r->where, sizeof r->where, "limits.");
    l->ceilings = (ceilings){.calculator = l->calculator,
                             .flops = read_number(r, limits, "flops_per_second", rate_range),
                             .bytes = read_number(r, limits, "bytes_per_second", rate_range),
                             .side = read_whole(r, limits, "product_side", 1),
                             .copy_bytes = read_whole(r, limits, "copy_bytes", 1)};
    r->where[0] = '\0';
    read_rungs(r, report, l);
    l->workload.count = read_count(r, report, "convolutions", LAB_CASES);
    l->unchecked = true;
    for (int i = 0; i < l->workload.count && r->status == SDLF_OK; i++) {
        read_case(r, json_array_get(json_object_get(report, "convolutions"), (size_t)i), l, i);
        l->cases = i + 1;
        for (int j = 0; j < l->rungs; j++) l->unchecked = l->unchecked && !(l->result[i][j].compared > 0);
    }
}

sdlf_status lab_read(lab *l, const char *path, const argument_list *wanted)
{
    *l = (lab){.cases = 0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    sdlf_status status = input_json_read(&bytes, &size, path, MOST_BYTES);
    if (status != SDLF_OK) return status;
    json_error_t error;
    l->source = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, &error);
    free(bytes);
    if (!l->source)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %d: %s; expected what `sdlf bench conv --json` writes", path,
                         error.line, error.text);
    reader r = {.path = path, .status = SDLF_OK};
    read_report(&r, l);
    return r.status == SDLF_OK ? keep(l, wanted, path) : r.status;
}
