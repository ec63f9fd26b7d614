/* SPDX-License-Identifier: MIT */
/* Gradients in buckets, all-reduced over the ranks. A pass after fusion and layouts, so that neither is aware of it,
 * and before placement.
 *
 * In the order in which the backward pass produces them, gradients are packed into buckets, one all-reduce each: large
 * ones first, as an all-reduce takes some 20 us to start and leaves concurrent kernels fewer multiprocessors, so few
 * and short ones are best; then ever smaller ones, of half of the remainder, as nothing overlaps the last one. After
 * the last gradient of a bucket its all-reduce is started; the rest of the backward pass runs meanwhile. The updates
 * follow the backward pass, in order; before the first one that reads a bucket, its all-reduce is awaited: the updates
 * of one bucket overlap the all-reduces of later ones. So all gradients are live at once, which one contiguous bucket
 * per all-reduce requires anyway.
 *
 * With gradient_dtype a bucket is rounded into a separate buffer before its all-reduce, and converted back
 * afterwards. */
#include "framework/plan/passes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LEAST_BUCKET = 2 << 20, MOST_BUCKET = 16 << 20, ALIGNED = 128, MOST_BUCKETS = 128 };
static_assert((int)MOST_BUCKETS < (int)SDLF_MOST_SUMS, "room for a sum between those of gradients");

typedef struct summing {
    sdlf_plan *plan;
    plan_step *old;
    int old_count;
    int *bucket;      /* of each gradient's buffer: 0 not a gradient, -1 in no bucket yet, else the bucket's buffer */
    int64_t *offset;  /* of each gradient's buffer, in its bucket */
    int *last_writer; /* of each gradient's buffer: a step */
    int *number;      /* of each bucket's buffer: the bucket's index */
    int *buffer_of;   /* of each bucket: its buffer */
    int *narrowed;    /* of each bucket: the buffer of its elements as gradient_dtype; 0: not converted */
    sdlf_calculator **by; /* of each bucket: the calculator that fills it */
    int ended;            /* all-reduces of buckets before this one have been awaited */
    int originals;
    int open;                    /* the buffer of the bucket being filled; 0: none */
    sdlf_calculator *calculator; /* that fills it */
    int node;                    /* of its last gradient */
    int64_t left;                /* bytes of gradients that are in no bucket yet */
    int64_t most;                /* bytes at which a bucket is full at the latest */
} summing;

static sdlf_status no_memory(void)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its buckets of gradients");
}

static sdlf_status find_gradients(summing *s)
{
    sdlf_plan *plan = s->plan;
    int64_t bytes = 0;
    for (int p = 0; p < plan->model->parameter_count; p++) {
        if (!sdlf_tensor_present(&plan->gradients[p])) continue;
        int buffer = plan->gradients[p].buffer;
        s->bucket[buffer] = -1;
        s->last_writer[buffer] = -1;
        bytes += plan->buffers[buffer].bytes;
    }
    for (int i = 0; i < s->old_count; i++) {
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            const sdlf_tensor *out = &s->old[i].operation.out[j];
            if (sdlf_tensor_present(out) && s->bucket[out->buffer] != 0) s->last_writer[out->buffer] = i;
        }
    }
    s->left = bytes;
    s->most = bytes / (MOST_BUCKETS / 2) > MOST_BUCKET ? bytes / (MOST_BUCKETS / 2) : MOST_BUCKET;
    for (int p = 0; p < plan->model->parameter_count; p++) {
        if (!sdlf_tensor_present(&plan->gradients[p]) || s->last_writer[plan->gradients[p].buffer] >= 0) continue;
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "plan: the gradient of %s is never stored, so that ranks cannot add it",
                         plan->model->parameters[p].name);
    }
    return SDLF_OK;
}

sdlf_status plan_append_sum(sdlf_plan *plan, const plan_sum *sum, bool awaits)
{
    int64_t bytes = plan->buffers[sum->buffer].bytes;
    sdlf_dtype dtype = plan->buffers[sum->buffer].dtype;
    sdlf_tensor all = sdlf_tensor_view(dtype, sdlf_shape(bytes / (int64_t)sdlf_dtype_size(dtype)), NULL);
    char label[48];
    all.buffer = sum->buffer;
    snprintf(label, sizeof label, "%s %s %s", sum->what, sum->gathers ? "all-gather" : "sum",
             awaits ? "awaited" : "begun");
    plan_step step = {
        .operation = {.kind = SDLF_COPY, .in = {all}, .out = {all}},
        .calculator = sum->calculator,
        .phase = SDLF_PHASE_COMMUNICATE,
        .serves = sum->serves,
        .node = sum->node,
        .cost = {.bytes = awaits ? 0 : bytes},
        .bucket = sum->number,
        .awaits = awaits,
        .gathers = sum->gathers,
        .label = strdup(label),
    };
    if (step.label == NULL) return no_memory();
    sdlf_status status = plan_append_step(plan, &step);
    if (status != SDLF_OK) free(step.label);
    return status;
}

/* Appends the step that starts a bucket's all-reduce, or waits for it. */
static sdlf_status append_sum(summing *s, int number, int node, bool awaits)
{
    const plan_sum sum = {.buffer = s->narrowed[number] != 0 ? s->narrowed[number] : s->buffer_of[number],
                          .calculator = s->by[number],
                          .serves = SDLF_PHASE_UPDATE,
                          .node = node,
                          .number = number,
                          .what = "gradient"};
    return plan_append_sum(s->plan, &sum, awaits);
}

/* Appends the conversion of a bucket to gradient_dtype, before its all-reduce, or back afterwards. */
static sdlf_status append_rounding(summing *s, int number, int node, bool back)
{
    sdlf_plan *plan = s->plan;
    int wide = s->buffer_of[number], narrow = s->narrowed[number];
    int64_t count = plan->buffers[wide].bytes / (int64_t)sdlf_dtype_size(plan->buffers[wide].dtype);
    sdlf_tensor x = sdlf_tensor_view(plan->buffers[wide].dtype, sdlf_shape(count), NULL);
    sdlf_tensor y = sdlf_tensor_view(plan->buffers[narrow].dtype, sdlf_shape(count), NULL);
    x.buffer = wide;
    y.buffer = narrow;
    plan_step step = {.operation = {.kind = SDLF_COPY, .in = {back ? y : x}, .out = {back ? x : y}},
                      .calculator = s->by[number],
                      .phase = back ? SDLF_PHASE_UPDATE : SDLF_PHASE_BACKWARD,
                      .serves = SDLF_PHASE_UPDATE,
                      .node = node};
    step.cost = sdlf_operation_cost(&step.operation);
    if (!sdlf_calculator_supports(step.calculator, &step.operation))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "plan: %s cannot convert gradients to %s and back",
                         step.calculator->type->name, sdlf_dtype_name(y.dtype));
    return plan_append_step(plan, &step);
}

static sdlf_status await(summing *s, int number, int node)
{
    sdlf_status status = append_sum(s, number, node, true);
    bool rounded = s->narrowed[number] != 0;
    return status == SDLF_OK && rounded ? append_rounding(s, number, node, true) : status;
}

static sdlf_status begin(summing *s, int number)
{
    sdlf_plan *plan = s->plan;
    const plan_buffer wide = plan->buffers[s->buffer_of[number]];
    sdlf_dtype dtype = plan->options.gradient_dtype;
    if (dtype == SDLF_NONE) return append_sum(s, number, s->node, false);
    int64_t count = wide.bytes / (int64_t)sdlf_dtype_size(wide.dtype);
    s->narrowed[number] = plan_new_buffer(plan, BUFFER_ARENA, dtype, count * (int64_t)sdlf_dtype_size(dtype));
    if (s->narrowed[number] == 0) return no_memory();
    sdlf_status status = append_rounding(s, number, s->node, false);
    return status == SDLF_OK ? append_sum(s, number, s->node, false) : status;
}

/* Awaits all-reduces up to that one, in the order in which they were started. */
static sdlf_status await_to(summing *s, int last, int node)
{
    sdlf_status status = SDLF_OK;
    while (s->ended <= last && status == SDLF_OK) status = await(s, s->ended++, node);
    return status;
}

/* A communicator supports MOST_BUCKETS all-reduces in flight: before exceeding that, the oldest is awaited. */
static sdlf_status close_bucket(summing *s)
{
    if (s->open == 0) return SDLF_OK;
    int number = s->number[s->open];
    s->open = 0;
    sdlf_status status = await_to(s, number - MOST_BUCKETS, s->node);
    return status == SDLF_OK ? begin(s, number) : status;
}

static sdlf_status open_bucket(summing *s, const plan_step *step, const plan_buffer *gradient)
{
    sdlf_plan *plan = s->plan;
    const plan_buffer like = *gradient;
    s->open = plan_new_buffer(plan, like.kind, like.dtype, 0);
    if (s->open == 0) return no_memory();
    s->calculator = step->calculator;
    s->buffer_of[plan->bucket_count] = s->open;
    s->by[plan->bucket_count] = step->calculator;
    s->number[s->open] = plan->bucket_count++;
    return SDLF_OK;
}

/* Assigns offsets to the gradients that the original step `index` was the last to write. */
static sdlf_status take_gradients(summing *s, int index)
{
    sdlf_plan *plan = s->plan;
    const plan_step *step = &s->old[index];
    sdlf_status status = SDLF_OK;
    for (int j = 0; j < SDLF_MAX_OUTPUTS && status == SDLF_OK; j++) {
        const sdlf_tensor *out = &step->operation.out[j];
        if (!sdlf_tensor_present(out) || s->bucket[out->buffer] != -1) continue;
        int gradient = out->buffer;
        bool other = s->open != 0 && (s->calculator != step->calculator ||
                                      plan->buffers[s->open].dtype != plan->buffers[gradient].dtype);
        if (other) status = close_bucket(s);
        if (status == SDLF_OK && s->open == 0) status = open_bucket(s, step, &plan->buffers[gradient]);
        if (status != SDLF_OK) return status;
        plan_buffer *bucket = &plan->buffers[s->open];
        s->bucket[gradient] = s->open;
        s->offset[gradient] = bucket->bytes;
        bucket->bytes += (plan->buffers[gradient].bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
        s->left -= plan->buffers[gradient].bytes;
    }
    return status;
}

/* After an original step: closes the open bucket if it is full and all of its gradients have been written. */
static sdlf_status close_if_full(summing *s, int index)
{
    int64_t full = s->left / 2 < LEAST_BUCKET ? LEAST_BUCKET : s->left / 2 > s->most ? s->most : s->left / 2;
    if (s->open == 0 || s->plan->buffers[s->open].bytes < full) return SDLF_OK;
    for (int b = 1; b < s->originals; b++)
        if (s->bucket[b] == s->open && s->last_writer[b] > index) return SDLF_OK;
    return close_bucket(s);
}

static void move_tensor(const summing *s, sdlf_tensor *tensor)
{
    if (!sdlf_tensor_present(tensor) || tensor->buffer >= s->originals || s->bucket[tensor->buffer] <= 0) return;
    int gradient = tensor->buffer;
    tensor->buffer = s->bucket[gradient];
    tensor->offset += s->offset[gradient];
}

/* Before an update that reads gradients: waits for their all-reduces. */
static sdlf_status await_buckets(summing *s, const plan_step *step)
{
    sdlf_status status = SDLF_OK;
    for (int j = 0; j < SDLF_MAX_INPUTS && status == SDLF_OK; j++) {
        const sdlf_tensor *in = &step->operation.in[j];
        if (!sdlf_tensor_present(in) || in->buffer >= s->originals || s->bucket[in->buffer] <= 0) continue;
        int last = s->number[s->bucket[in->buffer]];
        if (s->bucket[in->buffer] == s->open) status = close_bucket(s);
        if (status == SDLF_OK) status = await_to(s, last, step->node);
    }
    return status;
}

/* Appends the original steps of the updates, or all others, in order. */
static sdlf_status append_steps(summing *s, bool updates)
{
    sdlf_plan *plan = s->plan;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->old_count && status == SDLF_OK; i++) {
        if ((s->old[i].serves == SDLF_PHASE_UPDATE) != updates) continue;
        bool written = false;
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            const sdlf_tensor *out = &s->old[i].operation.out[j];
            written = written || (sdlf_tensor_present(out) && s->bucket[out->buffer] == -1);
        }
        if (written) status = take_gradients(s, i);
        if (status == SDLF_OK && updates) status = await_buckets(s, &s->old[i]);
        if (status == SDLF_OK) status = plan_append_step(plan, &s->old[i]);
        s->node = s->old[i].node;
        if (status == SDLF_OK && written) status = close_if_full(s, i);
    }
    return status;
}

/* After all updates, in the same order on all ranks, whatever their shards. */
static sdlf_status gather_parameters(sdlf_plan *plan)
{
    enum { UNDER_WAY = 64 };
    plan_sum gathered[UNDER_WAY];
    int64_t begun = 0, ended = 0;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        for (int p = node->first_parameter; p < node->first_parameter + node->parameter_count; p++) {
            if (status != SDLF_OK || !sdlf_tensor_present(&plan->gradients[p])) continue;
            if (begun - ended == UNDER_WAY) status = plan_append_sum(plan, &gathered[ended++ % UNDER_WAY], true);
            gathered[begun % UNDER_WAY] = (plan_sum){.buffer = plan->parameter_buffer_base + p,
                                                     .calculator = node->backward,
                                                     .serves = SDLF_PHASE_UPDATE,
                                                     .node = i,
                                                     .number = plan->bucket_count++,
                                                     .what = "parameter",
                                                     .gathers = true};
            if (status == SDLF_OK) status = plan_append_sum(plan, &gathered[begun++ % UNDER_WAY], false);
        }
    }
    while (ended < begun && status == SDLF_OK) status = plan_append_sum(plan, &gathered[ended++ % UNDER_WAY], true);
    return status;
}

static sdlf_status rebuild(summing *s)
{
    sdlf_plan *plan = s->plan;
    sdlf_status status = append_steps(s, false);
    if (status == SDLF_OK && !plan->options.accumulate) status = close_bucket(s);
    if (status == SDLF_OK) status = append_steps(s, true);
    if (status == SDLF_OK) status = close_bucket(s);
    if (status == SDLF_OK) status = await_to(s, plan->bucket_count - 1, s->node);
    if (status == SDLF_OK && plan->options.shard_states) status = gather_parameters(plan);
    for (int i = 0; i < plan->step_count; i++) {
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) move_tensor(s, &plan->steps[i].operation.in[j]);
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) move_tensor(s, &plan->steps[i].operation.out[j]);
    }
    for (int p = 0; p < plan->model->parameter_count; p++) move_tensor(s, &plan->gradients[p]);
    return status;
}

sdlf_status plan_bucket_gradients(sdlf_plan *plan)
{
    if (plan->options.communicator == NULL || plan->options.mode != SDLF_TRAIN) return SDLF_OK;
    size_t buffers = 2 * (size_t)plan->buffer_count + 2 + (size_t)plan->bucket_count +
                     (size_t)plan->model->parameter_count; /* there are fewer buckets than gradients */
    summing s = {.plan = plan,
                 .old = plan->steps,
                 .old_count = plan->step_count,
                 .ended = plan->bucket_count,
                 .originals = plan->buffer_count};
    s.bucket = calloc(buffers, sizeof *s.bucket);
    s.offset = calloc(buffers, sizeof *s.offset);
    s.last_writer = calloc(buffers, sizeof *s.last_writer);
    s.number = calloc(buffers, sizeof *s.number);
    s.buffer_of = calloc(buffers, sizeof *s.buffer_of);
    s.narrowed = calloc(buffers, sizeof *s.narrowed);
    s.by = calloc(buffers, sizeof *s.by);
    plan->tickets = calloc(buffers, sizeof *plan->tickets);
    sdlf_status status = SDLF_OK;
    if (!s.bucket || !s.offset || !s.last_writer || !s.number || !s.buffer_of || !s.narrowed || !s.by || !plan->tickets)
        status = no_memory();
    else
        status = find_gradients(&s);
    if (status == SDLF_OK) {
        plan->steps = NULL;
        plan->step_count = plan->step_capacity = 0;
        status = rebuild(&s);
        free(s.old); /* steps without a place in the new list own nothing: only copies between spaces do */
    }
    free(s.bucket);
    free(s.offset);
    free(s.last_writer);
    free(s.number);
    free(s.buffer_of);
    free(s.narrowed);
    free(s.by);
    return status;
}

uint32_t plan_sums_fingerprint(const sdlf_plan *plan)
{
    uLong sum = crc32(0, NULL, 0);
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->phase != SDLF_PHASE_COMMUNICATE) continue;
        const sdlf_tensor *all = &step->operation.out[0];
        const int64_t row[] = {step->bucket, step->awaits, all->dtype, sdlf_tensor_count(all)};
        sum = crc32(sum, (const Bytef *)row, sizeof row);
        for (int p = 0; p < plan->model->parameter_count && plan->gradients != NULL; p++) {
            const sdlf_tensor *gradient = &plan->gradients[p];
            const int64_t place[] = {p, gradient->offset};
            bool inside = sdlf_tensor_present(gradient) && gradient->buffer == all->buffer;
            if (inside) sum = crc32(sum, (const Bytef *)place, sizeof place);
        }
    }
    return (uint32_t)sum;
}
