/* What is known of every kind of operation: the table of classes, the common part of a check, costs. */
#include <sdlf/operation.h>

#include "framework/operations/operations.h"

#include <string.h>

static const sdlf_operation_class *const classes[SDLF_OPERATION_COUNT] = {
    NULL,
};

const sdlf_operation_class *sdlf_operation_class_of(sdlf_operation_kind kind)
{
    return (unsigned)kind < SDLF_OPERATION_COUNT ? classes[kind] : NULL;
}

/* Operands: `declared` is the class's list (it ends with a NULL name), `found` the operation's. */
static sdlf_status check_operands(const char *operation, const sdlf_operand *declared, const sdlf_tensor *found,
                                  int limit)
{
    bool past_end = false;
    for (int i = 0; i < limit; i++) {
        past_end = past_end || !declared[i].name;
        if (past_end) {
            if (sdlf_tensor_present(&found[i])) {
                return sdlf_fail(SDLF_ERROR_ARGUMENT,
                                 "%s: operand %d is bound, but the operation has only %d of its sort", operation, i, i);
            }
            continue;
        }
        if (!sdlf_tensor_present(&found[i])) {
            if (declared[i].optional) continue;
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: operand '%s' is missing", operation, declared[i].name);
        }
        if (sdlf_dtype_size(found[i].dtype) == 0) {
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: operand '%s' has dtype %d, which does not exist", operation,
                             declared[i].name, (int)found[i].dtype);
        }
        if (sdlf_tensor_bytes(&found[i]) < 0) {
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s: operand '%s' of shape %s has a negative side or is too large",
                             operation, declared[i].name, sdlf_shape_print(found[i].shape).text);
        }
    }
    return SDLF_OK;
}

sdlf_status sdlf_operation_check(const sdlf_operation *operation)
{
    const sdlf_operation_class *type = sdlf_operation_class_of(operation->kind);
    if (!type) return sdlf_fail(SDLF_ERROR_ARGUMENT, "%d is no kind of operation", (int)operation->kind);
    sdlf_status status = check_operands(type->name, type->in, operation->in, SDLF_MAX_INPUTS);
    if (status == SDLF_OK) status = check_operands(type->name, type->out, operation->out, SDLF_MAX_OUTPUTS);
    if (status != SDLF_OK) return status;
    return sdlf_fail_context(type->check(operation), "%s", type->name);
}

/* Operands are moved once; updated ones are read and written. */
sdlf_cost sdlf_operation_cost(const sdlf_operation *operation)
{
    sdlf_cost cost = {0};
    const sdlf_operation_class *type = sdlf_operation_class_of(operation->kind);
    if (!type) return cost;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) cost.bytes += sdlf_tensor_bytes(&operation->in[i]);
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        cost.bytes += sdlf_tensor_bytes(&operation->out[i]) * (type->out[i].updated ? 2 : 1);
    }
    cost.flops = type->flops ? type->flops(operation) : sdlf_tensor_count(&operation->out[0]);
    return cost;
}

int64_t sdlf_window2d_output(const sdlf_window2d *window, int axis, int64_t input)
{
    int64_t reach = (int64_t)window->dilation[axis] * (window->size[axis] - 1) + 1;
    int64_t padded = input + window->padding_before[axis] + window->padding_after[axis];
    return padded < reach ? 0 : (padded - reach) / window->stride[axis] + 1;
}
