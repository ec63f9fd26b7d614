/* SPDX-License-Identifier: MIT */
/* Launch fusion: which operations share a launch. These are operations whose kernels are so short that launch overhead dominates, and
 * convolutions that can compute the statistics of the batch normalisation that follows. */
#include "calculators/cuda/launch_fusion.h"

#include "calculators/augmentation.h"
#include "calculators/cuda/nhwc/nhwc.h"

/* True if `to` is the tensor that `from` has written. */
static bool is_same(const sdlf_tensor *from, const sdlf_tensor *to)
{
    return sdlf_tensor_present(from) && sdlf_tensor_present(to) && from->data == to->data;
}

static bool draws_batch(const sdlf_operation *next, const sdlf_operation *gather)
{
    return next->kind == SDLF_NEXT_BATCH && gather->kind == SDLF_GATHER_BATCH &&
           is_same(&next->out[1], &gather->in[1]) && gather->in[0].dtype == SDLF_UINT8 &&
           gather->out[0].dtype == SDLF_FLOAT32 && next->out[1].shape.dim[0] == gather->out[0].shape.dim[0] &&
           next->out[2].dtype == SDLF_FLOAT32 && sdlf_tensor_count(&gather->out[0]) > 0 &&
           sdlf_tensor_count(&gather->out[0]) <= INT32_MAX / 2 && gather->gather.channels.count == 0 &&
           !sdlf_augmentation_wanted(&gather->gather.augment) && !sdlf_auto_augment_wanted(&gather->gather.automatic);
}

/* True if the two updates differ only in the parameter and the decay, or the two checks only in the tensor. */
static bool are_alike(const sdlf_operation *a, const sdlf_operation *b)
{
    if (a->kind != b->kind || a->out[0].dtype != b->out[0].dtype) return false;
    for (int i = 1; i < 4; i++) {
        if (a->in[i].data != b->in[i].data) return false;
    }
    switch (a->kind) {
    case SDLF_CHECK_FINITE: return a->out[0].data == b->out[0].data;
    case SDLF_SGD_UPDATE: return a->sgd.momentum == b->sgd.momentum && a->sgd.nesterov == b->sgd.nesterov;
    case SDLF_ADAM_UPDATE:
        return a->adam.beta1 == b->adam.beta1 && a->adam.beta2 == b->adam.beta2 && a->adam.epsilon == b->adam.epsilon &&
               a->adam.decoupled == b->adam.decoupled;
    case SDLF_RMSPROP_UPDATE:
        return a->rmsprop.rho == b->rmsprop.rho && a->rmsprop.epsilon == b->rmsprop.epsilon &&
               a->rmsprop.momentum == b->rmsprop.momentum;
    default: return false;
    }
}

/* Process several tensors in one launch; *done is 0 if there are not at least two. */
static sdlf_status run_many(sdlf_calculator *base, const sdlf_operation *const *operations, int count, int *done)
{
    int conversions = cuda_count_conversions(operations, count), updates = 1;
    while (updates < count && are_alike(operations[0], operations[updates])) updates++;
    *done = conversions > updates ? conversions : updates > 1 ? updates : 0;
    if (*done < 2) *done = 0;
    if (*done == 0) return SDLF_OK;
    if (conversions > updates) return cuda_convert_many(base, operations, *done);
    bool checks = operations[0]->kind == SDLF_CHECK_FINITE;
    return (checks ? cuda_check_finite_many : cuda_update_many)(base, operations, *done);
}

sdlf_status run_fused_cuda(sdlf_calculator *base, const sdlf_operation *const *operations, int count, int *done)
{
    *done = 0;
    if (count < 2) return SDLF_OK;
    const bool draws = draws_batch(operations[0], operations[1]);
    if (draws || conv2d_batch_norm2d_is_nhwc(operations[0], operations[1])) {
        *done = 2;
        return (draws ? cuda_draw_batch : conv2d_batch_norm2d_nhwc)(base, operations[0], operations[1]);
    }
    return run_many(base, operations, count, done);
}
