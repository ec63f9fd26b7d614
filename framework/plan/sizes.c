/* SPDX-License-Identifier: MIT */
/* Adapting a plan to other sizes: if the steps are the same, only shapes, strides and offsets of their operands change,
 * and the memory is kept. */
#include "framework/plan/passes.h"

#include <string.h>

/* ---- sizes, in order ---- */

static void visit_tensor(sdlf_tensor *tensor, plan_size_visitor *visit, void *user)
{
    if (!sdlf_tensor_present(tensor) || tensor->layout != SDLF_DENSE) return;
    for (int axis = 0; axis < tensor->shape.rank; axis++) visit(user, &tensor->shape.dim[axis]);
    for (int axis = 0; axis < tensor->shape.rank; axis++) visit(user, &tensor->stride[axis]);
    visit(user, &tensor->offset);
}

void plan_visit_sizes(sdlf_plan *plan, plan_size_visitor *visit, void *user)
{
    for (int i = 0; i < plan->step_count; i++) {
        sdlf_operation *op = &plan->steps[i].operation;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) visit_tensor(&op->in[j], visit, user);
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) visit_tensor(&op->out[j], visit, user);
    }
    for (int i = 0; i < plan->value_count; i++)
        if (plan->nodes[plan->values[i].node].live) visit_tensor(&plan->values[i].tensor, visit, user);
}

/* ---- likeness ---- */

static bool alike(const sdlf_tensor *a, const sdlf_tensor *b)
{
    return a->dtype == b->dtype && a->buffer == b->buffer && a->shape.rank == b->shape.rank && a->layout == b->layout;
}

/* Options are compared byte by byte, including the rest of their union, which the operation's creator has zeroed (compilers do so,
 * see cmake/SdlfOptions.cmake). If it has not, equal steps count as different, which costs only time or memory. */
enum { OPTIONS = offsetof(sdlf_operation, fill) };

static bool steps_alike(const plan_step *a, const plan_step *b, bool options)
{
    const sdlf_operation *x = &a->operation, *y = &b->operation;
    bool same = x->kind == y->kind && x->algorithm == y->algorithm && a->calculator == b->calculator;
    for (int j = 0; j < SDLF_MAX_INPUTS && same; j++) same = alike(&x->in[j], &y->in[j]);
    for (int j = 0; j < SDLF_MAX_OUTPUTS && same; j++) same = alike(&x->out[j], &y->out[j]);
    same = same && sdlf_tensor_present(&x->prepared) == sdlf_tensor_present(&y->prepared);
    if (same && sdlf_tensor_present(&x->prepared)) /* another packed form has another size */
        same = sdlf_tensor_bytes(&x->prepared) == sdlf_tensor_bytes(&y->prepared);
    return same && (!options || memcmp((const char *)x + OPTIONS, (const char *)y + OPTIONS, sizeof *x - OPTIONS) == 0);
}

bool plan_is_alike(const sdlf_plan *a, const sdlf_plan *b, bool options)
{
    bool same = a->step_count == b->step_count && a->node_count == b->node_count && a->value_count == b->value_count;
    for (int i = 0; i < a->step_count && same; i++) same = steps_alike(&a->steps[i], &b->steps[i], options);
    for (int i = 0; i < a->value_count && same; i++)
        same = a->nodes[a->values[i].node].live == b->nodes[b->values[i].node].live &&
               a->values[i].tensor.shape.rank == b->values[i].tensor.shape.rank;
    return same;
}

void plan_take_options(sdlf_plan *plan, const sdlf_plan *from)
{
    for (int i = 0; i < plan->step_count; i++)
        memcpy((char *)&plan->steps[i].operation + OPTIONS, (const char *)&from->steps[i].operation + OPTIONS,
               sizeof(sdlf_operation) - OPTIONS);
}

/* ---- after the sizes have changed ---- */

static void rebind(const sdlf_plan *plan, sdlf_tensor *tensor)
{
    if (sdlf_tensor_present(tensor) && plan->buffers[tensor->buffer].memory != NULL)
        *tensor = plan_bound(plan, *tensor);
}

sdlf_status plan_settle_sizes(sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        sdlf_operation *op = &step->operation;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) rebind(plan, &op->in[j]);
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) rebind(plan, &op->out[j]);
        if (plan_step_moves(step)) continue;
        int64_t wanted = sdlf_calculator_workspace(step->calculator, op);
        if (wanted > sdlf_tensor_bytes(&op->workspace))
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                             "layer '%s': %s needs more scratch memory than at the state's full capacity",
                             plan->nodes[step->node].layer->name, sdlf_operation_type(op)->name);
    }
    return SDLF_OK;
}

static sdlf_status fail_moved(const sdlf_plan *plan, int parameter)
{
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "parameter %s changes from step to step, and is kept in another form",
                     plan->model->parameters[parameter].name);
}

sdlf_status plan_put_values(sdlf_plan *plan, int parameter, const float *values, int64_t count)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        int part[PLAN_FOLDED];
        for (int j = plan_source_parameters(plan, buffer, part) - 1; j >= 0; j--)
            if (buffer->kind == BUFFER_DERIVED && part[j] == parameter) return fail_moved(plan, parameter);
        if (buffer->kind != BUFFER_PARAMETER || buffer->parameter != parameter || buffer->first_use < 0) continue;
        if (buffer->raw || buffer->memory == NULL || count * (int64_t)sdlf_dtype_size(buffer->dtype) > buffer->bytes)
            return fail_moved(plan, parameter);
        sdlf_convert(buffer->dtype, buffer->memory, SDLF_FLOAT32, values, count);
    }
    return SDLF_OK;
}
