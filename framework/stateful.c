/* SPDX-License-Identifier: MIT */
/* Plans that are run in steps. See stateful.h. */
#include <sdlf/stateful.h>

#include <stdlib.h>
#include <string.h>

#include "framework/require.h"
#include "framework/stateful_internal.h"

enum { SAMPLES = 6, USUAL = 1024, MOST = 1 << 24, FEW = 4 };

struct sdlf_stateful {
    sdlf_stateful_maker *make;
    void *user;
    void (*free_user)(void *user); /* NULL: `user` is the caller's */
    onnx_source *source;           /* `user`, if it is one; else NULL */
    sdlf_stateful_options options;
    sdlf_state *states; /* names are owned */
    sdlf_model *model;
    sdlf_plan *plan; /* for the greatest length */
    length_rule rule;
    int64_t capacity, step, length;
    int64_t prepared; /* the length that the plan is prepared for; -1: none */
    bool grows;
};

void sdlf_stateful_free(sdlf_stateful *stateful)
{
    if (stateful == NULL) return;
    length_rule_release(&stateful->rule);
    sdlf_plan_free(stateful->plan);
    sdlf_model_free(stateful->model);
    for (int i = 0; stateful->states != NULL && i < stateful->options.state_count; i++) {
        free((char *)stateful->states[i].input);
        free((char *)stateful->states[i].output);
    }
    free(stateful->states);
    if (stateful->free_user != NULL) stateful->free_user(stateful->user);
    free(stateful);
}

static void release_sample(length_sample *sample)
{
    sdlf_plan_free(sample->plan);
    sdlf_model_free(sample->model);
    *sample = (length_sample){.length = 0};
}

static sdlf_plan_options plan_options(const sdlf_stateful *s)
{
    return (sdlf_plan_options){.batch = 1,
                               .forward = s->options.calculator,
                               .dtype = s->options.dtype,
                               .consume_parameters = true,
                               .no_recording = true,
                               .states = s->states,
                               .state_count = s->options.state_count};
}

static sdlf_status make_sample(const sdlf_stateful *s, int64_t length, length_sample *sample)
{
    *sample = (length_sample){.length = length};
    sdlf_plan_options options = plan_options(s);
    sdlf_status status = s->make(s->user, length, false, &sample->model);
    if (status == SDLF_OK) status = sdlf_plan_outline(&sample->plan, sample->model, &options);
    return status;
}

/* The number of positions that a step adds to growing states, the same for all; 0: no state grows. */
static sdlf_status find_step(sdlf_stateful *s, const sdlf_plan *plan)
{
    for (int i = 0; i < plan->state_count; i++) {
        const plan_state *state = &plan->states[i];
        if (state->axis < 0) continue;
        int64_t before = plan->values[state->input].tensor.shape.dim[state->axis];
        int64_t step = plan->values[state->output].tensor.shape.dim[state->axis] - before;
        if (before != 1 || (s->grows && step != s->step))
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "state %s=%s: expected all states to grow together",
                             s->states[i].input, s->states[i].output);
        s->grows = true;
        s->step = step;
    }
    if (!s->grows) s->step = 1;
    return SDLF_OK;
}

static sdlf_status make_rule(sdlf_stateful *s, int64_t most)
{
    const int64_t lengths[SAMPLES] = {most, most - 1, 1, 2, most / 2, most / 2 + 1};
    length_sample samples[SAMPLES] = {{.length = 0}};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < SAMPLES && status == SDLF_OK; i++) status = make_sample(s, lengths[i], &samples[i]);
    if (status == SDLF_OK) status = length_rule_find(&s->rule, s->plan, samples, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) release_sample(&samples[i]);
    return status;
}

static void set_capacity(sdlf_stateful *s, int64_t room)
{
    for (int i = 0; i < s->options.state_count; i++) s->states[i].capacity = room;
}

/* Determines from a model for one position how many positions a step adds. Inputs that include the new positions, such
 * as attention masks, are sized by the assumed number. */
static sdlf_status try_step(sdlf_stateful *s)
{
    length_sample first;
    s->grows = false;
    sdlf_status status = make_sample(s, 1, &first);
    if (status == SDLF_OK) status = find_step(s, first.plan);
    release_sample(&first);
    bool sized = s->source == NULL || !s->source->grows || (s->grows && s->source->added == s->step);
    if (status != SDLF_OK || sized) return status;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "stateful: input '%s' is open, and does not grow with the states",
                     s->source->shape[s->source->shape_count].name);
}

static sdlf_status make(sdlf_stateful *s)
{
    onnx_source *source = s->source;
    set_capacity(s, MOST);
    sdlf_status status = try_step(s);
    for (int i = 0; status != SDLF_OK && source != NULL && source->growing_count > 0 && i < source->size_count; i++) {
        source->grows = true;
        source->added = source->size[i];
        status = try_step(s);
    }
    if (status != SDLF_OK) return status;
    int64_t room = s->capacity > s->step + FEW ? s->capacity : s->step + FEW, most = s->grows ? room - s->step : 1;
    set_capacity(s, room);
    sdlf_plan_options options = plan_options(s);
    status = s->make(s->user, most, true, &s->model);
    if (status == SDLF_OK) status = sdlf_plan_create(&s->plan, s->model, &options);
    if (status == SDLF_OK && s->grows) status = make_rule(s, most);
    return status == SDLF_OK ? sdlf_stateful_rewind(s, 0) : status;
}

static sdlf_status copy_states(sdlf_stateful *s)
{
    const sdlf_stateful_options *options = &s->options;
    s->states = calloc((size_t)options->state_count + 1, sizeof *s->states);
    bool ok = s->states != NULL;
    for (int i = 0; ok && i < options->state_count; i++) {
        if (options->states[i].input == NULL || options->states[i].output == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "stateful: options->states[%d] lacks a name", i);
        s->states[i] = (sdlf_state){strdup(options->states[i].input), strdup(options->states[i].output), 0};
        ok = s->states[i].input != NULL && s->states[i].output != NULL;
    }
    return ok ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "stateful: out of memory");
}

/* With `free_user`, ownership of user passes to this function, even if it fails. */
static sdlf_status create(sdlf_stateful **stateful, sdlf_stateful_maker *maker, void *user, void (*free_user)(void *),
                          const sdlf_stateful_options *options)
{
    sdlf_stateful *s = calloc(1, sizeof *s);
    if (s == NULL) {
        if (free_user != NULL) free_user(user);
        return sdlf_fail(SDLF_ERROR_MEMORY, "stateful: out of memory");
    }
    *s = (sdlf_stateful){.make = maker,
                         .user = user,
                         .free_user = free_user,
                         .source = free_user != NULL ? user : NULL,
                         .options = *options,
                         .prepared = -1};
    s->capacity = options->capacity != 0 ? options->capacity : USUAL;
    sdlf_status status = SDLF_OK;
    if (options->state_count < 1 || s->capacity < 1 || s->capacity > MOST)
        status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "stateful: expected states, and a capacity of 1 to %d, found %d and %lld",
                      MOST, options->state_count, (long long)s->capacity);
    if (status == SDLF_OK) status = copy_states(s);
    if (status == SDLF_OK) status = make(s);
    if (status == SDLF_OK)
        *stateful = s;
    else
        sdlf_stateful_free(s);
    return status;
}

sdlf_status sdlf_stateful_create_with(sdlf_stateful **stateful, sdlf_stateful_maker *maker, void *user,
                                      const sdlf_stateful_options *options)
{
    SDLF_REQUIRE(stateful);
    *stateful = NULL;
    SDLF_REQUIRE(maker);
    SDLF_REQUIRE(options);
    SDLF_REQUIRE(options->calculator);
    if (options->state_count > 0) SDLF_REQUIRE(options->states);
    return create(stateful, maker, user, NULL, options);
}

/* ---- steps ---- */

static sdlf_status resize(sdlf_stateful *s)
{
    if (!s->grows) return SDLF_OK;
    if (s->rule.straight) return length_rule_apply(&s->rule, s->plan, s->length);
    length_sample sample;
    sdlf_status status = make_sample(s, s->length, &sample);
    if (status == SDLF_OK) status = length_rule_copy(&s->rule, s->plan, &sample);
    release_sample(&sample);
    return status;
}

sdlf_status sdlf_stateful_prepare(sdlf_stateful *stateful, sdlf_plan **plan)
{
    SDLF_REQUIRE(plan);
    *plan = NULL;
    SDLF_REQUIRE(stateful);
    if (stateful->grows && stateful->length + stateful->step > stateful->capacity)
        return sdlf_fail(SDLF_ERROR_SHAPE, "stateful: the states have %lld positions of %lld, and a step adds %lld",
                         (long long)stateful->length, (long long)stateful->capacity, (long long)stateful->step);
    if (stateful->prepared != stateful->length) {
        stateful->prepared = -1;
        sdlf_status status = resize(stateful);
        if (status != SDLF_OK) return status;
        stateful->prepared = stateful->length;
    }
    *plan = stateful->plan;
    return SDLF_OK;
}

sdlf_status sdlf_stateful_run(sdlf_stateful *stateful)
{
    sdlf_plan *plan;
    SDLF_REQUIRE(stateful);
    sdlf_status status = sdlf_stateful_prepare(stateful, &plan);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
    if (status != SDLF_OK) return status;
    plan_pass_states(plan);
    stateful->length += stateful->step;
    return SDLF_OK;
}

int64_t sdlf_stateful_length(const sdlf_stateful *stateful)
{
    return stateful != NULL ? stateful->length : 0;
}

int64_t sdlf_stateful_step(const sdlf_stateful *stateful)
{
    return stateful != NULL ? stateful->step : 0;
}

sdlf_status sdlf_stateful_rewind(sdlf_stateful *stateful, int64_t length)
{
    SDLF_REQUIRE(stateful);
    bool mixed = false;
    for (int i = 0; i < stateful->plan->state_count; i++) mixed = mixed || stateful->plan->states[i].axis < 0;
    if (length < 0 || length > stateful->length || (length > 0 && mixed))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: %lld of %lld positions%s", __func__, (long long)length,
                         (long long)stateful->length, mixed ? ": states that do not grow can only be reset" : "");
    stateful->length = length;
    if (length == 0) plan_clear_states(stateful->plan);
    return SDLF_OK;
}

/* ---- from an ONNX file ---- */

sdlf_status sdlf_stateful_create(sdlf_stateful **stateful, const char *path, const sdlf_stateful_options *options)
{
    SDLF_REQUIRE(stateful);
    *stateful = NULL;
    SDLF_REQUIRE(path);
    SDLF_REQUIRE(options);
    SDLF_REQUIRE(options->calculator);
    if (options->state_count > 0) SDLF_REQUIRE(options->states);
    if (options->state_count < 0 || options->dimension_count < 0 || options->shape_count < 0 ||
        options->state_count > STATEFUL_SHAPES / 2 || options->shape_count > STATEFUL_SHAPES / 2)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected at most %d states and shapes", __func__,
                         STATEFUL_SHAPES / 2);
    for (int i = 0; i < options->dimension_count; i++) SDLF_REQUIRE(options->dimensions[i].name);
    for (int i = 0; i < options->shape_count; i++) SDLF_REQUIRE(options->shapes[i].name);
    onnx_source *source = calloc(1, sizeof *source);
    if (source == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", __func__);
    sdlf_status status = stateful_source_fill(source, path, options);
    if (status == SDLF_OK) return create(stateful, stateful_source_make, source, stateful_source_free, options);
    stateful_source_free(source);
    return status;
}
