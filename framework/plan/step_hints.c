/* SPDX-License-Identifier: MIT */
/* Hints for inference steps (`ahead`, `before`), set once their operands have addresses. */
#include "framework/plan/plan_internal.h"
#include "framework/plan/running.h"

/* The byte range of an operand, from its lowest byte to past its highest: strides may be negative. Empty for an operand
 * without elements. */
static void find_extent(const sdlf_tensor *tensor, uintptr_t *begin, uintptr_t *end)
{
    int64_t size = (int64_t)sdlf_dtype_size(tensor->dtype), below = 0, above = size;
    *begin = *end = (uintptr_t)tensor->data;
    if (sdlf_shape_count(tensor->shape) <= 0) return;
    for (int axis = 0; axis < tensor->shape.rank; axis++) {
        int64_t reach = (tensor->shape.dim[axis] - 1) * tensor->stride[axis] * size;
        *(reach < 0 ? &below : &above) += reach < 0 ? -reach : reach;
    }
    *begin -= (uintptr_t)below;
    *end += (uintptr_t)above;
}

/* True if they may share a byte. Sparse matrices are not examined. */
static bool may_overlap(const sdlf_tensor *a, const sdlf_tensor *b)
{
    uintptr_t begin[2], end[2];
    if (!sdlf_tensor_present(a) || !sdlf_tensor_present(b)) return false;
    if (a->layout != SDLF_DENSE || b->layout != SDLF_DENSE) return true;
    find_extent(a, &begin[0], &end[0]);
    find_extent(b, &begin[1], &end[1]);
    return begin[0] < end[1] && begin[1] < end[0];
}

/* True if one writes what the other reads or writes. */
static bool conflicts_with(const sdlf_operation *writer, const sdlf_operation *other)
{
    for (int i = 0; i <= SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *written = i < SDLF_MAX_OUTPUTS ? &writer->out[i] : &writer->workspace;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
            if (may_overlap(written, &other->in[j])) return true;
        }
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            if (may_overlap(written, &other->out[j])) return true;
        }
        if (may_overlap(written, &other->workspace)) return true;
    }
    return false;
}

/* For consecutive steps on one calculator: true if their order does not matter. */
static bool are_independent(const plan_step *a, const plan_step *b)
{
    if (a->phase == SDLF_PHASE_COPY || b->phase == SDLF_PHASE_COPY || a->calculator != b->calculator) return false;
    return !conflicts_with(&a->operation, &b->operation) && !conflicts_with(&b->operation, &a->operation);
}

void plan_give_step_hints(sdlf_plan *plan)
{
    if (plan->options.mode != SDLF_INFER) return;
    const plan_step *next = NULL; /* the next step with prepacked weights */
    for (int i = plan->forward_steps - 1; i >= 0; i--) {
        plan_step *step = &plan->steps[i];
        if (next != NULL && next->calculator == step->calculator) step->operation.ahead = next->operation.prepared;
        if (sdlf_tensor_present(&step->operation.prepared)) next = step;
        if (i > 0 && are_independent(&plan->steps[i - 1], step)) step->operation.before = &plan->steps[i - 1].operation;
    }
}
