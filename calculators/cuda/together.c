/* Which operations the CUDA calculator puts together: those whose kernels do so little that starting them is most of it. */
#include "calculators/cuda/together.h"

#include "calculators/augmentation.h"
#include "calculators/cuda/gemm/backward_sgd.h"

/* Is `to` what `from` has written? */
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
           !sdlf_augmentation_wanted(&gather->gather.augment);
}

/* Its first layer, which the batch goes into. */
static bool is_first_layer(const sdlf_operation *gather, const sdlf_operation *op)
{
    return op->kind == SDLF_CONV2D_RELU_MAX_POOL_FORWARD && is_same(&gather->out[0], &op->in[0]);
}

/* The first layer's backward pass, of which only dy comes from the sweep before it. */
static bool is_first_layers_end(const sdlf_operation *sweep, const sdlf_operation *op)
{
    return sweep->kind == SDLF_GEMM_BACKWARD_SGD && op->kind == SDLF_CONV2D_RELU_MAX_POOL_BACKWARD_SGD &&
           !sdlf_tensor_present(&op->out[4]) && is_same(&sweep->out[2], &op->in[1]);
}

static bool are_last_layers(const cuda_last_layers *l)
{
    if (l->hidden->kind != SDLF_GEMM || l->product->kind != SDLF_GEMM ||
        l->loss->kind != SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD || l->backward->kind != SDLF_GEMM_BACKWARD_SGD)
        return false;
    const sdlf_tensor *h = &l->hidden->out[0], *w = &l->backward->out[0];
    return is_same(h, &l->product->in[0]) && is_same(&l->product->out[0], &l->loss->in[0]) &&
           is_same(h, &l->backward->in[0]) && is_same(&l->loss->out[3], &l->backward->in[1]) &&
           is_same(w, &l->product->in[1]);
}

/* The hidden layer's own backward pass, of which only dy comes from the last layer's. */
static bool is_hidden_sweep(const cuda_calculator *calculator, const cuda_last_layers *l, const sdlf_operation *op)
{
    return op->kind == SDLF_GEMM_BACKWARD_SGD && is_same(&l->backward->out[2], &op->in[1]) &&
           is_same(&l->hidden->in[0], &op->in[0]) && is_same(&l->hidden->in[1], &op->out[0]) &&
           cuda_sweep_suits(calculator, op);
}

static sdlf_status begin_step(sdlf_calculator *base, const sdlf_operation *const *operations, int count, int *done)
{
    *done = 2;
    sdlf_status status = cuda_draw_batch(base, operations[0], operations[1]);
    if (status != SDLF_OK || count < 3 || !is_first_layer(operations[1], operations[2])) return status;
    *done = 3;
    return cuda_conv2d_pool_forward_early(base, operations[2]);
}

/* The first of `operations` is a sweep that has been launched: what may follow it early. */
static sdlf_status end_step(sdlf_calculator *base, const sdlf_operation *const *operations, int count, int *done)
{
    if (count < 2 || !is_first_layers_end(operations[0], operations[1])) return SDLF_OK;
    ++*done;
    return cuda_conv2d_pool_weights_early(base, operations[1]);
}

/* Do these updates differ in nothing but the parameter and the decay? */
static bool are_alike(const sdlf_operation *a, const sdlf_operation *b)
{
    if (a->kind != b->kind || a->out[0].dtype != b->out[0].dtype) return false;
    for (int i = 1; i < 4; i++) {
        if (a->in[i].data != b->in[i].data) return false;
    }
    switch (a->kind) {
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

/* Several tensors in one launch; *done is 0 where there are no two of them. */
static sdlf_status run_many(sdlf_calculator *base, const sdlf_operation *const *operations, int count, int *done)
{
    int conversions = cuda_count_conversions(operations, count), updates = 1;
    while (updates < count && are_alike(operations[0], operations[updates])) updates++;
    *done = conversions > updates ? conversions : updates > 1 ? updates : 0;
    if (*done < 2) *done = 0;
    if (*done == 0) return SDLF_OK;
    return (conversions > updates ? cuda_convert_many : cuda_update_many)(base, operations, *done);
}

sdlf_status run_together_cuda(sdlf_calculator *base, const sdlf_operation *const *operations, int count, int *done)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    *done = 0;
    if (count >= 2 && draws_batch(operations[0], operations[1])) return begin_step(base, operations, count, done);
    if (count >= 2 && is_first_layers_end(operations[0], operations[1])) {
        *done = 1;
        sdlf_status status = gemm_backward_sgd_cuda(base, operations[0]);
        return status == SDLF_OK ? end_step(base, operations, count, done) : status;
    }
    sdlf_status many = run_many(base, operations, count, done);
    if (many != SDLF_OK || *done > 0 || count < 4) return many;
    const cuda_last_layers last = {operations[0], operations[1], operations[2], operations[3]};
    if (!are_last_layers(&last) || !cuda_last_layers_suit(calculator, &last)) return SDLF_OK;
    cuda_row_parts parts;
    *done = 4;
    sdlf_status status = cuda_gemm_few_rows_parts(base, last.hidden, &parts);
    if (status == SDLF_OK) status = cuda_last_layers_run(base, &last, &parts);
    if (status != SDLF_OK || count < 5 || !is_hidden_sweep(calculator, &last, operations[4])) return status;
    *done = 5;
    status = cuda_sweep_early(base, operations[4]);
    return status == SDLF_OK ? end_step(base, operations + 4, count - 4, done) : status;
}
