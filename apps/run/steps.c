/* SPDX-License-Identifier: MIT */
/* Steps of a model that continue from one another: --state and --steps. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/input/network.h"
#include "apps/output/status_line.h"
#include "apps/run/run.h"
#include "apps/system/memory.h"

/* ---- states ---- */

enum { MOST_STATES = 4096 };

static void add_state(run_session *s, char *input, char *output)
{
    if (s->state == NULL) s->state = memory_allocate(MOST_STATES * sizeof *s->state);
    if (s->state_count == MOST_STATES) {
        free(input);
        free(output);
        return;
    }
    s->state[s->state_count++] = (sdlf_state){.input = input, .output = output};
}

/* The part of `name` that matches the star of `pattern`; NULL: no match. */
static char *star_of(const char *pattern, const char *name)
{
    const char *star = strchr(pattern, '*');
    size_t before = (size_t)(star - pattern), after = strlen(star + 1), length = strlen(name);
    if (length < before + after || strncmp(name, pattern, before) != 0 || strcmp(name + length - after, star + 1) != 0)
        return NULL;
    return memory_print("%.*s", (int)(length - before - after), name + before);
}

/* "past.*=present.*": adds every input of the file that matches. */
static sdlf_status add_pattern(run_session *s, const char *input, const char *output)
{
    const char *star = strchr(output, '*');
    int before = s->state_count;
    for (int i = 0; i < s->listed_count && star != NULL; i++) {
        char *part = star_of(input, s->listed[i].name);
        if (part == NULL) continue;
        add_state(s, memory_copy_text(s->listed[i].name),
                  memory_print("%.*s%s%s", (int)(star - output), output, part, star + 1));
        free(part);
    }
    if (s->state_count > before && s->state_count < MOST_STATES) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "--state %s=%s: expected a \"*\" in both, and inputs of the model that fit, "
                     "%d at most",
                     input, output, MOST_STATES);
}

static sdlf_status read_states(run_session *s)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->set.states.count && status == SDLF_OK; i++) {
        char *list = memory_copy_text(s->set.states.item[i]), *next = list;
        while (next != NULL && status == SDLF_OK) {
            char *pair = next, *equals = strchr(pair, '=');
            next = strchr(pair, ',');
            if (next != NULL) *next++ = '\0';
            if (equals == NULL || equals == pair || (next != NULL && equals > next) || equals[1] == '\0') {
                status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--state %s: expected INPUT=OUTPUT", pair);
                break;
            }
            *equals = '\0';
            if (strchr(pair, '*') != NULL)
                status = add_pattern(s, pair, equals + 1);
            else
                add_state(s, memory_copy_text(pair), memory_copy_text(equals + 1));
        }
        free(list);
    }
    return status;
}

bool run_is_state(const run_session *s, const char *output)
{
    for (int i = 0; i < s->state_count; i++)
        if (strcmp(s->state[i].output, output) == 0) return true;
    return false;
}

void run_release_steps(run_session *s)
{
    for (int i = 0; i < s->state_count; i++) {
        free((char *)s->state[i].input);
        free((char *)s->state[i].output);
    }
    free(s->state);
    for (int i = 0; i < s->collected_count; i++) free(s->collected[i].tensor.data);
    free(s->collected);
}

/* ---- inputs ---- */

/* An array for all steps, and the axis along which it is split into steps; -1: every step gets all of it. */
typedef struct step_input {
    const run_listed *listed;
    run_file *file;
    int axis;
    sdlf_shape shape; /* of a step */
    bool grows;       /* a step also gets the earlier steps' parts */
} step_input;

static bool is_growing(const run_session *s, const char *input)
{
    for (int i = 0; i < s->set.growing.count; i++)
        if (strcmp(s->set.growing.item[i], input) == 0) return true;
    return false;
}

static sdlf_status cut(const run_session *s, step_input *input)
{
    sdlf_shape whole = input->file->tensor.shape, listed = input->listed->shape;
    input->axis = -1;
    input->shape = whole;
    for (int i = 1; i < listed.rank && whole.rank == listed.rank && input->axis < 0; i++)
        if (listed.dim[i] < 0) input->axis = i;
    input->grows = is_growing(s, input->listed->name);
    if (input->axis < 0 || input->grows) return SDLF_OK;
    input->shape.dim[input->axis] /= s->set.steps;
    if (input->shape.dim[input->axis] * s->set.steps == whole.dim[input->axis] && whole.dim[input->axis] > 0)
        return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "%s: input '%s' of %" PRId64 " steps is split on axis %d, but the file has %s",
                     input->file->path, input->listed->name, s->set.steps, input->axis, sdlf_shape_print(whole).text);
}

static sdlf_status find_inputs(run_session *s, step_input *inputs)
{
    int unnamed = 0;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->set.inputs.count && status == SDLF_OK; i++) {
        run_file *file = &s->input[i];
        int at = -1;
        for (int j = 0; j < s->listed_count && file->name != NULL; j++)
            if (strcmp(s->listed[j].name, file->name) == 0) at = j;
        if (file->name == NULL && unnamed < s->listed_count) at = unnamed++;
        if (at < 0 || file->array == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--input %s: with --state, inputs are arrays for inputs of the model",
                             file->path);
        inputs[i] = (step_input){.listed = &s->listed[at], .file = file};
        status = cut(s, &inputs[i]);
        if (status == SDLF_OK) status = run_read_array(file);
    }
    return status;
}

/* Copies the step's part of an array, of that shape, packed. */
static void take_part(const step_input *input, int64_t step, sdlf_shape shape, char *to)
{
    const sdlf_tensor *from = &input->file->tensor;
    int axis = input->axis < 0 ? 0 : input->axis;
    int64_t outer = sdlf_shape_span(from->shape, 0, axis), size = (int64_t)sdlf_dtype_size(from->dtype);
    int64_t part = sdlf_shape_span(shape, axis, shape.rank) * size;
    int64_t whole = sdlf_shape_span(from->shape, axis, from->shape.rank) * size;
    int64_t first = input->axis < 0 || input->grows ? 0 : step * part;
    for (int64_t i = 0; i < outer; i++)
        memcpy(to + i * part, (const char *)from->data + i * whole + first, (size_t)part);
}

/* The part of a growing input that a step takes, limited to what the file has. */
static sdlf_shape grown_shape(const step_input *input, sdlf_shape wanted)
{
    sdlf_shape whole = input->file->tensor.shape;
    int axis = input->axis;
    if (axis < 0 || whole.rank != wanted.rank || whole.dim[axis] < wanted.dim[axis]) return whole;
    whole.dim[axis] = wanted.dim[axis];
    return whole;
}

static sdlf_status write_part(sdlf_plan *plan, const step_input *input, int64_t step)
{
    sdlf_binding binding;
    const char *name = input->listed->name;
    sdlf_status status = sdlf_plan_input(plan, name, &binding);
    if (status != SDLF_OK) return status;
    const sdlf_tensor *to = &binding.tensor;
    sdlf_shape shape = input->grows ? grown_shape(input, to->shape) : input->shape;
    sdlf_tensor part = sdlf_tensor_view(input->file->tensor.dtype, shape, NULL);
    if (!sdlf_shape_equal(to->shape, part.shape) || sdlf_dtype_is_float(to->dtype) != sdlf_dtype_is_float(part.dtype))
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: input '%s' is %s %s in a step, but the file has %s %s",
                         input->file->path, name, sdlf_dtype_name(to->dtype), sdlf_shape_print(to->shape).text,
                         sdlf_dtype_name(part.dtype), sdlf_shape_print(part.shape).text);
    char *packed = memory_allocate((size_t)sdlf_tensor_bytes(&part) + 1);
    take_part(input, step, shape, packed);
    status = sdlf_plan_write_converted(plan, name, packed, part.dtype, sdlf_tensor_count(&part));
    free(packed);
    return status;
}

/* ---- outputs ---- */

/* Appends the outputs of a step to those of earlier steps: a new first axis counts steps. */
static sdlf_status collect(run_session *s, sdlf_plan *plan, int64_t step)
{
    if (s->collected == NULL)
        s->collected = memory_allocate((size_t)sdlf_model_output_count(s->model) * sizeof *s->collected + 1);
    sdlf_status status = SDLF_OK;
    for (int i = 0, count = 0; i < sdlf_model_output_count(s->model) && status == SDLF_OK; i++) {
        const char *name = sdlf_model_output_name(s->model, i);
        sdlf_binding binding;
        if (run_is_state(s, name)) continue;
        status = sdlf_plan_output(plan, name, &binding);
        if (status != SDLF_OK) return status;
        int64_t bytes = sdlf_tensor_bytes(&binding.tensor);
        run_collected *all = &s->collected[count++];
        if (step == 0) {
            sdlf_shape shape = {.rank = binding.tensor.shape.rank + 1, .dim = {s->set.steps}};
            for (int d = 1; d < shape.rank && d < SDLF_MAX_RANK; d++) shape.dim[d] = binding.tensor.shape.dim[d - 1];
            int64_t room =
                shape.rank <= SDLF_MAX_RANK && bytes <= INT64_MAX / 2 / s->set.steps ? bytes * s->set.steps : -1;
            if (room < 0) return sdlf_fail(SDLF_ERROR_SHAPE, "output '%s' of all steps is too large", name);
            *all =
                (run_collected){name, sdlf_tensor_view(binding.tensor.dtype, shape, memory_allocate((size_t)room + 1))};
            s->collected_count = count;
        }
        if (bytes * s->set.steps != sdlf_tensor_bytes(&all->tensor))
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "output '%s' is not of the same size in all steps", name);
        status = sdlf_plan_read(plan, name, (char *)all->tensor.data + step * bytes, binding.tensor.dtype, bytes);
    }
    return status;
}

/* ---- the whole run ---- */

static sdlf_status check(run_session *s, const arguments *given)
{
    if (s->set.states.count == 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s needs --state",
                         arguments_given(given, "steps") ? "steps" : "growing");
    if (!network_is_onnx(s->model_path))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--state is for ONNX files, but %s is not one", s->model_path);
    for (int i = 0; i < s->set.growing.count; i++) {
        bool found = false;
        for (int j = 0; j < s->listed_count; j++)
            found = found || strcmp(s->listed[j].name, s->set.growing.item[i]) == 0;
        if (!found)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--growing %s: the model has no such input", s->set.growing.item[i]);
    }
    if (s->set.ranks.devices != NULL || s->set.onnx.batch > 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--state and --%s contradict each other",
                         s->set.ranks.devices != NULL ? "devices" : "batch");
    if (!arguments_given(given, "steps")) s->set.steps = 1;
    return SDLF_OK;
}

/* Output names come from the model and have any length. */
static sdlf_status open_model(run_session *s, const sdlf_stateful_options *options, const step_input *inputs,
                              int64_t step)
{
    sdlf_onnx_shape shapes[3 * ARGUMENT_LIST_MAX];
    int count = 0;
    for (; count < options->shape_count; count++) shapes[count] = options->shapes[count];
    for (int i = 0; i < s->set.inputs.count; i++) {
        if (!inputs[i].grows) continue;
        shapes[count] = (sdlf_onnx_shape){inputs[i].listed->name, inputs[i].shape};
        if (inputs[i].axis >= 0) shapes[count].shape.dim[inputs[i].axis] = 1 + step;
        count++;
    }
    for (int i = 0; i < s->state_count && count < 3 * ARGUMENT_LIST_MAX; i++)
        for (int j = 0; j < s->listed_count; j++) {
            sdlf_shape shape = s->listed[j].shape;
            if (strcmp(s->listed[j].name, s->state[i].input) != 0 || count >= 3 * ARGUMENT_LIST_MAX) continue;
            for (int d = 0; d < shape.rank; d++)
                if (shape.dim[d] < 0) shape.dim[d] = 1;
            shapes[count++] = (sdlf_onnx_shape){s->listed[j].name, shape};
        }
    return sdlf_model_from_onnx(&s->model, s->model_path,
                                &(sdlf_onnx_options){.shapes = shapes,
                                                     .shape_count = count,
                                                     .dimensions = options->dimensions,
                                                     .dimension_count = options->dimension_count,
                                                     .leave_weights = true});
}

static sdlf_status go(run_session *s, sdlf_stateful *stateful, const step_input *inputs)
{
    sdlf_status status = SDLF_OK;
    for (int64_t step = 0; step < s->set.steps && status == SDLF_OK; step++) {
        sdlf_plan *plan;
        status = sdlf_stateful_prepare(stateful, &plan);
        for (int i = 0; i < s->set.inputs.count && status == SDLF_OK; i++) status = write_part(plan, &inputs[i], step);
        if (status == SDLF_OK) status = sdlf_stateful_run(stateful);
        if (status == SDLF_OK) status = collect(s, plan, step);
    }
    return status;
}

/* Checks that every input is a state or has a file. */
static sdlf_status check_inputs(const run_session *s, const step_input *inputs)
{
    for (int i = 0; i < s->listed_count; i++) {
        bool found = false;
        for (int j = 0; j < s->state_count; j++) found = found || strcmp(s->state[j].input, s->listed[i].name) == 0;
        for (int j = 0; j < s->set.inputs.count; j++) found = found || inputs[j].listed == &s->listed[i];
        if (!found) return sdlf_fail(SDLF_ERROR_ARGUMENT, "input '%s' has no file, and is no state", s->listed[i].name);
    }
    return SDLF_OK;
}

sdlf_status run_steps(run_session *s, const arguments *given)
{
    step_input inputs[ARGUMENT_LIST_MAX];
    sdlf_onnx_shape shapes[ARGUMENT_LIST_MAX];
    sdlf_onnx_options onnx;
    sdlf_stateful *stateful = NULL;
    sdlf_stateful_options options = {.dtype = s->set.dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32, .shapes = shapes};
    sdlf_status status = check(s, given);
    if (status == SDLF_OK) status = read_states(s);
    if (status == SDLF_OK) status = find_inputs(s, inputs);
    if (status == SDLF_OK) status = check_inputs(s, inputs);
    if (status == SDLF_OK) status = onnx_settings_complete(&s->set.onnx, &onnx);
    if (status == SDLF_OK)
        status = machine_open_one(&s->machine, &s->set.choice, s->set.calculator, &options.calculator);
    if (status != SDLF_OK) return status;
    for (int i = 0; i < s->set.inputs.count; i++)
        if (!inputs[i].grows)
            shapes[options.shape_count++] = (sdlf_onnx_shape){inputs[i].listed->name, inputs[i].shape};
    options.states = s->state;
    options.state_count = s->state_count;
    options.dimensions = onnx.dimensions;
    options.dimension_count = onnx.dimension_count;
    int64_t step = 1; /* the most positions that a step adds: the longest part that is split off */
    for (int i = 0; i < s->set.inputs.count; i++)
        if (!inputs[i].grows && inputs[i].axis >= 0 && inputs[i].shape.dim[inputs[i].axis] > step)
            step = inputs[i].shape.dim[inputs[i].axis];
    options.capacity = s->set.capacity > 0 ? s->set.capacity : s->set.steps * step;
    status_line_show("%s on %s", s->model_path, s->set.calculator);
    status = sdlf_stateful_create(&stateful, s->model_path, &options);
    if (status == SDLF_OK) status = open_model(s, &options, inputs, step);
    if (status == SDLF_OK) status = go(s, stateful, inputs);
    sdlf_stateful_free(stateful);
    return status;
}
