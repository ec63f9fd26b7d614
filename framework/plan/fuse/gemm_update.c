/* SPDX-License-Identifier: MIT */
/* A fully connected layer's backward pass and its SGD updates as one sweep over the weights:
 *
 *   gemm dy^T x -> dw;  gemm dy w -> da (if wanted);  sgd_update dw -> w, v
 *   reduce sum dy -> db;  sgd_update db -> b, bv                                 if there is a bias
 *   activation_backward x, da -> dx                                              if x is an activation's output
 *
 * becomes gemm_backward_sgd, with as much of this as the calculator takes. The gradient of the weights is never stored,
 * w is read once for da and its update together, and a small batch's step has four kernels less. */
#include "framework/plan/fuse/updates.h"

/* The steps that become one; -1: none. */
typedef struct sweep {
    int weights, input, update; /* products for dw and da, update of w */
    int reduce, bias_update;    /* both or none */
    int activation;
} sweep;

static bool is_plain_product(const sdlf_operation *op, bool transpose_a, bool transpose_b)
{
    return op->kind == SDLF_GEMM && op->gemm.transpose_a == transpose_a && op->gemm.transpose_b == transpose_b &&
           op->gemm.alpha == 1 && op->gemm.activation.function == SDLF_IDENTITY && !sdlf_tensor_present(&op->in[2]) &&
           !sdlf_tensor_present(&op->in[3]);
}

/* One place in one buffer, whatever the shapes. */
static bool is_same_memory(const sdlf_tensor *a, const sdlf_tensor *b)
{
    return a->buffer == b->buffer && a->offset == b->offset && sdlf_tensor_bytes(a) == sdlf_tensor_bytes(b);
}

/* The step that computes dy w with the same dy, on the same calculator, before the update; -1: none. */
static int find_input_product(const sdlf_plan *plan, const sweep *found)
{
    const plan_step *product = &plan->steps[found->weights];
    const sdlf_tensor *w = &plan->steps[found->update].operation.out[0];
    int first = plan_next_reader(plan, w->buffer, plan->forward_steps - 1);
    for (int i = first; i >= 0 && i < found->update; i = plan_next_reader(plan, w->buffer, i)) {
        const plan_step *step = &plan->steps[i];
        if (step->calculator != product->calculator) continue;
        if (is_plain_product(&step->operation, false, false) && is_same_memory(&step->operation.in[1], w) &&
            is_same_memory(&step->operation.in[0], &product->operation.in[0]))
            return i;
    }
    return -1;
}

/* The bias's gradient, the sum over dy's rows, and its update. */
static void find_bias(const sdlf_plan *plan, sweep *found, int first)
{
    const plan_step *product = &plan->steps[found->weights];
    const sdlf_operation *weights = &plan->steps[found->update].operation;
    const int dy = product->operation.in[0].buffer;
    for (int i = plan_next_reader(plan, dy, plan->forward_steps - 1); i >= 0; i = plan_next_reader(plan, dy, i)) {
        const plan_step *step = &plan->steps[i];
        const sdlf_operation *op = &step->operation;
        if (step->calculator != product->calculator || op->kind != SDLF_REDUCE) continue;
        if (op->reduce.function != SDLF_REDUCE_SUM || op->reduce.axis != 0) continue;
        if (!is_same_memory(&op->in[0], &product->operation.in[0])) continue;
        int update = plan_find_sgd(plan, i, &op->out[0]);
        if (update < 0 || !plan_is_one_rule(weights, &plan->steps[update].operation)) continue;
        if (!plan_may_update_at(plan, update, first, -1)) continue;
        found->reduce = i;
        found->bias_update = update;
        return;
    }
}

/* The gradient of the activation whose output x is: the only step that reads da. */
static int find_activation(const sdlf_plan *plan, const sweep *found)
{
    const sdlf_tensor *x = &plan->steps[found->weights].operation.in[1];
    if (found->input < 0) return -1;
    const sdlf_tensor *da = &plan->steps[found->input].operation.out[0];
    if (plan->buffers[da->buffer].kind != BUFFER_ARENA) return -1;
    if (plan_count_readers(plan, da->buffer) != 1 || plan_count_writers(plan, da->buffer) != 1) return -1;
    int reader = plan_next_reader(plan, da->buffer, found->input);
    if (reader < 0 || plan->steps[reader].calculator != plan->steps[found->weights].calculator) return -1;
    const sdlf_operation *op = &plan->steps[reader].operation;
    if (op->kind != SDLF_ACTIVATION_BACKWARD || sdlf_activation_reads_input(op->activation.function)) return -1;
    return is_same_memory(&op->in[0], x) && is_same_memory(&op->in[1], da) ? reader : -1;
}

static sdlf_operation make_fused(const sdlf_plan *plan, const sweep *found, bool bias, bool activation)
{
    const sdlf_operation *product = &plan->steps[found->weights].operation;
    const sdlf_operation *sgd = &plan->steps[found->update].operation;
    sdlf_operation fused = {
        .kind = SDLF_GEMM_BACKWARD_SGD,
        .in = {product->in[1], product->in[0], sgd->in[1]},
        .out = {sgd->out[0], sgd->out[1]},
        .gemm_backward = {.sgd = sgd->sgd},
    };
    if (found->input >= 0) fused.out[2] = plan->steps[found->input].operation.out[0];
    if (bias) {
        const sdlf_operation *update = &plan->steps[found->bias_update].operation;
        fused.out[3] = update->out[0];
        fused.out[4] = update->out[1];
        fused.gemm_backward.sgd.bias_decay = update->sgd.decay;
    }
    if (activation) {
        const sdlf_operation *backward = &plan->steps[found->activation].operation;
        fused.out[2] = sdlf_tensor_reshape(backward->out[0], product->in[1].shape);
        fused.gemm_backward.activation = backward->activation;
    }
    return fused;
}

static void bury(sdlf_plan *plan, int step)
{
    if (step >= 0) plan->steps[step].dead = true;
}

sdlf_status plan_fuse_gemm_update(sdlf_plan *plan, int weights)
{
    const sdlf_operation *product = &plan->steps[weights].operation;
    if (!is_plain_product(product, true, false)) return SDLF_OK;
    sweep found = {.weights = weights, .update = plan_find_sgd(plan, weights, &product->out[0]), .reduce = -1};
    if (found.update < 0) return SDLF_OK;
    found.input = find_input_product(plan, &found);
    int first = found.input >= 0 && found.input < weights ? found.input : weights;
    if (!plan_may_update_at(plan, found.update, first, found.input > first ? found.input : weights)) return SDLF_OK;
    find_bias(plan, &found, first);
    found.activation = find_activation(plan, &found);
    for (int left_out = 0; left_out < 4; left_out++) {
        bool bias = !(left_out & 2), activation = !(left_out & 1);
        if ((bias && found.reduce < 0) || (activation && found.activation < 0)) continue;
        sdlf_operation fused = make_fused(plan, &found, bias, activation);
        if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[first].calculator, &fused))
            continue;
        bury(plan, found.weights);
        bury(plan, found.input);
        bury(plan, found.update);
        if (bias) bury(plan, found.reduce);
        if (bias) bury(plan, found.bias_update);
        if (activation) bury(plan, found.activation);
        return plan_replace_operation(plan, first, &fused);
    }
    return SDLF_OK;
}
