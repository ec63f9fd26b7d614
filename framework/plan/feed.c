/* A plan that draws its own batches: every step begins with next_batch, which takes the step's indices, learning rate and
 * number from what the host left at the epoch's start, and gathers its inputs from the resident data. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

#include "layers/input.h"

bool plan_is_fed(const sdlf_plan *plan, const plan_node *node)
{
    if (!plan->feed.present || node->layer->type != &sdlf_input_layer_class) return false;
    return strcmp(node->layer->name, plan->feed.feed.samples) == 0 ||
           strcmp(node->layer->name, plan->feed.feed.labels) == 0;
}

static const plan_node *find_input(const sdlf_plan *plan, const char *name)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        if (plan_is_fed(plan, node) && strcmp(node->layer->name, name) == 0) return node;
    }
    return NULL;
}

/* Data of M samples must be what an input takes, sample for sample. */
static sdlf_status check_data(const sdlf_plan *plan, const char *name, const sdlf_tensor *data, bool integers)
{
    const plan_node *node = find_input(plan, name);
    if (node == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: network '%s' has no input '%s'", plan->model->name, name);
    const sdlf_tensor *input = &plan->values[node->first_value].tensor;
    sdlf_shape expected = input->shape;
    expected.dim[0] = data->shape.rank > 0 ? data->shape.dim[0] : 0;
    if (!sdlf_shape_equal(expected, data->shape))
        return sdlf_fail(SDLF_ERROR_SHAPE, "feed: input '%s' takes batches of shape %s, the data have shape %s", name,
                         sdlf_shape_print(input->shape).text, sdlf_shape_print(data->shape).text);
    bool fits = integers ? data->dtype == SDLF_INT32 && input->dtype == SDLF_INT32
                         : data->dtype == SDLF_UINT8 || data->dtype == input->dtype;
    if (fits) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "feed: input '%s' is %s, the data are %s", name, sdlf_dtype_name(input->dtype),
                     sdlf_dtype_name(data->dtype));
}

static sdlf_status check_feed(const sdlf_plan *plan)
{
    const sdlf_feed *feed = &plan->feed.feed;
    if (plan->options.mode != SDLF_TRAIN)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: only a training plan can be fed");
    sdlf_status status = check_data(plan, feed->samples, &feed->sample_data, false);
    if (status == SDLF_OK) status = check_data(plan, feed->labels, &feed->label_data, true);
    if (status != SDLF_OK) return status;
    int64_t samples = feed->sample_data.shape.dim[0];
    if (feed->label_data.shape.dim[0] != samples)
        return sdlf_fail(SDLF_ERROR_SHAPE, "feed: %lld samples and %lld labels", (long long)samples,
                         (long long)feed->label_data.shape.dim[0]);
    if (samples < plan->options.batch)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: %lld samples are less than a batch of %lld", (long long)samples,
                         (long long)plan->options.batch);
    return SDLF_OK;
}

static bool is_augmented(const sdlf_plan *plan)
{
    const sdlf_augmentation *augment = &plan->feed.feed.augment;
    return augment->shift != 0 || augment->rotate != 0 || augment->scale != 0 || augment->elastic != 0;
}

static sdlf_status make_data(sdlf_plan *plan, int which, const sdlf_tensor *data)
{
    sdlf_status status = plan_new_tensor(plan, BUFFER_DATA, data->dtype, data->shape, &plan->feed.data[which]);
    if (status == SDLF_OK) plan->buffers[plan->feed.data[which].buffer].data = which;
    return status;
}

sdlf_status plan_lower_feed(sdlf_plan *plan)
{
    plan_feed *feed = &plan->feed;
    sdlf_status status = check_feed(plan);
    if (status != SDLF_OK) return status;
    int64_t samples = feed->feed.sample_data.shape.dim[0], batch = plan->options.batch;
    sdlf_dtype dtype = plan->options.dtype;
    const struct {
        sdlf_tensor *tensor;
        buffer_kind kind;
        sdlf_dtype dtype;
        int64_t count;
    } made[] = {
        {&feed->order, BUFFER_PINNED, SDLF_INT32, samples}, {&feed->rates, BUFFER_PINNED, dtype, samples / batch},
        {&feed->first, BUFFER_PINNED, SDLF_INT64, 1},       {&feed->cursor, BUFFER_PINNED, SDLF_INT64, 1},
        {&feed->index, BUFFER_ARENA, SDLF_INT32, batch},    {&feed->rate, BUFFER_ARENA, dtype, 1},
        {&feed->step, BUFFER_ARENA, SDLF_INT64, 1},         {&feed->epoch, BUFFER_PINNED, SDLF_INT64, 1},
    };
    for (size_t i = 0; i < sizeof made / sizeof made[0] && status == SDLF_OK; i++) {
        if (made[i].tensor == &feed->epoch && !is_augmented(plan)) continue;
        status = plan_new_tensor(plan, made[i].kind, made[i].dtype, sdlf_shape(made[i].count), made[i].tensor);
    }
    if (status == SDLF_OK) status = make_data(plan, 0, &feed->feed.sample_data);
    if (status == SDLF_OK) status = make_data(plan, 1, &feed->feed.label_data);
    if (status != SDLF_OK) return status;
    const plan_node *node = find_input(plan, feed->feed.samples);
    const sdlf_operation next = {
        .kind = SDLF_NEXT_BATCH,
        .in = {feed->order, feed->rates, feed->first},
        .out = {feed->cursor, feed->index, feed->rate, feed->step},
    };
    return plan_emit(plan, (int)(node - plan->nodes), SDLF_PHASE_FORWARD, node->forward, &next);
}

sdlf_status plan_lower_gather(sdlf_plan *plan, int index)
{
    const plan_node *node = &plan->nodes[index];
    const plan_feed *feed = &plan->feed;
    bool samples = strcmp(node->layer->name, feed->feed.samples) == 0;
    sdlf_operation gather = {
        .kind = SDLF_GATHER_BATCH,
        .in = {feed->data[samples ? 0 : 1], feed->index},
        .out = {plan->values[node->first_value].tensor},
    };
    if (samples) {
        gather.gather.mean = feed->feed.mean;
        gather.gather.scale = feed->feed.scale;
        gather.gather.augment = feed->feed.augment;
        gather.in[2] = feed->epoch;
    }
    return plan_emit(plan, index, SDLF_PHASE_FORWARD, node->forward, &gather);
}

/* ---- running ---- */

static sdlf_status upload_rates(sdlf_plan *plan, const sdlf_epoch *epoch, int64_t steps)
{
    if (plan->options.dtype == SDLF_FLOAT32)
        return plan_upload(plan, plan->feed.rates.buffer, epoch->rates, steps * (int64_t)sizeof(float));
    sdlf_status status = SDLF_OK;
    const plan_buffer *buffer = &plan->buffers[plan->feed.rates.buffer];
    for (int64_t i = 0; i < steps && status == SDLF_OK; i++) { /* float64 is for checking, not for speed */
        double rate = (double)epoch->rates[i];
        if (plan_is_host_space(plan, buffer->space)) {
            ((double *)buffer->memory)[i] = rate;
        } else {
            sdlf_calculator *calculator = plan->spaces[buffer->space].calculator;
            status = calculator->type->upload(calculator, (double *)buffer->memory + i, &rate, sizeof rate);
        }
    }
    return status;
}

sdlf_status sdlf_plan_begin_epoch(sdlf_plan *plan, const sdlf_epoch *epoch)
{
    plan_feed *feed = &plan->feed;
    if (!feed->present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: there is no feed to draw an epoch from");
    int64_t steps = epoch->order_count / plan->options.batch, samples = feed->feed.sample_data.shape.dim[0];
    if (epoch->order_count > samples || steps < 1 || epoch->first < 0 || epoch->first > steps)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT, "plan: an epoch of %lld of %lld samples in batches of %lld cannot begin at step %lld",
            (long long)epoch->order_count, (long long)samples, (long long)plan->options.batch, (long long)epoch->first);
    for (int64_t i = 0; i < epoch->order_count; i++) {
        if (epoch->order[i] < 0 || epoch->order[i] >= samples)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: sample %d of an epoch's order is not one of %lld",
                             (int)epoch->order[i], (long long)samples);
    }
    sdlf_status status =
        plan_upload(plan, feed->order.buffer, epoch->order, epoch->order_count * (int64_t)sizeof *epoch->order);
    if (status == SDLF_OK) status = upload_rates(plan, epoch, steps);
    if (status == SDLF_OK) status = plan_upload(plan, feed->first.buffer, &epoch->first_step, sizeof epoch->first_step);
    if (status == SDLF_OK) status = plan_upload(plan, feed->cursor.buffer, &epoch->first, sizeof epoch->first);
    if (status == SDLF_OK && sdlf_tensor_present(&feed->epoch))
        status = plan_upload(plan, feed->epoch.buffer, &epoch->epoch, sizeof epoch->epoch);
    feed->steps = steps;
    feed->done = epoch->first;
    plan->step_number = epoch->first_step + epoch->first;
    return status;
}

sdlf_status plan_feed_still(sdlf_plan *plan)
{
    if (!plan->feed.present) return SDLF_OK;
    int32_t *order = malloc((size_t)plan->options.batch * sizeof *order);
    if (order == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan timing: out of memory");
    for (int64_t i = 0; i < plan->options.batch; i++) order[i] = (int32_t)i;
    int64_t step = plan->step_number;
    const float rate = 0;
    sdlf_status status = sdlf_plan_begin_epoch(
        plan, &(sdlf_epoch){.order = order, .order_count = plan->options.batch, .rates = &rate, .first_step = step});
    free(order);
    return status;
}

sdlf_status sdlf_plan_run(sdlf_plan *plan, int64_t steps)
{
    plan_feed *feed = &plan->feed;
    if (!feed->present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: there is no feed to run steps from");
    if (steps < 0 || steps > feed->steps - feed->done)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: %lld steps were asked for, %lld of the epoch are left",
                         (long long)steps, (long long)(feed->steps - feed->done));
    sdlf_status status = SDLF_OK;
    for (int64_t run = 0, done; run < steps && status == SDLF_OK; run += done) {
        status = plan_run_some(plan, steps - run, &done);
        feed->done += done;
        plan->step_number += done;
    }
    return status;
}
