/* SPDX-License-Identifier: MIT */
/* Fuses a ReLU into the max pooling after it; in training the pooling saves a mask for its backward pass instead of its
 * input: one byte per pooled element.
 *
 *   forward   activation_forward a -> r;  max_pool2d_forward r -> y
 *   becomes   max_pool2d_forward a -> y, mask
 *   backward  max_pool2d_backward r, y, dy -> dr;  activation_backward r, dr -> da
 *   becomes   max_pool2d_backward dy, mask -> da
 *
 * It prepares fusions that calculators declare: if these then take the pool and its backward pass, it is applied, and
 * otherwise nothing changes. */
#include "framework/plan/fuse/declared.h"

typedef struct pools {
    int relu, pool;           /* steps */
    int pool_back, relu_back; /* -1: there is no backward pass */
} pools;

static bool is_kind(const sdlf_plan *plan, int step, sdlf_operation_kind kind)
{
    return step >= 0 && plan->steps[step].operation.kind == kind;
}

static bool is_relu(const sdlf_plan *plan, int step, sdlf_operation_kind kind)
{
    return is_kind(plan, step, kind) && plan->steps[step].operation.activation.function == SDLF_RELU;
}

/* Matches the ReLU at `step` and all readers of its output: a pool, and in training the gradients of both. */
static bool find(const sdlf_plan *plan, int step, pools *found)
{
    const plan_step *relu = &plan->steps[step];
    if (relu->dead || !is_relu(plan, step, SDLF_ACTIVATION_FORWARD)) return false;
    const sdlf_tensor *r = &relu->operation.out[0];
    if (plan->buffers[r->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, r)) return false;
    const int pool = plan_next_reader(plan, r->buffer, step), readers = plan_count_readers(plan, r->buffer);
    if (plan_count_writers(plan, r->buffer) != 1 || !is_kind(plan, pool, SDLF_MAX_POOL2D_FORWARD)) return false;
    if (plan->steps[pool].calculator != relu->calculator) return false;
    if (!sdlf_shape_equal(plan->steps[pool].operation.in[0].shape, relu->operation.in[0].shape)) return false;
    *found = (pools){step, pool, -1, -1};
    if (readers == 1) return true;
    const int pool_back = plan_next_reader(plan, r->buffer, pool);
    if (readers != 3 || !is_kind(plan, pool_back, SDLF_MAX_POOL2D_BACKWARD)) return false;
    const sdlf_tensor *dr = &plan->steps[pool_back].operation.out[0];
    const int relu_back = plan_next_reader(plan, r->buffer, pool_back);
    if (!is_relu(plan, relu_back, SDLF_ACTIVATION_BACKWARD) || !plan_is_between(plan, dr)) return false;
    found->pool_back = pool_back;
    found->relu_back = relu_back;
    return plan_next_reader(plan, dr->buffer, pool_back) == relu_back &&
           plan->steps[pool_back].calculator == plan->steps[relu_back].calculator;
}

/* The pool with its ReLU, and its backward pass. False if its windows support no mask. */
static bool rectify(const sdlf_plan *plan, const pools *p, sdlf_operation *forward, sdlf_operation *backward)
{
    const sdlf_operation *pool = &plan->steps[p->pool].operation;
    *forward = *pool;
    forward->in[0] = plan->steps[p->relu].operation.in[0];
    forward->pool2d.activation.function = SDLF_RELU;
    if (p->pool_back < 0) return true;
    forward->out[1] = sdlf_tensor_view(SDLF_UINT8, pool->out[0].shape, NULL);
    *backward = plan->steps[p->pool_back].operation;
    backward->in[0] = backward->in[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    backward->in[3] = forward->out[1];
    backward->out[0] = plan->steps[p->relu_back].operation.out[0];
    return sdlf_operation_check(forward) == SDLF_OK && sdlf_operation_check(backward) == SDLF_OK;
}

static void set_relus(sdlf_plan *plan, const pools *p, bool dead)
{
    plan->steps[p->relu].dead = dead;
    if (p->relu_back >= 0) plan->steps[p->relu_back].dead = dead;
}

static sdlf_status put(sdlf_plan *plan, const pools *p, const sdlf_operation *forward, const sdlf_operation *backward)
{
    sdlf_status status = plan_replace_operation(plan, p->pool, forward);
    if (status != SDLF_OK || p->pool_back < 0) return status;
    return plan_replace_operation(plan, p->pool_back, backward);
}

static sdlf_status fuse(sdlf_plan *plan, const pools *p)
{
    const bool trains = p->pool_back >= 0;
    sdlf_operation forward, backward, old_forward = plan->steps[p->pool].operation, old_backward;
    fusion_match first, second;
    sdlf_status status = SDLF_OK;
    if (trains) old_backward = plan->steps[p->pool_back].operation;
    if (!rectify(plan, p, &forward, &backward)) return SDLF_OK;
    if (trains) status = plan_new_tensor(plan, BUFFER_ARENA, SDLF_UINT8, forward.out[1].shape, &forward.out[1]);
    if (trains) backward.in[3] = forward.out[1];
    set_relus(plan, p, true);
    if (status == SDLF_OK) status = put(plan, p, &forward, &backward);
    if (status != SDLF_OK) return status;
    if (!plan_match_fusion(plan, p->pool, &first) || (trains && !plan_match_fusion(plan, p->pool_back, &second))) {
        set_relus(plan, p, false);
        return put(plan, p, &old_forward, &old_backward);
    }
    plan_join_groups(plan, plan->steps[p->pool].node, plan->steps[p->relu].node);
    if (trains) status = plan_take_fusion(plan, &second);
    return status == SDLF_OK ? plan_take_fusion(plan, &first) : status;
}

sdlf_status plan_fuse_rectified_pools(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        pools found;
        if (find(plan, i, &found)) status = fuse(plan, &found);
    }
    return status;
}
