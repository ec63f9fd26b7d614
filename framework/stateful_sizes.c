/* SPDX-License-Identifier: MIT */
/* See stateful_internal.h. */
#include "framework/stateful_internal.h"

#include <stdlib.h>
#include <string.h>

static sdlf_status out_of_memory(void)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "stateful: out of memory");
}

/* ---- sizes ---- */

typedef struct sizes {
    int64_t **at; /* address of each; */
    int64_t *size;
    int count;
} sizes;

static void count_size(void *user, int64_t *size)
{
    (void)size;
    ((sizes *)user)->count++;
}

static void note_size(void *user, int64_t *size)
{
    sizes *all = user;
    all->at[all->count] = size;
    all->size[all->count++] = *size;
}

static void sizes_release(sizes *all)
{
    free(all->at);
    free(all->size);
}

static sdlf_status sizes_of(sizes *all, sdlf_plan *plan)
{
    *all = (sizes){.count = 0};
    plan_visit_sizes(plan, count_size, all);
    all->at = malloc((size_t)(all->count + 1) * sizeof *all->at);
    all->size = malloc((size_t)(all->count + 1) * sizeof *all->size);
    if (all->at == NULL || all->size == NULL) return out_of_memory();
    all->count = 0;
    plan_visit_sizes(plan, note_size, all);
    return SDLF_OK;
}

static length_line line_through(int64_t length, int64_t at, int64_t before)
{
    int64_t slope = at - before;
    return (length_line){.first = at - slope * length, .slope = slope};
}

static int64_t line_at(length_line line, int64_t length)
{
    return line.first + line.slope * length;
}

/* Stores the lines through the sizes of all samples in the rule, if the sizes are linear. */
static sdlf_status find_sizes(length_rule *rule, const sizes *own, const sizes *of, const length_sample *samples,
                              int count)
{
    rule->size = malloc((size_t)(own->count + 1) * sizeof *rule->size);
    if (rule->size == NULL) return out_of_memory();
    for (int i = 0; i < own->count; i++) {
        length_line through = line_through(samples[0].length, own->size[i], of[1].size[i]);
        for (int k = 0; k < count; k++)
            rule->straight = rule->straight && of[k].size[i] == line_at(through, samples[k].length);
        if (through.slope != 0) rule->size[rule->size_count++] = (moving_size){own->at[i], through};
    }
    return SDLF_OK;
}

/* ---- values ---- */

enum { SMALL = 1 << 16 };

static bool is_value(const sdlf_model *model, int parameter)
{
    return strcmp(model->layers[model->parameters[parameter].layer].layer.type->name, "value") == 0;
}

/* True if the values differ. Large weights that are read unconverted from the file are equal, and not compared. */
static sdlf_status differ(const length_sample *a, const length_sample *b, int parameter, bool *result)
{
    *result = false;
    sdlf_parameter *x = &a->model->parameters[parameter], *y = &b->model->parameters[parameter];
    bool same_shape = sdlf_shape_equal(x->spec.shape, y->spec.shape);
    bool weight = !is_value(a->model, parameter) && sdlf_shape_count(x->spec.shape) > SMALL;
    if (same_shape && weight && model_reads_pieces(a->model, parameter)) return SDLF_OK;
    if (same_shape && a->model->source.file == NULL && !is_value(a->model, parameter)) return SDLF_OK;
    sdlf_status status = model_fetch_values(a->model, parameter);
    if (status == SDLF_OK) status = model_fetch_values(b->model, parameter);
    if (status != SDLF_OK) return status;
    *result = !same_shape || memcmp(x->value.data, y->value.data, (size_t)sdlf_tensor_bytes(&x->value)) != 0;
    if (*result && is_value(a->model, parameter)) return SDLF_OK;
    if (*result)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "stateful: parameter %s follows from the length of the states",
                         x->name);
    if (sdlf_shape_count(x->spec.shape) > SMALL && a->model->source.file != NULL) {
        model_drop_values(a->model, parameter);
        model_drop_values(b->model, parameter);
    }
    return SDLF_OK;
}

static const float *values_of(const length_sample *sample, int parameter)
{
    return sample->model->parameters[parameter].value.data;
}

static int64_t count_of(const length_sample *sample, int parameter)
{
    return sdlf_shape_count(sample->model->parameters[parameter].spec.shape);
}

/* The index, at the plan's own length, of the element that is `i` if the side is `side`. */
static int64_t number_of(const moving_values *moving, int64_t i, int64_t side)
{
    int64_t inner = i % moving->inner, place = i / moving->inner % side, outer = i / moving->inner / side;
    if (moving->from_end) place += moving->most - side;
    return (outer * moving->most + place) * moving->inner + inner;
}

/* The value of element `i` at that length, if the side is `side`. */
static float value_at(const moving_values *moving, int64_t i, int64_t side, int64_t length)
{
    int64_t number = number_of(moving, i, side);
    double first = moving->first[number], slope = moving->slope[number];
    return (float)(slope != 0 ? first + slope * (double)length : first); /* an infinity has no slope */
}

/* Finds the axis that grows, as `side`; no other may differ. */
static bool find_side(moving_values *moving, const length_sample *samples)
{
    sdlf_shape a = samples[0].model->parameters[moving->parameter].spec.shape;
    sdlf_shape b = samples[1].model->parameters[moving->parameter].spec.shape;
    int axis = a.rank > 0 ? a.rank - 1 : 0, differing = 0;
    for (int i = 0; i < a.rank && a.rank == b.rank; i++)
        if (a.dim[i] != b.dim[i]) axis = i, differing++;
    if (a.rank != b.rank || differing > 1) return false;
    moving->outer = sdlf_shape_span(a, 0, axis);
    moving->inner = sdlf_shape_span(a, axis + 1 < a.rank ? axis + 1 : a.rank, a.rank);
    moving->most = a.rank > 0 ? a.dim[axis] : 1;
    moving->side = line_through(samples[0].length, moving->most, a.rank > 0 ? b.dim[axis] : 1);
    return true;
}

/* Fits lines through the elements of the first two samples. */
static void find_lines(moving_values *moving, const length_sample *samples)
{
    const float *own = values_of(&samples[0], moving->parameter), *before = values_of(&samples[1], moving->parameter);
    int64_t side = line_at(moving->side, samples[1].length);
    for (int64_t i = 0; i < moving->outer * moving->most * moving->inner; i++) {
        moving->first[i] = (double)own[i];
        moving->slope[i] = 0;
    }
    for (int64_t i = 0; i < moving->outer * side * moving->inner; i++) {
        int64_t number = number_of(moving, i, side);
        if (own[number] == before[i]) continue;
        moving->slope[number] = (double)own[number] - (double)before[i];
        moving->first[number] = (double)own[number] - moving->slope[number] * (double)samples[0].length;
    }
}

static bool lines_hold(const moving_values *moving, const length_sample *samples, int count)
{
    for (int k = 1; k < count; k++) {
        const float *values = values_of(&samples[k], moving->parameter);
        int64_t side = line_at(moving->side, samples[k].length), own = moving->outer * side * moving->inner;
        if (side < 1 || side > moving->most || own != count_of(&samples[k], moving->parameter)) return false;
        for (int64_t i = 0; i < own; i++)
            if (value_at(moving, i, side, samples[k].length) != values[i]) return false;
    }
    return true;
}

/* Fits the lines of one parameter. */
static sdlf_status find_line(length_rule *rule, moving_values *moving, const length_sample *samples, int count)
{
    size_t most = (size_t)count_of(&samples[0], moving->parameter) + 1;
    for (int k = 0; k < count; k++) {
        sdlf_status status = model_fetch_values(samples[k].model, moving->parameter);
        if (status != SDLF_OK) return status;
    }
    moving->first = calloc(most, sizeof *moving->first);
    moving->slope = calloc(most, sizeof *moving->slope);
    moving->values = calloc(most, sizeof *moving->values);
    if (moving->first == NULL || moving->slope == NULL || moving->values == NULL) return out_of_memory();
    bool found = false;
    for (int from_end = 0; from_end < 2 && !found && find_side(moving, samples); from_end++) {
        moving->from_end = from_end;
        find_lines(moving, samples);
        found = lines_hold(moving, samples, count);
    }
    rule->straight = rule->straight && found;
    return SDLF_OK;
}

static sdlf_status find_values(length_rule *rule, const length_sample *samples, int count)
{
    const sdlf_model *model = samples[0].model;
    rule->values = calloc((size_t)model->parameter_count + 1, sizeof *rule->values);
    if (rule->values == NULL) return out_of_memory();
    sdlf_status status = SDLF_OK;
    for (int p = 0; p < model->parameter_count && status == SDLF_OK; p++) {
        bool moves = false;
        for (int k = 1; k < count && !moves && status == SDLF_OK; k++)
            if (k == 1 || (is_value(model, p) && count_of(&samples[0], p) <= SMALL))
                status = differ(&samples[0], &samples[k], p, &moves);
        if (status != SDLF_OK || !moves) continue;
        rule->values[rule->values_count].parameter = p;
        status = find_line(rule, &rule->values[rule->values_count++], samples, count);
    }
    return status;
}

/* ---- the rule ---- */

static sdlf_status check_alike(const sdlf_plan *plan, const length_sample *sample)
{
    if (sample->model->parameter_count == plan->model->parameter_count && plan_is_alike(plan, sample->plan, false))
        return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                     "stateful: a step after %lld positions needs other operations than one at full capacity",
                     (long long)sample->length);
}

enum { MOST_SAMPLES = 8 };

sdlf_status length_rule_find(length_rule *rule, sdlf_plan *plan, const length_sample *samples, int count)
{
    sizes own, of[MOST_SAMPLES] = {{.count = 0}};
    *rule = (length_rule){.straight = true};
    sdlf_status status = sizes_of(&own, plan);
    for (int k = 0; k < count && status == SDLF_OK; k++) {
        status = check_alike(plan, &samples[k]);
        if (status == SDLF_OK) rule->straight = rule->straight && plan_is_alike(plan, samples[k].plan, true);
        if (status == SDLF_OK) status = sizes_of(&of[k], samples[k].plan);
    }
    if (status == SDLF_OK) status = find_sizes(rule, &own, of, samples, count);
    if (status == SDLF_OK) status = find_values(rule, samples, count);
    for (int k = 0; k < count; k++) sizes_release(&of[k]);
    sizes_release(&own);
    return status;
}

void length_rule_release(length_rule *rule)
{
    for (int i = 0; i < rule->values_count; i++) {
        free(rule->values[i].first);
        free(rule->values[i].slope);
        free(rule->values[i].values);
    }
    free(rule->values);
    free(rule->size);
    *rule = (length_rule){.size_count = 0};
}

sdlf_status length_rule_apply(const length_rule *rule, sdlf_plan *plan, int64_t length)
{
    for (int i = 0; i < rule->size_count; i++) *rule->size[i].size = line_at(rule->size[i].line, length);
    sdlf_status status = plan_settle_sizes(plan);
    for (int k = 0; k < rule->values_count && status == SDLF_OK; k++) {
        const moving_values *moving = &rule->values[k];
        int64_t side = line_at(moving->side, length), count = moving->outer * side * moving->inner;
        for (int64_t i = 0; i < count; i++) moving->values[i] = value_at(moving, i, side, length);
        status = plan_put_values(plan, moving->parameter, moving->values, count);
    }
    return status;
}

sdlf_status length_rule_copy(const length_rule *rule, sdlf_plan *plan, const length_sample *sample)
{
    sizes to, from = {.count = 0};
    sdlf_status status = check_alike(plan, sample);
    if (status != SDLF_OK) return status;
    status = sizes_of(&to, plan);
    if (status == SDLF_OK) status = sizes_of(&from, sample->plan);
    for (int i = 0; i < to.count && status == SDLF_OK; i++) *to.at[i] = from.size[i];
    sizes_release(&to);
    sizes_release(&from);
    if (status != SDLF_OK) return status;
    plan_take_options(plan, sample->plan);
    status = plan_settle_sizes(plan);
    for (int k = 0; k < rule->values_count && status == SDLF_OK; k++) {
        int p = rule->values[k].parameter;
        status = model_fetch_values(sample->model, p);
        if (status == SDLF_OK) status = plan_put_values(plan, p, values_of(sample, p), count_of(sample, p));
    }
    return status;
}
