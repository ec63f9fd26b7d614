/* SPDX-License-Identifier: MIT */
/* The graph pass: turns the model's layers into nodes with shapes, calculators and parameters; removes idle and
 * unneeded ones. */
#include "framework/plan/passes.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/layers.h>

#include "framework/input_layer.h"

/* Operations are ordered only within one calculator, so a plan allows one calculator per device. */
static sdlf_status claim_space(sdlf_plan *plan, sdlf_calculator *calculator)
{
    int space = plan_space_of(plan, calculator);
    if (space < 0) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "plan: more than %d memory spaces", PLAN_MAX_SPACES);
    if (plan_is_host_space(plan, space) || plan->spaces[space].calculator == calculator) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: two calculators in the memory of %s, expected one for all its layers",
                     calculator->space);
}

int plan_find_node(const sdlf_plan *plan, const char *name, int from)
{
    int layers = plan->model->layer_count; /* these are the first nodes, with unique names */
    int found = model_find_layer(plan->model, name);
    if (found >= from && found < plan->node_count) return found;
    for (int i = from > layers ? from : layers; i < plan->node_count; i++) {
        if (strcmp(plan->nodes[i].layer->name, name) == 0) return i;
    }
    return -1;
}

static void place_node(plan_node *node, const sdlf_placement *placement)
{
    if (placement->forward != NULL) node->forward = placement->forward;
    if (placement->backward != NULL) node->backward = placement->backward;
}

/* Assigns the calculators of the placement to the model's layers, before they become nodes. */
static void place_layers(sdlf_plan *plan)
{
    for (int i = 0; i < plan->options.placement_count; i++) {
        int layer = model_find_layer(plan->model, plan->options.placement[i].layer);
        if (layer >= 0) place_node(&plan->nodes[layer], &plan->options.placement[i]);
    }
}

/* The same for a layer that the plan added. */
static void place_own_layer(const sdlf_plan *plan, plan_node *node)
{
    for (int i = 0; i < plan->options.placement_count; i++) {
        const sdlf_placement *placement = &plan->options.placement[i];
        if (strcmp(placement->layer, node->layer->name) == 0) place_node(node, placement);
    }
}

static sdlf_status check_placement(const sdlf_plan *plan)
{
    for (int i = 0; i < plan->options.placement_count; i++) {
        const char *name = plan->options.placement[i].layer;
        /* a network evaluated during training has these in only one of its plans */
        bool found = plan->options.mode == SDLF_INFER && (strcmp(name, "loss") == 0 || strcmp(name, "labels") == 0);
        if (!found && plan_find_node(plan, name, 0) < 0)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "placement: network '%s' has no layer '%s'", plan->model->name, name);
    }
    return SDLF_OK;
}

/* Floating-point inputs of a model get the plan's floating-point type. */
static void infer_as_plan_dtype(const sdlf_plan *plan, sdlf_signature *signature)
{
    for (int i = 0; i < signature->output_count; i++) {
        if (sdlf_dtype_is_float(signature->output_dtype[i])) signature->output_dtype[i] = plan->options.dtype;
    }
}

static sdlf_status infer_signature(const sdlf_plan *plan, int index, sdlf_signature *signature)
{
    const plan_node *node = &plan->nodes[index];
    *signature = (sdlf_signature){
        .batch = plan->options.batch,
        .input_count = node->input_count,
        .dtype = plan->options.dtype,
        .training = plan->options.mode == SDLF_TRAIN,
        .eval_mode = plan->options.eval_mode,
    };
    for (int i = 0; i < node->input_count; i++) {
        signature->input_shape[i] = plan->values[node->inputs[i]].tensor.shape;
        signature->input_dtype[i] = plan->values[node->inputs[i]].tensor.dtype;
        signature->input_sparse[i] = plan->values[node->inputs[i]].tensor.layout == SDLF_CSR;
    }
    const sdlf_layer *producer = node->input_count > 0 ? plan->nodes[plan->values[node->inputs[0]].node].layer : NULL;
    sdlf_status status =
        model_layer_infer(node->layer, node->position >= 0 ? node->position : index, producer, signature);
    if (status == SDLF_OK && node->layer->type == &sdlf_input_layer_class) infer_as_plan_dtype(plan, signature);
    return status;
}

/* Adds the signature's outputs to the plan's values, which have the capacity. */
static void add_values(sdlf_plan *plan, int index, const sdlf_signature *signature)
{
    plan->nodes[index].first_value = plan->value_count;
    plan->nodes[index].output_count = signature->output_count;
    for (int i = 0; i < signature->output_count; i++) {
        plan_value *value = &plan->values[plan->value_count++];
        *value = (plan_value){
            .tensor = sdlf_tensor_view(signature->output_dtype[i], signature->output_shape[i], NULL),
            .node = index,
        };
        if (signature->output_sparse[i]) value->tensor.layout = SDLF_CSR;
    }
}

/* Adds the tensors that forward saves for backward. */
static sdlf_status add_saved(sdlf_plan *plan, int index, const sdlf_signature *signature)
{
    plan->nodes[index].first_saved = plan->saved_count;
    plan->nodes[index].saved_count = signature->saved_count;
    if (plan->saved_count + signature->saved_count > plan->saved_capacity) {
        int capacity = 2 * plan->saved_capacity + SDLF_MAX_LAYER_SAVED;
        sdlf_tensor *saved = realloc(plan->saved, (size_t)capacity * sizeof *saved);
        if (saved == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for what layers keep");
        plan->saved = saved;
        plan->saved_capacity = capacity;
    }
    for (int i = 0; i < signature->saved_count; i++)
        plan->saved[plan->saved_count++] = sdlf_tensor_view(signature->saved_dtype[i], signature->saved_shape[i], NULL);
    return SDLF_OK;
}

/* Infers a node whose inputs are set, and creates its values. Input layers get the batch. */
static sdlf_status infer_node(sdlf_plan *plan, int index)
{
    plan_node *node = &plan->nodes[index];
    sdlf_signature signature;
    sdlf_status status = infer_signature(plan, index, &signature);
    if (status == SDLF_OK) status = add_saved(plan, index, &signature);
    if (status != SDLF_OK) return status;
    add_values(plan, index, &signature);
    node->parameter_count = signature.parameter_count;
    for (int i = 0; i < signature.parameter_count; i++)
        node->parameter_elements += sdlf_shape_count(signature.parameter[i].shape);
    node->idle = !signature.training && node->layer->type->is_identity_in_inference != NULL &&
                 node->layer->type->is_identity_in_inference(node->layer);
    node->group = index;
    if (node->forward == NULL) node->forward = plan->options.forward;
    if (node->backward == NULL) node->backward = plan->options.backward;
    status = claim_space(plan, node->forward);
    return status == SDLF_OK ? claim_space(plan, node->backward) : status;
}

static sdlf_status add_model_layers(sdlf_plan *plan)
{
    const sdlf_model *model = plan->model;
    place_layers(plan);
    for (int i = 0; i < model->layer_count; i++) {
        const model_layer *entry = &model->layers[i];
        plan_node *node = &plan->nodes[i];
        node->layer = &entry->layer;
        node->position = i;
        node->input_count = entry->input_count;
        node->first_parameter = entry->first_parameter;
        for (int j = 0; j < entry->input_count; j++)
            node->inputs[j] = plan->nodes[entry->inputs[j].layer].first_value + entry->inputs[j].output;
        sdlf_status status = infer_node(plan, i);
        if (status != SDLF_OK) return status;
        plan->node_count++;
    }
    return SDLF_OK;
}

/* Appends a node of a layer that the plan adds. */
static sdlf_status add_own_node(sdlf_plan *plan, const sdlf_layer *layer, const int *inputs, int input_count)
{
    plan_node *node = &plan->nodes[plan->node_count];
    *node = (plan_node){.layer = layer, .position = -1, .input_count = input_count};
    for (int i = 0; i < input_count; i++) node->inputs[i] = inputs[i];
    place_own_layer(plan, node);
    sdlf_status status = infer_node(plan, plan->node_count);
    if (status == SDLF_OK) plan->node_count++;
    return status;
}

enum { OWN_LAYERS = 7 }; /* labels, logits as rows, weights, loss; the second labels, their weights, their loss */

typedef struct loss_layers {
    sdlf_layer layer[OWN_LAYERS]; /* first, so that the plan can free the whole through it */
    int count;
    sdlf_input_options input[4];
    int input_count;
    struct {
        const char *name;
    } plain[2];
    sdlf_softmax_cross_entropy_options cross_entropy;
    sdlf_huber_options huber;
} loss_layers;

/* The model's first output. */
static int find_output(const sdlf_plan *plan)
{
    sdlf_node output =
        plan->model->output_count > 0 ? plan->model->outputs[0].node : (sdlf_node){plan->model->layer_count - 1, 0};
    return plan->nodes[output.layer].first_value + output.output;
}

/* The value that the loss is computed from: the output, or the logits that it is computed from. */
static int find_logits(const sdlf_plan *plan)
{
    int output = find_output(plan);
    const plan_node *node = &plan->nodes[plan->values[output].node];
    return node->layer->type->scores == SDLF_SCORES_LOGITS ? output : node->inputs[0];
}

/* Adds a layer to the plan; *value becomes its first output. */
static sdlf_status add_own_layer(sdlf_plan *plan, const char *type, const char *name, const void *options,
                                 const int *inputs, int input_count, int *value)
{
    loss_layers *own = (loss_layers *)plan->loss_layers;
    sdlf_layer *layer = &own->layer[own->count++];
    bool input = input_count == 0;
    *layer = (sdlf_layer){
        .type = input ? &sdlf_input_layer_class : sdlf_layer_class_find(type), .name = name, .options = options};
    sdlf_status status = add_own_node(plan, layer, inputs, input_count);
    if (status == SDLF_OK) *value = plan->nodes[plan->node_count - 1].first_value;
    return status;
}

static sdlf_status add_own_input(sdlf_plan *plan, const char *name, sdlf_dtype dtype, sdlf_shape shape, int *value)
{
    loss_layers *own = (loss_layers *)plan->loss_layers;
    sdlf_input_options *options = &own->input[own->input_count++];
    *options = (sdlf_input_options){.name = name, .dtype = dtype, .shape = shape};
    return add_own_layer(plan, NULL, name, options, NULL, 0, value);
}

/* Views the scores (N,C,1,1) of a convolution and a pooling as (N,C), and scores that are compared with targets, of any
 * shape, as rows. */
static sdlf_status flatten_scores(sdlf_plan *plan, int *scores)
{
    loss_layers *own = (loss_layers *)plan->loss_layers;
    sdlf_shape shape = plan->values[*scores].tensor.shape;
    bool classes = plan->options.loss == SDLF_LOSS_CROSS_ENTROPY;
    if (shape.rank == 2 || (classes && (shape.rank < 2 || sdlf_shape_span(shape, 2, shape.rank) != 1))) return SDLF_OK;
    own->plain[0].name = "loss.logits";
    const int input = *scores;
    return add_own_layer(plan, "flatten", own->plain[0].name, &own->plain[0], &input, 1, scores);
}

/* Adds cross-entropy with labels, one per row of scores, and if requested with weights. */
static sdlf_status add_cross_entropy(sdlf_plan *plan, int logits, const char *const *names, bool weighted)
{
    loss_layers *own = (loss_layers *)plan->loss_layers;
    int inputs[3] = {logits, 0, 0}, loss;
    sdlf_shape scores = plan->values[logits].tensor.shape;
    sdlf_shape rows = scores.rank == 3   ? sdlf_shape(scores.dim[1])
                      : scores.rank == 4 ? sdlf_shape(scores.dim[2], scores.dim[3])
                                         : SDLF_SCALAR; /* of a sample */
    sdlf_status status = add_own_input(plan, names[0], SDLF_INT32, rows, &inputs[1]);
    if (status == SDLF_OK && weighted) status = add_own_input(plan, names[1], SDLF_FLOAT32, rows, &inputs[2]);
    return status == SDLF_OK ? add_own_layer(plan, "softmax_cross_entropy", names[2], &own->cross_entropy, inputs,
                                             weighted ? 3 : 2, &loss)
                             : status;
}

/* Adds mse, mae, huber or bce_with_logits, with targets. */
static sdlf_status add_target_loss(sdlf_plan *plan, int scores)
{
    loss_layers *own = (loss_layers *)plan->loss_layers;
    sdlf_loss kind = plan->options.loss;
    int inputs[2] = {scores, 0}, loss;
    sdlf_shape shape = plan->values[scores].tensor.shape;
    own->plain[1].name = own->huber.name = "loss";
    own->huber.delta = sdlf_model_huber_delta(plan->model);
    sdlf_status status = add_own_input(plan, "labels", SDLF_FLOAT32, sdlf_shape_without(shape, 0), &inputs[1]);
    const void *options = kind == SDLF_LOSS_HUBER ? (const void *)&own->huber : &own->plain[1];
    return status == SDLF_OK ? add_own_layer(plan, sdlf_loss_names[kind], "loss", options, inputs, 2, &loss) : status;
}

/* Adds labels and a loss of the model's scores to a training plan whose model has no loss. */
static sdlf_status add_loss(sdlf_plan *plan)
{
    static const char *const first[] = {"labels", "weights", "loss"};
    static const char *const second[] = {"second_labels", "second_weights", "second_loss"};
    const sdlf_plan_options *options = &plan->options;
    bool classes = options->loss == SDLF_LOSS_CROSS_ENTROPY;
    if ((unsigned)options->loss >= SDLF_LOSS_COUNT || (!classes && (options->weighted || options->mixed)))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: loss %d%s", (int)options->loss,
                         classes ? "" : ": expected one of sdlf_loss, without weights of classes or second labels");
    loss_layers *own = calloc(1, sizeof *own);
    if (own == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for the loss layer");
    plan->loss_layers = own->layer;
    own->cross_entropy = (sdlf_softmax_cross_entropy_options){.name = "loss", .smoothing = options->label_smoothing};
    int scores = find_logits(plan);
    sdlf_shape found = plan->values[scores].tensor.shape;
    if (found.rank > 0 && found.dim[0] != options->batch)
        return sdlf_fail(SDLF_ERROR_SHAPE, "'%s' gives scores of %s samples whatever the batch is, which has %s",
                         plan->nodes[plan->values[scores].node].layer->name,
                         sdlf_shape_print(sdlf_shape(found.dim[0])).text,
                         sdlf_shape_print(sdlf_shape(options->batch)).text);
    sdlf_status status = flatten_scores(plan, &scores);
    if (status != SDLF_OK) return status;
    const sdlf_layer *last = plan->nodes[plan->values[find_output(plan)].node].layer;
    if (!classes && last->type->scores != SDLF_SCORES_LOGITS)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s is of the values themselves, and output '%s' is a %s of them",
                         sdlf_loss_names[options->loss], last->name, last->type->name);
    if (!classes) return add_target_loss(plan, scores);
    status = add_cross_entropy(plan, scores, first, options->weighted || options->mixed);
    return status == SDLF_OK && options->mixed ? add_cross_entropy(plan, scores, second, true) : status;
}

/* Marks the nodes on which the wanted values depend. */
static void mark_live(sdlf_plan *plan, bool *wanted)
{
    for (int i = plan->node_count - 1; i >= 0; i--) {
        plan_node *node = &plan->nodes[i];
        for (int j = 0; j < node->output_count; j++) node->live = node->live || wanted[node->first_value + j];
        for (int j = 0; node->live && j < node->input_count; j++) wanted[node->inputs[j]] = true;
    }
}

static sdlf_status mark_needed(sdlf_plan *plan)
{
    bool *wanted = calloc((size_t)plan->value_count, sizeof *wanted);
    if (wanted == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    bool training = plan->options.mode == SDLF_TRAIN;
    if (training) {
        for (int i = 0; i < plan->node_count; i++) {
            if (plan->nodes[i].layer->type->is_loss) wanted[plan->nodes[i].first_value] = true;
        }
    }
    if (!training || plan->options.keep_activations) {
        for (int i = 0; i < plan->model->output_count; i++) {
            sdlf_node output = plan->model->outputs[i].node;
            wanted[plan->nodes[output.layer].first_value + output.output] = true;
        }
        if (plan->model->output_count == 0) wanted[plan->nodes[plan->model->layer_count - 1].first_value] = true;
    }
    mark_live(plan, wanted);
    free(wanted);
    return SDLF_OK;
}

static bool has_loss(const sdlf_plan *plan)
{
    for (int i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i].layer->type->is_loss) return true;
    }
    return false;
}

/* Outputs of the model's layers and of those that the plan adds. */
static size_t most_values(const sdlf_model *model)
{
    size_t count = (size_t)OWN_LAYERS * SDLF_MAX_LAYER_OUTPUTS;
    for (int i = 0; i < model->layer_count; i++) count += (size_t)model->layers[i].output_count;
    return count;
}

sdlf_status plan_build_graph(sdlf_plan *plan)
{
    size_t count = (size_t)plan->model->layer_count + OWN_LAYERS;
    plan->nodes = calloc(count, sizeof *plan->nodes);
    plan->values = calloc(most_values(plan->model), sizeof *plan->values);
    if (plan->nodes == NULL || plan->values == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for %zu layers", count);
    sdlf_status status = plan_take_constants(plan);
    if (status == SDLF_OK) status = add_model_layers(plan);
    if (status == SDLF_OK) status = plan_check_constants(plan);
    if (status == SDLF_OK) status = plan_find_states(plan);
    if (status != SDLF_OK) return status;
    if (plan->options.mode == SDLF_TRAIN && !has_loss(plan)) {
        status = add_loss(plan);
        if (status != SDLF_OK) return sdlf_fail_context(status, "network '%s': its loss", plan->model->name);
    }
    status = check_placement(plan);
    if (status == SDLF_OK) status = plan_check_reuse(plan);
    return status == SDLF_OK ? mark_needed(plan) : status;
}
