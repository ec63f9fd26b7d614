/* SPDX-License-Identifier: MIT */
/* attention: which operations the kernels support, and their arguments. */
#include "calculators/cuda/attention/attention.h"

#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/gemm/convert_operands.h"

#include <stdint.h>

static attention_operand operand_of(const sdlf_tensor *x)
{
    attention_operand o = {.sample = x->stride[0], .head = x->stride[1]};
    o.first = (attention_rows){
        .data = x->data, .stride = x->stride[2], .rows = (int)x->shape.dim[2], .columns = (int)x->shape.dim[3]};
    int64_t together = 16 / (int64_t)sdlf_dtype_size(x->dtype);
    o.first.aligned = (uintptr_t)x->data % 16 == 0 && x->shape.dim[3] % together == 0 && x->stride[2] % together == 0 &&
                      x->stride[1] % together == 0 && x->stride[0] % together == 0;
    return o;
}

attention_arguments attention_arguments_of(const sdlf_operation *operation)
{
    const sdlf_tensor *in = operation->in, *out = operation->out, *mask = &in[3];
    bool forward = operation->kind == SDLF_ATTENTION_FORWARD;
    attention_arguments p = {.q = operand_of(&in[0]), .k = operand_of(&in[1]), .v = operand_of(&in[2])};
    p.samples = (int)in[0].shape.dim[0], p.heads = (int)in[0].shape.dim[1], p.groups = (int)in[1].shape.dim[1];
    p.queries = (int)in[0].shape.dim[2], p.keys = (int)in[1].shape.dim[2];
    p.scale = (float)operation->attention.scale, p.causal = operation->attention.causal;
    if (sdlf_tensor_present(mask)) {
        p.mask = mask->data, p.mask_is_bool = mask->dtype == SDLF_BOOL, p.mask_hides = operation->attention.mask_hides;
        if (forward && sdlf_tensor_present(&in[4])) p.unseen = in[4].data;
        for (int axis = 0; axis < 4; axis++) p.mask_stride[axis] = mask->stride[axis];
    }
    p.y = operand_of(forward ? &out[0] : &in[4]);
    p.max = forward ? (sdlf_tensor_present(&out[1]) ? out[1].data : NULL) : in[5].data;
    p.sum = forward ? (sdlf_tensor_present(&out[2]) ? out[2].data : NULL) : in[6].data;
    if (forward) return p;
    p.dy = operand_of(&in[7]);
    p.dq = operand_of(&out[0]), p.dk = operand_of(&out[1]), p.dv = operand_of(&out[2]);
    p.delta = operation->workspace.data;
    return p;
}

bool attention_suits_wgmma(const cuda_calculator *calculator, const attention_arguments *p, sdlf_dtype dtype)
{
    const bool halves = dtype != SDLF_FLOAT32 || cuda_has_operands16(calculator->math);
    const attention_operand *const operands[] = {&p->q, &p->k, &p->v, &p->y, &p->dy, &p->dq, &p->dk, &p->dv};
    for (int i = 0; i < 8; i++) /* those of the backward pass alone have no columns in the forward pass */
        if (operands[i]->first.columns > 0 && !operands[i]->first.aligned) return false;
    return engine_is_there(calculator) && halves && p->mask == NULL && p->scale > 0;
}

int attention_depth(const sdlf_operation *operation)
{
    int64_t depth = operation->in[0].shape.dim[3], width = operation->in[2].shape.dim[3];
    int64_t most = depth > width ? depth : width;
    return most > ATTENTION_MOST_DEPTH ? ATTENTION_MOST_DEPTH + 1 : (int)most;
}

bool attention_supports_cuda(const sdlf_calculator *base, const sdlf_operation *operation)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const int64_t *q = operation->in[0].shape.dim;
    int depth = attention_depth(operation);
    if (operation->in[0].dtype == SDLF_FLOAT64 || depth > ATTENTION_MOST_DEPTH || !cuda_has_tensor_cores(calculator))
        return false;
    /* block counts are int; heads are along a grid axis, which is limited to 65,535 */
    if (q[0] * q[1] > 65535 || q[2] > INT32_MAX / 2 || operation->in[1].shape.dim[2] > INT32_MAX / 2) return false;
    const attention_arguments arguments = attention_arguments_of(operation);
    if (attention_suits_wgmma(calculator, &arguments, operation->in[0].dtype)) return true;
    if (operation->kind != SDLF_ATTENTION_FORWARD && operation->in[0].dtype != SDLF_FLOAT32) return false;
    int needed = operation->kind == SDLF_ATTENTION_FORWARD
                     ? attention_forward_shared(operation->in[0].dtype, calculator->math, depth)
                     : attention_backward_shared(calculator->math, depth);
    return needed <= calculator->shared_most;
}

int64_t attention_backward_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const int64_t *q = operation->in[0].shape.dim;
    return q[0] * q[1] * q[2] * 2 * (int64_t)sizeof(float);
}
