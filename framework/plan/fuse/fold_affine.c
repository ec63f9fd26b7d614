/* SPDX-License-Identifier: MIT */
/* Inference: folds a per-channel affine function after a convolution or a fully connected layer into its weights
 * and bias: batch normalisation; a multiplication by a scalar; or a multiplication by (for example a layer scale)
 * or an addition of a per-channel parameter, also after a permuting copy. w' = w s, b' = (b - mean) s + shift, s =
 * factor scale / sqrt(variance + epsilon). The new ones are computed in double whenever the plan loads its
 * parameters. */
#include "framework/plan/passes.h"

#include <math.h>

int plan_parameter_of(const sdlf_plan *plan, const sdlf_tensor *tensor, int64_t count)
{
    if (!sdlf_tensor_present(tensor) || tensor->offset != 0) return -1;
    const plan_buffer *buffer = &plan->buffers[tensor->buffer];
    if (buffer->kind != BUFFER_PARAMETER || !buffer->constant) return -1;
    return sdlf_shape_count(plan->model->parameters[buffer->parameter].spec.shape) == count ? buffer->parameter : -1;
}

static int weight_of(const sdlf_plan *plan, const sdlf_operation *product)
{
    const sdlf_tensor *w = &product->in[1];
    return sdlf_tensor_is_contiguous(w) ? plan_parameter_of(plan, w, sdlf_tensor_count(w)) : -1;
}

static int64_t channels_of(const sdlf_operation *product)
{
    return product->in[1].shape.dim[0];
}

static bool can_fold_into(const sdlf_plan *plan, const sdlf_operation *op)
{
    bool linear = op->kind == SDLF_GEMM && op->gemm.transpose_b && !op->gemm.transpose_a && op->gemm.alpha == 1;
    if (op->kind != SDLF_CONV2D_FORWARD && !linear) return false;
    if (sdlf_operation_epilogue((sdlf_operation *)op)->function != SDLF_IDENTITY) return false;
    if (sdlf_tensor_present(&op->in[3]) || weight_of(plan, op) < 0) return false;
    return !sdlf_tensor_present(&op->in[2]) || plan_parameter_of(plan, &op->in[2], channels_of(op)) >= 0;
}

/* ---- the function ---- */

static bool take_norm(const sdlf_plan *plan, const sdlf_operation *product, const sdlf_operation *norm, plan_fold *fold)
{
    int *const part[] = {&fold->scale, &fold->shift, &fold->mean, &fold->variance};
    for (int i = 0; i < 4; i++) *part[i] = plan_parameter_of(plan, &norm->in[1 + i], channels_of(product));
    fold->epsilon = norm->batch_norm.epsilon;
    /* with a reshape in between, its channels would not be the rows of the weights */
    return sdlf_shape_equal(norm->in[0].shape, product->out[0].shape) && fold->scale >= 0 && fold->shift >= 0 &&
           fold->mean >= 0 && fold->variance >= 0;
}

/* True if the parameter has one value per channel of `product`, with `x` as strided as the product's output. */
static bool goes_by_channel(const sdlf_operation *product, const sdlf_tensor *x, const sdlf_tensor *parameter)
{
    const sdlf_tensor *made = &product->out[0];
    int channel = product->kind == SDLF_GEMM ? made->shape.rank - 1 : 1, axis = -1;
    if (parameter->offset != 0 || !sdlf_shape_equal(parameter->shape, x->shape)) return false;
    for (int i = 0; i < x->shape.rank; i++) {
        if (x->shape.dim[i] == 1 || parameter->stride[i] == 0) continue;
        if (axis >= 0) return false;
        axis = i;
    }
    return axis >= 0 && parameter->stride[axis] == 1 && x->shape.dim[axis] == made->shape.dim[channel] &&
           x->stride[axis] == made->stride[channel];
}

/* Of the product's output, or of a copy of it. */
static bool take_binary(const sdlf_plan *plan, const sdlf_operation *product, const sdlf_operation *copy,
                        const sdlf_operation *op, plan_fold *fold)
{
    const int buffer = copy != NULL ? copy->out[0].buffer : product->out[0].buffer;
    const int i = sdlf_tensor_present(&op->in[0]) && op->in[0].buffer == buffer ? 0 : 1;
    const sdlf_tensor *x = &op->in[i], *other = &op->in[1 - i];
    bool number = !sdlf_tensor_present(other), divides = op->binary.function == SDLF_BINARY_DIVIDE;
    bool multiplies = op->binary.function == SDLF_BINARY_MULTIPLY || (divides && number && i == 0);
    if (!multiplies && (op->binary.function != SDLF_BINARY_ADD || number)) return false;
    if (x->offset != 0 || x->buffer != buffer || !sdlf_tensor_is_contiguous(x) ||
        !sdlf_tensor_is_contiguous(&op->out[0]) || !sdlf_shape_equal(x->shape, op->out[0].shape) ||
        (copy != NULL && !sdlf_shape_equal(x->shape, copy->out[0].shape)))
        return false;
    if (number) {
        fold->factor = divides ? 1 / op->binary.scalar : op->binary.scalar;
        return fabs(fold->factor) > 1e-6 && fabs(fold->factor) < 1e6; /* keeps the weights from overflowing */
    }
    const int parameter = plan_parameter_of(plan, other, channels_of(product));
    *(multiplies ? &fold->scale : &fold->shift) = parameter;
    return parameter >= 0 && goes_by_channel(product, copy != NULL ? &copy->in[0] : x, other);
}

/* True for a copy of all of the product's output with permuted axes. */
static bool is_permutation(const sdlf_plan *plan, const sdlf_operation *op)
{
    return op->kind == SDLF_COPY && op->in[0].dtype == op->out[0].dtype &&
           sdlf_shape_equal(op->in[0].shape, op->out[0].shape) && sdlf_tensor_is_contiguous(&op->out[0]) &&
           plan_permutes_buffer(plan, &op->in[0]);
}

/* ---- the pass ---- */

/* Gives the product of step `i` new weights and a new bias. */
static sdlf_status fold_into(sdlf_plan *plan, int i, const sdlf_tensor *result, sdlf_activation activation,
                             plan_fold *fold)
{
    sdlf_operation fused = plan->steps[i].operation;
    fold->weight = weight_of(plan, &fused);
    fold->bias = plan_parameter_of(plan, &fused.in[2], channels_of(&fused));
    fold->channels = channels_of(&fused);
    sdlf_status status = plan_derive_weights(plan, &fused, fused.in[1].shape);
    if (status != SDLF_OK) return status;
    fused.out[0] = sdlf_tensor_reshape(*result, fused.out[0].shape);
    *sdlf_operation_epilogue(&fused) = activation;
    if (!sdlf_calculator_supports(plan->steps[i].calculator, &fused)) return SDLF_OK;
    status = plan_add_fold(plan, fold, &fused);
    return status == SDLF_OK ? plan_replace_operation(plan, i, &fused) : status;
}

/* kind: of the affine function. */
static sdlf_status fold_behind(sdlf_plan *plan, int i, sdlf_operation_kind kind)
{
    const sdlf_operation *product = &plan->steps[i].operation;
    int copy = -1, reader = plan_sole_reader(plan, i), before = plan->fold_count;
    if (reader >= 0 && kind == SDLF_BINARY && is_permutation(plan, &plan->steps[reader].operation)) {
        copy = reader;
        reader = plan_sole_reader(plan, copy);
    }
    if (reader < 0 || plan->steps[reader].operation.kind != kind) return SDLF_OK;
    plan_fold fold = {.scale = -1, .shift = -1, .mean = -1, .variance = -1, .factor = 1};
    sdlf_operation function = plan->steps[reader].operation, copied = plan->steps[copy >= 0 ? copy : i].operation;
    bool norm = kind == SDLF_BATCH_NORM2D_INFER;
    if (norm ? !take_norm(plan, product, &function, &fold)
             : !take_binary(plan, product, copy >= 0 ? &copied : NULL, &function, &fold))
        return SDLF_OK;
    sdlf_activation none = {.function = SDLF_IDENTITY};
    sdlf_status status = fold_into(plan, i, copy >= 0 ? &product->out[0] : &function.out[0],
                                   norm ? function.batch_norm.activation : none, &fold);
    if (status != SDLF_OK || plan->fold_count == before) return status;
    plan->steps[reader].dead = true;
    plan_join_groups(plan, plan->steps[i].node, plan->steps[reader].node);
    if (copy < 0) return SDLF_OK;
    copied.out[0] = function.out[0];
    plan_join_groups(plan, plan->steps[i].node, plan->steps[copy].node);
    return plan_replace_operation(plan, copy, &copied);
}

sdlf_status plan_fold_norms(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; plan->options.mode == SDLF_INFER && i < plan->step_count && status == SDLF_OK; i++)
        if (!plan->steps[i].dead && can_fold_into(plan, &plan->steps[i].operation))
            status = fold_behind(plan, i, SDLF_BATCH_NORM2D_INFER);
    return status;
}

/* Not for weights with other readers, which would be stored twice; nor with states, as their length may change scalars or values. */
sdlf_status plan_fold_scales(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.state_count > 0) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        if (!plan->steps[i].dead && can_fold_into(plan, op) && plan_count_readers(plan, op->in[1].buffer) == 1)
            status = fold_behind(plan, i, SDLF_BINARY);
    }
    return status;
}
