/* SPDX-License-Identifier: MIT */
/* Facts about every kind of operation: the table of classes, the common part of a check, costs. */
#include <sdlf/fusion.h>

#include "framework/operand.h"
#include "framework/operations/check.h"
#include "framework/operations/operations.h"
#include "framework/require.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(sizeof(sdlf_operation) == offsetof(sdlf_operation, reserved) + sizeof((sdlf_operation *)0)->reserved,
              "the options of every kind of operation fit into the room that is reserved for them");

static const sdlf_operation_class *const classes[SDLF_OPERATION_COUNT] = {
#define SDLF_OPERATION(kind, class) [kind] = &class,
#include "framework/operations/list.h"
#undef SDLF_OPERATION
};

const sdlf_operation_class *sdlf_operation_class_of(sdlf_operation_kind kind)
{
    return (unsigned)kind < SDLF_OPERATION_COUNT ? classes[kind] : NULL;
}

const sdlf_operation_class *sdlf_operation_type(const sdlf_operation *operation)
{
    if (operation == NULL) return NULL;
    bool fused = operation->kind == SDLF_FUSED && operation->fused.fusion != NULL;
    return fused ? &operation->fused.fusion->type : sdlf_operation_class_of(operation->kind);
}

/* Checks operands: `declared` is the class's list (ended by a NULL name), `found` the operation's. Operands in
 * any_strides may have any strides, those in channels_last must be channels last, and all others row-major; of those in
 * channels_last, the ones in stays_row_major may also be row-major. */
static sdlf_status check_operands(const char *operation, const sdlf_operand *declared, const sdlf_tensor *found,
                                  int limit, unsigned any_strides, unsigned channels_last, unsigned stays_row_major)
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
        if ((found[i].layout == SDLF_CSR) != declared[i].sparse) {
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s: operand '%s' is %s, expected %s", operation, declared[i].name,
                             found[i].layout == SDLF_CSR ? "sparse" : "dense", declared[i].sparse ? "sparse" : "dense");
        }
        if (sdlf_tensor_bytes(&found[i]) < 0) {
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s: operand '%s' of shape %s has a negative side or is too large",
                             operation, declared[i].name, sdlf_shape_print(found[i].shape).text);
        }
        bool last = channels_last >> i & 1;
        if (any_strides >> i & 1) continue;
        if (stays_row_major >> i & 1 && sdlf_tensor_is_contiguous(&found[i])) continue;
        if (last ? !sdlf_tensor_is_channels_last(&found[i]) : !sdlf_tensor_is_contiguous(&found[i])) {
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s: operand '%s' of shape %s has gaps or another order than %s",
                             operation, declared[i].name, sdlf_shape_print(found[i].shape).text,
                             last ? "channels last, which another operand has" : "row-major");
        }
    }
    return SDLF_OK;
}

bool sdlf_operation_is_channels_last(const sdlf_operation *operation)
{
    if (operation == NULL) return false;
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    for (int i = 0; type != NULL && i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *operand = sdlf_operand_at(operation, i);
        if (!(type->channels_last >> i & 1) || !sdlf_tensor_present(operand)) continue;
        if (sdlf_tensor_is_channels_last(operand) && !sdlf_tensor_is_contiguous(operand)) return true;
    }
    return false;
}

bool sdlf_operation_is_mixed(const sdlf_operation *operation)
{
    if (!sdlf_operation_is_channels_last(operation)) return false;
    unsigned operands = sdlf_operation_type(operation)->channels_last;
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *operand = sdlf_operand_at(operation, i);
        if (operands >> i & 1 && sdlf_tensor_present(operand) && !sdlf_tensor_is_channels_last(operand)) return true;
    }
    return false;
}

sdlf_operation sdlf_operation_channels_last(const sdlf_operation *operation)
{
    if (operation == NULL) return (sdlf_operation){0};
    sdlf_operation nhwc = *operation;
    unsigned operands = sdlf_operation_type(operation)->channels_last;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (operands >> i & 1 && sdlf_tensor_present(&nhwc.in[i])) nhwc.in[i] = sdlf_tensor_channels_last(nhwc.in[i]);
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (operands >> (SDLF_MAX_INPUTS + i) & 1 && sdlf_tensor_present(&nhwc.out[i]))
            nhwc.out[i] = sdlf_tensor_channels_last(nhwc.out[i]);
    }
    return nhwc;
}

/* For kinds whose images may be channels last: true if float32 weights are channels last by their strides. (With one
 * row and column the memory order is the same either way, but the strides differ.) */
static bool has_stored_weights(const sdlf_operation *operation, const sdlf_operation_class *type)
{
    unsigned weights = type != NULL && type->channels_last != 0 ? type->storage & ~type->channels_last : 0;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        const sdlf_tensor *operand = &operation->in[i];
        if (!(weights >> i & 1) || operand->dtype != SDLF_FLOAT32 || operand->layout != SDLF_DENSE) continue;
        const sdlf_tensor row_major = sdlf_tensor_view(SDLF_FLOAT32, operand->shape, NULL);
        bool same = true;
        for (int axis = 0; axis < operand->shape.rank; axis++)
            same = same && operand->stride[axis] == row_major.stride[axis];
        if (!same && sdlf_tensor_is_channels_last(operand)) return true;
    }
    return false;
}

sdlf_dtype sdlf_operation_storage(const sdlf_operation *operation)
{
    if (operation == NULL) return SDLF_NONE;
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    for (int i = 0; type != NULL && i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *operand = sdlf_operand_at(operation, i);
        if (type->storage >> i & 1 && (operand->dtype == SDLF_FLOAT16 || operand->dtype == SDLF_BFLOAT16))
            return operand->dtype;
    }
    return has_stored_weights(operation, type) ? SDLF_FLOAT32 : SDLF_NONE;
}

sdlf_operation sdlf_operation_stored(const sdlf_operation *operation, sdlf_dtype dtype)
{
    if (operation == NULL) return (sdlf_operation){0};
    sdlf_operation stored = *operation;
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        sdlf_tensor *operand = sdlf_operand_at(&stored, i);
        if (!(type->storage >> i & 1) || operand->dtype != SDLF_FLOAT32) continue;
        operand->dtype = dtype;
        if (type->channels_last != 0 && operand->shape.rank == 4) *operand = sdlf_tensor_channels_last(*operand);
    }
    return stored;
}

/* The operation with float32 instead of 16-bit storage, for checks that handle only one floating type. */
static sdlf_status widen(const sdlf_operation *operation, const sdlf_operation_class *type, sdlf_operation *wide)
{
    sdlf_dtype storage = sdlf_operation_storage(operation);
    *wide = *operation;
    for (int i = 0; storage != SDLF_NONE && i < SDLF_MAX_OPERANDS; i++) {
        sdlf_tensor *operand = sdlf_operand_at(wide, i);
        if (!(type->storage >> i & 1) || !sdlf_tensor_present(operand)) continue;
        if (type->float32_beside >> i & 1 && operand->dtype == SDLF_FLOAT32) continue;
        if (operand->dtype != storage)
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s: operand '%s' is %s, expected %s like another operand", type->name,
                             sdlf_operand_declared(type, i)->name, sdlf_dtype_name(operand->dtype),
                             sdlf_dtype_name(storage));
        operand->dtype = SDLF_FLOAT32;
    }
    return SDLF_OK;
}

/* The operands that must be channels last: all that may be if one is, and the weights too if they are stored like the
 * images. */
static unsigned channels_last_operands(const sdlf_operation *operation, const sdlf_operation_class *type)
{
    sdlf_dtype storage = sdlf_operation_storage(operation);
    if (type->channels_last != 0 && storage != SDLF_NONE) {
        unsigned images = 0;
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
            const sdlf_tensor *operand = sdlf_operand_at(operation, i);
            bool beside = type->float32_beside >> i & 1 && operand->dtype != storage;
            if (operand->shape.rank == 4 && !beside) images |= 1u << i;
        }
        return type->storage & images;
    }
    return sdlf_operation_is_channels_last(operation) ? type->channels_last : 0;
}

sdlf_status sdlf_operation_check(const sdlf_operation *operation)
{
    SDLF_REQUIRE(operation);
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    if (!type) return sdlf_fail(SDLF_ERROR_ARGUMENT, "%d is not a kind of operation", (int)operation->kind);
    unsigned any = type->any_strides, last = channels_last_operands(operation, type);
    unsigned stays = sdlf_operation_storage(operation) == SDLF_NONE ? type->stays_row_major : 0;
    sdlf_status status = check_operands(type->name, type->in, operation->in, SDLF_MAX_INPUTS, any, last, stays);
    if (status == SDLF_OK) {
        status = check_operands(type->name, type->out, operation->out, SDLF_MAX_OUTPUTS, any >> SDLF_MAX_INPUTS,
                                last >> SDLF_MAX_INPUTS, stays >> SDLF_MAX_INPUTS);
    }
    sdlf_operation wide;
    if (status == SDLF_OK) status = widen(operation, type, &wide);
    if (status != SDLF_OK) return status;
    return sdlf_fail_context(type->check(&wide), "%s", type->name);
}

/* The size of a tensor in which broadcast elements count once. */
static int64_t bytes_of(const sdlf_tensor *tensor)
{
    sdlf_tensor once = *tensor;
    if (tensor->layout == SDLF_CSR) return sdlf_tensor_bytes(tensor);
    for (int axis = 0; axis < once.shape.rank; axis++) {
        if (once.stride[axis] == 0 && once.shape.dim[axis] > 1) once.shape.dim[axis] = 1;
    }
    return sdlf_tensor_bytes(&once);
}

static int64_t bytes_read(const sdlf_operation_class *type, const sdlf_operation *operation, int input)
{
    const sdlf_tensor *tensor = &operation->in[input];
    if (!sdlf_tensor_present(tensor)) return 0;
    int64_t elements = type->elements_read != NULL ? type->elements_read(operation, input) : -1;
    if (elements < 0) return bytes_of(tensor);
    return sdlf_product(elements, (int64_t)sdlf_dtype_size(tensor->dtype), 1, 1);
}

/* Operands are moved once; updated ones are read and written. The operation must have passed its check. */
sdlf_cost sdlf_operation_cost(const sdlf_operation *operation)
{
    if (operation == NULL) return (sdlf_cost){0};
    sdlf_cost cost = {0};
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    if (!type) return cost;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        cost.bytes = sdlf_sum(cost.bytes, bytes_read(type, operation, i));
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        int64_t bytes = sdlf_tensor_bytes(&operation->out[i]);
        cost.bytes = sdlf_sum(cost.bytes, bytes);
        if (sdlf_tensor_present(&operation->out[i]) && type->out[i].updated) {
            cost.bytes = sdlf_sum(cost.bytes, bytes);
        }
    }
    cost.flops = type->flops ? type->flops(operation) : sdlf_tensor_count(&operation->out[0]);
    return cost;
}

sdlf_activation *sdlf_operation_epilogue(sdlf_operation *operation)
{
    if (operation == NULL) return NULL;
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    if (type == NULL || type->epilogue == 0) return NULL;
    return (sdlf_activation *)((char *)operation + type->epilogue);
}

int64_t sdlf_window2d_output(const sdlf_window2d *window, int axis, int64_t input)
{
    if (window == NULL) return 0;
    int64_t reach = (int64_t)window->dilation[axis] * (window->size[axis] - 1) + 1;
    int64_t padded = input + window->padding_before[axis] + window->padding_after[axis];
    return padded < reach ? 0 : (padded - reach) / window->stride[axis] + 1;
}
