/* SPDX-License-Identifier: MIT */
/* Indices that come from outside: if a gather reads them from a network input, directly or converted, out-of-range values are
 * rejected when written. Kernels need not report them; out-of-range indices that a network computes yield zeros. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/input_layer.h"
#include "framework/plan/passes.h"

/* The input node whose value is in that buffer; -1: none. */
static int input_of(const sdlf_plan *plan, int buffer)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        if (node->layer->type == &sdlf_input_layer_class && plan->values[node->first_value].tensor.buffer == buffer)
            return i;
    }
    return -1;
}

static bool covers(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return sdlf_tensor_present(tensor) && plan_covers_buffer(plan, tensor);
}

/* The input that supplies the indices of step `at`, directly or copied whole; -1: none. Copies come shortly before
 * their readers. */
static int source_of(const sdlf_plan *plan, int at, int buffer)
{
    enum { NEAR = 8 };
    int input = input_of(plan, buffer);
    for (int i = at - 1; input < 0 && i >= 0 && i >= at - NEAR; i--) {
        const sdlf_operation *copy = &plan->steps[i].operation;
        if (copy->kind == SDLF_COPY && copy->out[0].buffer == buffer && covers(plan, &copy->out[0]) &&
            covers(plan, &copy->in[0]))
            return source_of(plan, i, copy->in[0].buffer);
    }
    return input;
}

/* True if the length of the gathered axis may change during the plan's lifetime. */
static bool may_grow(const sdlf_plan *plan, const sdlf_tensor *x)
{
    return plan->state_count > 0 && plan->buffers[x->buffer].kind != BUFFER_PARAMETER;
}

static sdlf_status add_bound(sdlf_plan *plan, int input, const plan_step *step)
{
    const sdlf_operation *gather = &step->operation;
    int64_t length = gather->in[0].shape.dim[gather->index.axis];
    plan_index_bound bound = {.input = input, .reader = step->node, .length = length};
    for (int i = 0; i < plan->index_bound_count; i++) {
        const plan_index_bound *other = &plan->index_bounds[i];
        if (other->input == input && other->length <= length) return SDLF_OK;
    }
    plan_index_bound *more =
        realloc(plan->index_bounds, (size_t)(plan->index_bound_count + 1) * sizeof *plan->index_bounds);
    if (more == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan->index_bounds = more;
    plan->index_bounds[plan->index_bound_count++] = bound;
    return SDLF_OK;
}

/* Checks the feed's data once, unless they are normalised, and so no indices. */
static sdlf_status check_feed(const sdlf_plan *plan)
{
    const sdlf_feed *feed = &plan->feed.feed;
    if (!plan->feed.present || feed->sample_data.data == NULL || feed->channels.count > 0 || feed->mean != 0 ||
        feed->scale != 1)
        return SDLF_OK;
    return plan_check_indices(plan, feed->samples, &feed->sample_data, feed->sample_data.data);
}

sdlf_status plan_find_index_bounds(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        const plan_step *step = &plan->steps[i];
        const sdlf_tensor *index = &step->operation.in[1];
        if (step->operation.kind != SDLF_GATHER || !covers(plan, index) || may_grow(plan, &step->operation.in[0]))
            continue;
        int input = source_of(plan, i, index->buffer);
        if (input >= 0) status = add_bound(plan, input, step);
    }
    return status == SDLF_OK ? check_feed(plan) : status;
}

/* "[3,4]": the coordinates of an element. */
typedef struct place_text {
    char text[24 * SDLF_MAX_RANK];
} place_text;

static place_text print_place(sdlf_shape shape, int64_t element)
{
    place_text place = {"["};
    size_t used = 1;
    for (int i = 0; i < shape.rank; i++) {
        int64_t inner = sdlf_shape_span(shape, i + 1, shape.rank);
        used += (size_t)snprintf(place.text + used, sizeof place.text - used, "%s%" PRId64, i > 0 ? "," : "",
                                 element / inner % shape.dim[i]);
    }
    snprintf(place.text + used, sizeof place.text - used, "]");
    return place;
}

static sdlf_status check_one(const sdlf_plan *plan, const plan_index_bound *bound, const sdlf_tensor *tensor,
                             const void *host)
{
    enum { BLOCK = 512 };
    const sdlf_layer *reader = plan->nodes[bound->reader].layer, *input = plan->nodes[bound->input].layer;
    int64_t count = sdlf_tensor_count(tensor), size = (int64_t)sdlf_dtype_size(tensor->dtype);
    double value[BLOCK];
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t length = count - first < BLOCK ? count - first : BLOCK;
        sdlf_convert(SDLF_FLOAT64, value, tensor->dtype, (const char *)host + first * size, length);
        for (int64_t i = 0; i < length; i++)
            if (!(value[i] >= (double)-bound->length && value[i] < (double)bound->length))
                return sdlf_fail(SDLF_ERROR_ARGUMENT,
                                 "%s '%s': index %.10g, at %s of input '%s', is out of range: expected %" PRId64
                                 " to %" PRId64,
                                 reader->type->name, reader->name, value[i], print_place(tensor->shape, first + i).text,
                                 input->name, -bound->length, bound->length - 1);
    }
    return SDLF_OK;
}

bool plan_has_index_bounds(const sdlf_plan *plan, const char *input)
{
    for (int i = 0; i < plan->index_bound_count; i++)
        if (strcmp(plan->nodes[plan->index_bounds[i].input].layer->name, input) == 0) return true;
    return false;
}

sdlf_status plan_check_indices(const sdlf_plan *plan, const char *input, const sdlf_tensor *tensor, const void *host)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->index_bound_count && status == SDLF_OK; i++)
        if (strcmp(plan->nodes[plan->index_bounds[i].input].layer->name, input) == 0)
            status = check_one(plan, &plan->index_bounds[i], tensor, host);
    return status;
}
