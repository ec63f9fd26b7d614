/* SPDX-License-Identifier: MIT */
/* Inference: merges parallel convolutions of one input whose outputs are added into one convolution (structural
 * reparameterisation, as of RepVGG and MobileOne). A branch is a convolution with constant weights, or a batch
 * normalisation of the input, which is a convolution with the identity. The smaller kernel's taps must be among the
 * larger one's; the weights are added in double whenever the plan loads its parameters. */
#include "framework/plan/passes.h"

#include <string.h>

/* A branch: the folds of its weights, with positions in its own kernel. */
typedef struct branch {
    int step;
    const sdlf_tensor *x;
    sdlf_window2d window; /* of the identity: of size 1 */
    int groups;           /* 0: as many as the other branch */
    int count;
    plan_fold fold[PLAN_MAX_BRANCHES];
} branch;

static const plan_fold no_fold = {
    .weight = -1, .bias = -1, .scale = -1, .shift = -1, .mean = -1, .variance = -1, .factor = 1};

/* The fold whose results are the convolution's weights and bias; NULL: its weights are parameters. */
static const plan_fold *fold_of(const sdlf_plan *plan, const sdlf_operation *convolution)
{
    const plan_buffer *weights = &plan->buffers[convolution->in[1].buffer];
    if (weights->kind != BUFFER_DERIVED || weights->integers > 0 || weights->weight_only > 0) return NULL;
    const plan_fold *fold = &plan->folds[weights->fold];
    return fold->folded_weight == convolution->in[1].buffer && fold->folded_bias == convolution->in[2].buffer ? fold
                                                                                                              : NULL;
}

static bool take_convolution(const sdlf_plan *plan, const sdlf_operation *op, branch *made)
{
    const sdlf_tensor *w = &op->in[1], *bias = &op->in[2];
    if (op->conv2d.activation.function != SDLF_IDENTITY || sdlf_tensor_present(&op->in[3])) return false;
    made->window = op->conv2d.window;
    made->groups = op->conv2d.groups;
    const plan_fold *fold = fold_of(plan, op);
    plan_fold alone = no_fold;
    if (fold == NULL) {
        if (!sdlf_tensor_is_contiguous(w)) return false;
        alone.weight = plan_parameter_of(plan, w, sdlf_tensor_count(w));
        alone.bias = sdlf_tensor_present(bias) ? plan_parameter_of(plan, bias, w->shape.dim[0]) : -1;
        if (alone.weight < 0 || (alone.bias < 0 && sdlf_tensor_present(bias))) return false;
        alone.channels = w->shape.dim[0];
        fold = &alone;
    }
    for (made->count = 0; made->count < PLAN_MAX_BRANCHES;) {
        plan_fold *to = &made->fold[made->count++];
        *to = *fold;
        if (to->whole[0] == 0) { /* not merged before */
            to->group_channels = w->shape.dim[1];
            memcpy(to->kernel, made->window.size, sizeof to->kernel);
        }
        if (fold->next == 0) return true;
        fold = &plan->folds[fold->next - 1];
    }
    return false;
}

/* A batch normalisation without a convolution before it. */
static bool take_identity(const sdlf_plan *plan, const sdlf_operation *op, branch *made)
{
    plan_fold *fold = &made->fold[0];
    int *const part[] = {&fold->scale, &fold->shift, &fold->mean, &fold->variance};
    if (op->batch_norm.activation.function != SDLF_IDENTITY || op->in[0].shape.rank != 4) return false;
    *fold = no_fold;
    fold->channels = op->in[0].shape.dim[1];
    fold->epsilon = op->batch_norm.epsilon;
    for (int i = 0; i < 4; i++) {
        *part[i] = plan_parameter_of(plan, &op->in[1 + i], fold->channels);
        if (*part[i] < 0) return false;
    }
    fold->kernel[0] = fold->kernel[1] = 1;
    made->window = (sdlf_window2d){.size = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    made->count = 1;
    return true;
}

static bool take(const sdlf_plan *plan, int step, branch *made)
{
    const sdlf_operation *op = &plan->steps[step].operation;
    *made = (branch){.step = step, .x = &op->in[0]};
    if (op->kind == SDLF_CONV2D_FORWARD) return take_convolution(plan, op, made);
    return op->kind == SDLF_BATCH_NORM2D_INFER && take_identity(plan, op, made);
}

/* The position of the smaller window's first tap among those of the larger one. False if a tap of it is not among them. */
static bool position_in(const sdlf_window2d *large, const sdlf_window2d *small, int first[2])
{
    for (int i = 0; i < 2; i++) {
        const int apart = large->padding_before[i] - small->padding_before[i];
        if (large->stride[i] != small->stride[i] || apart < 0 || apart % large->dilation[i] != 0) return false;
        if (small->size[i] > 1 && large->dilation[i] != small->dilation[i]) return false;
        first[i] = apart / large->dilation[i];
        if (first[i] + small->size[i] > large->size[i]) return false;
    }
    return true;
}

static bool reads_the_same(const branch *a, const branch *b)
{
    return a->x->buffer == b->x->buffer && a->x->offset == b->x->offset && plan_same_strides(a->x, b->x);
}

/* Replaces two branches and their sum by one convolution, of the larger branch's kernel. */
static sdlf_status merge(sdlf_plan *plan, const branch *large, const branch *small, const int first[2], int sum)
{
    sdlf_operation merged = plan->steps[large->step].operation;
    const sdlf_operation *add = &plan->steps[sum].operation;
    sdlf_status status = plan_derive_weights(plan, &merged, merged.in[1].shape);
    if (status != SDLF_OK) return status;
    merged.out[0] = sdlf_tensor_reshape(add->out[0], merged.out[0].shape);
    merged.conv2d.activation = add->add.activation;
    if (!sdlf_calculator_supports(plan->steps[large->step].calculator, &merged)) return SDLF_OK;
    for (int i = large->count + small->count - 1; i >= 0; i--) {
        const bool is_small = i >= large->count;
        plan_fold fold = is_small ? small->fold[i - large->count] : large->fold[i];
        fold.group_channels = merged.in[1].shape.dim[1];
        fold.next = i == large->count + small->count - 1 ? 0 : plan->fold_count; /* 1 + the one added before */
        for (int axis = 0; axis < 2; axis++) {
            if (is_small) fold.first[axis] += first[axis];
            fold.whole[axis] = large->window.size[axis];
        }
        status = plan_add_fold(plan, &fold, &merged); /* the last one is the first branch */
        if (status != SDLF_OK) return status;
    }
    plan->steps[small->step].dead = plan->steps[sum].dead = true;
    plan_join_groups(plan, plan->steps[large->step].node, plan->steps[small->step].node);
    plan_join_groups(plan, plan->steps[large->step].node, plan->steps[sum].node);
    return plan_replace_operation(plan, large->step, &merged);
}

static sdlf_status merge_sum(sdlf_plan *plan, int sum)
{
    const sdlf_operation *add = &plan->steps[sum].operation;
    branch of[2];
    int first[2];
    for (int i = 0; i < 2; i++) {
        const int step = plan_first_writer(plan, add->in[i].buffer);
        if (step < 0 || plan_sole_reader(plan, step) != sum || !take(plan, step, &of[i]) ||
            !sdlf_tensor_is_contiguous(&add->in[i]))
            return SDLF_OK;
    }
    if (of[0].step == of[1].step || of[0].count + of[1].count > PLAN_MAX_BRANCHES || !reads_the_same(&of[0], &of[1]) ||
        !sdlf_shape_equal(plan->steps[of[0].step].operation.out[0].shape,
                          plan->steps[of[1].step].operation.out[0].shape))
        return SDLF_OK;
    const int swap = of[0].groups == 0 || !position_in(&of[0].window, &of[1].window, first);
    const branch *large = &of[swap], *small = &of[1 - swap];
    if (large->groups == 0 || (small->groups != 0 && small->groups != large->groups) ||
        !position_in(&large->window, &small->window, first))
        return SDLF_OK;
    return merge(plan, large, small, first, sum);
}

sdlf_status plan_merge_branches(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; plan->options.mode == SDLF_INFER && i < plan->step_count && status == SDLF_OK; i++)
        if (!plan->steps[i].dead && plan->steps[i].operation.kind == SDLF_ADD) status = merge_sum(plan, i);
    return status;
}
