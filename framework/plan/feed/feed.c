/* SPDX-License-Identifier: MIT */
/* Lowering of a plan that draws its own batches: every step begins with next_batch, which takes the step's indices,
 * learning rate and number from what the host set at the epoch's start (epoch.c), and gathers its inputs from the data
 * set.
 *
 * If the data set is in another memory, a ring of a few batches replaces it (stage.c), and the order cycles through the
 * ring: the steps see no difference. */
#include "framework/operations/augmented.h"
#include "framework/plan/passes.h"

#include <string.h>

#include "framework/input_layer.h"

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

/* True if samples are gathered as floats, and then converted to the integer type of the input. */
static bool are_converted(const sdlf_plan *plan, const sdlf_tensor *data, const sdlf_tensor *input)
{
    return !sdlf_dtype_is_float(input->dtype) && data->dtype != input->dtype &&
           (data->dtype == SDLF_UINT8 || data->dtype == plan->options.dtype);
}

/* Data of M samples must match an input sample for sample. */
static sdlf_status check_data(const sdlf_plan *plan, const char *name, const sdlf_tensor *data, bool integers)
{
    const plan_node *node = find_input(plan, name);
    if (node == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: network '%s' has no input '%s'", plan->model->name, name);
    const sdlf_tensor *input = &plan->values[node->first_value].tensor;
    sdlf_shape expected = input->shape;
    expected.dim[0] = data->shape.rank > 0 ? data->shape.dim[0] : 0;
    if (!sdlf_shape_equal(expected, data->shape))
        return sdlf_fail(SDLF_ERROR_SHAPE, "feed: input '%s' expects batches of shape %s, the data have shape %s", name,
                         sdlf_shape_print(input->shape).text, sdlf_shape_print(data->shape).text);
    bool fits = integers ? data->dtype == SDLF_INT32 && input->dtype == SDLF_INT32
                         : data->dtype == SDLF_UINT8 || data->dtype == input->dtype || are_converted(plan, data, input);
    if (fits && data->data == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: the data for input '%s' are NULL", name);
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
    if (feed->skip < 0 || samples - feed->skip < plan->options.batch)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: %lld samples are less than a batch of %lld",
                         (long long)(samples - feed->skip), (long long)plan->options.batch);
    if (feed->staged < 0 || feed->staged > SDLF_MAX_STAGED)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: %d batches cannot be staged, up to %d can", feed->staged,
                         SDLF_MAX_STAGED);
    return samples <= INT32_MAX
               ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_ARGUMENT, "feed: %lld samples are more than %d", (long long)samples, INT32_MAX);
}

static bool is_augmented(const sdlf_plan *plan)
{
    return sdlf_augmentation_wanted(&plan->feed.feed.augment) || sdlf_auto_augment_wanted(&plan->feed.feed.automatic);
}

bool plan_holds_data(const sdlf_plan *plan)
{
    return plan->feed.stages.count == 0;
}

/* Creates the tensor of all data, or of the slots of a few batches. */
static sdlf_status make_data(sdlf_plan *plan, int which, const sdlf_tensor *data)
{
    plan_feed *feed = &plan->feed;
    sdlf_shape shape = data->shape;
    bool whole = plan_holds_data(plan);
    if (!whole) shape.dim[0] = plan->options.batch * feed->stages.count;
    sdlf_status status =
        plan_new_tensor(plan, whole ? BUFFER_DATA : BUFFER_PINNED, data->dtype, shape, &feed->data[which]);
    if (status == SDLF_OK) plan->buffers[feed->data[which].buffer].data = which;
    return status;
}

/* Creates the tensors that the start of an epoch fills for its steps, in the memory of the steps. */
static sdlf_status make_tensors(sdlf_plan *plan)
{
    plan_feed *feed = &plan->feed;
    int64_t samples = feed->feed.sample_data.shape.dim[0], batch = plan->options.batch;
    int64_t places = plan_holds_data(plan) || !is_augmented(plan) ? 0 : batch * feed->stages.count;
    sdlf_dtype dtype = plan->options.dtype;
    const struct {
        sdlf_tensor *tensor;
        buffer_kind kind;
        sdlf_dtype dtype;
        int64_t count;
    } made[] = {
        {&feed->whole_order, BUFFER_PINNED, SDLF_INT32, samples},
        {&feed->rates, BUFFER_PINNED, dtype, samples / batch},
        {&feed->first, BUFFER_PINNED, SDLF_INT64, 1},
        {&feed->cursor, BUFFER_PINNED, SDLF_INT64, 1},
        {&feed->index, BUFFER_ARENA, SDLF_INT32, batch},
        {&feed->rate, BUFFER_ARENA, dtype, 1},
        {&feed->step, BUFFER_ARENA, SDLF_INT64, 1},
        {&feed->epoch, BUFFER_PINNED, SDLF_INT64, 1},
        {&feed->number, BUFFER_PINNED, SDLF_INT32, places},
    };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (made[i].count == 0) continue;
        sdlf_status status =
            plan_new_tensor(plan, made[i].kind, made[i].dtype, sdlf_shape(made[i].count), made[i].tensor);
        if (status != SDLF_OK) return status;
        if (made[i].kind == BUFFER_PINNED)
            plan->buffers[made[i].tensor->buffer].space = plan_space_of(plan, feed->calculator);
    }
    feed->order = sdlf_tensor_narrow(feed->whole_order, 0, feed->feed.skip, samples - feed->feed.skip);
    return SDLF_OK;
}

sdlf_status plan_lower_feed(sdlf_plan *plan)
{
    plan_feed *feed = &plan->feed;
    sdlf_status status = check_feed(plan);
    if (status != SDLF_OK) return status;
    const plan_node *node = find_input(plan, feed->feed.samples);
    feed->calculator = node->forward;
    bool host = sdlf_calculator_is_on_host(node->forward);
    feed->stages = (plan_stages){.count = host ? 0 : feed->feed.staged, .calculator = node->forward};
    status = make_tensors(plan);
    if (status == SDLF_OK) status = make_data(plan, 0, &feed->feed.sample_data);
    if (status == SDLF_OK) status = make_data(plan, 1, &feed->feed.label_data);
    if (status != SDLF_OK) return status;
    const sdlf_operation shuffle = {
        .kind = SDLF_SHUFFLE,
        .in = {feed->epoch},
        .out = {feed->whole_order},
        .shuffle = {.seed = feed->feed.seed},
    };
    if (plan_holds_data(plan)) feed->shuffle = shuffle;
    if (plan_holds_data(plan) && !sdlf_calculator_supports(feed->calculator, &shuffle))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "feed: calculator '%s' has no shuffle", feed->calculator->type->name);
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
        gather.gather.channels = feed->feed.channels;
        gather.gather.augment = feed->feed.augment;
        gather.gather.automatic = feed->feed.automatic;
        if (is_augmented(plan)) gather.in[2] = feed->epoch;
        gather.in[3] = feed->number;
    }
    sdlf_tensor input = gather.out[0];
    bool converted = samples && are_converted(plan, &feed->data[0], &input);
    sdlf_status status = SDLF_OK;
    if (converted) status = plan_new_tensor(plan, BUFFER_ARENA, plan->options.dtype, input.shape, &gather.out[0]);
    if (status == SDLF_OK) status = plan_emit(plan, index, SDLF_PHASE_FORWARD, node->forward, &gather);
    if (status != SDLF_OK || !converted) return status;
    return plan_emit(plan, index, SDLF_PHASE_FORWARD, node->forward,
                     &(sdlf_operation){.kind = SDLF_COPY, .in = {gather.out[0]}, .out = {input}});
}
