/* SPDX-License-Identifier: MIT */
/* Inference: a batch normalisation behind a convolution or a fully connected layer becomes other weights and another
 * bias:
 * w' = w s, b' = (b - mean) s + shift, s = scale / sqrt(variance + epsilon). The new ones are computed, in double,
 * whenever the plan loads its parameters. */
#include "framework/plan/passes.h"

#include <stdlib.h>

/* The model parameter that an operand is; -1: none. */
static int parameter_of(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    if (!sdlf_tensor_present(tensor)) return -1;
    const plan_buffer *buffer = &plan->buffers[tensor->buffer];
    return buffer->kind == BUFFER_PARAMETER && buffer->constant ? buffer->parameter : -1;
}

static bool can_fold_into(const sdlf_plan *plan, const sdlf_operation *op)
{
    bool linear = op->kind == SDLF_GEMM && op->gemm.transpose_b && !op->gemm.transpose_a && op->gemm.alpha == 1;
    if (op->kind != SDLF_CONV2D_FORWARD && !linear) return false;
    if (sdlf_operation_epilogue((sdlf_operation *)op)->function != SDLF_IDENTITY) return false;
    if (sdlf_tensor_present(&op->in[3]) || parameter_of(plan, &op->in[1]) < 0) return false;
    return !sdlf_tensor_present(&op->in[2]) || parameter_of(plan, &op->in[2]) >= 0;
}

static sdlf_status fold(sdlf_plan *plan, int i, int reader)
{
    const plan_step *step = &plan->steps[i];
    const sdlf_operation *norm = &plan->steps[reader].operation;
    plan_fold folded = {
        .weight = parameter_of(plan, &step->operation.in[1]),
        .bias = parameter_of(plan, &step->operation.in[2]),
        .scale = parameter_of(plan, &norm->in[1]),
        .shift = parameter_of(plan, &norm->in[2]),
        .mean = parameter_of(plan, &norm->in[3]),
        .variance = parameter_of(plan, &norm->in[4]),
        .epsilon = norm->batch_norm.epsilon,
    };
    if (folded.scale < 0 || folded.shift < 0 || folded.mean < 0 || folded.variance < 0) return SDLF_OK;
    sdlf_operation fused = step->operation;
    sdlf_dtype dtype = plan->options.dtype;
    sdlf_status status = plan_new_tensor(plan, BUFFER_DERIVED, dtype, fused.in[1].shape, &fused.in[1]);
    if (status == SDLF_OK)
        status = plan_new_tensor(plan, BUFFER_DERIVED, dtype, sdlf_shape(fused.in[1].shape.dim[0]), &fused.in[2]);
    if (status != SDLF_OK) return status;
    sdlf_shape shape = fused.out[0].shape;
    fused.out[0] = sdlf_tensor_reshape(norm->out[0], shape);
    *sdlf_operation_epilogue(&fused) = norm->batch_norm.activation;
    if (!sdlf_calculator_supports(step->calculator, &fused)) return SDLF_OK;
    plan_fold *folds = realloc(plan->folds, (size_t)(plan->fold_count + 1) * sizeof *folds);
    if (folds == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan->folds = folds;
    folded.folded_weight = fused.in[1].buffer;
    folded.folded_bias = fused.in[2].buffer;
    plan->buffers[folded.folded_weight].fold = plan->fold_count;
    plan->buffers[folded.folded_bias].fold = plan->fold_count;
    plan->folds[plan->fold_count++] = folded;
    plan->steps[reader].dead = true;
    plan_join_groups(plan, step->node, plan->steps[reader].node);
    return plan_replace_operation(plan, i, &fused);
}

sdlf_status plan_fold_batch_norm(sdlf_plan *plan)
{
    if (plan->options.mode != SDLF_INFER) return SDLF_OK;
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->dead || !can_fold_into(plan, &step->operation)) continue;
        int buffer = step->operation.out[0].buffer;
        if (plan->buffers[buffer].kind != BUFFER_ARENA || plan_count_readers(plan, buffer) != 1) continue;
        int reader = plan_next_reader(plan, buffer, i);
        const sdlf_operation *norm = &plan->steps[reader].operation;
        if (norm->kind != SDLF_BATCH_NORM2D_INFER || plan->steps[reader].calculator != step->calculator) continue;
        /* reshaped in between, its channels would not be the rows of the weights */
        if (!sdlf_shape_equal(norm->in[0].shape, step->operation.out[0].shape)) continue;
        sdlf_status status = fold(plan, i, reader);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}
