/* SPDX-License-Identifier: MIT */
/* Public functions of calculators: open by name, close, query and run. Kernels rely on the checks made here. */
#include <sdlf/calculator.h>
#include <sdlf/suggest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/calculator_inherit.h"
#include "framework/operand.h"
#include "framework/require.h"

static const sdlf_calculator_class *find_class(const char *name)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)); i++) {
        if (strcmp(type->name, name) == 0) return type;
    }
    return NULL;
}

static void list_classes(char *text, size_t size)
{
    const sdlf_calculator_class *type;
    size_t used = 0;
    for (int i = 0; (type = sdlf_calculator_class_at(i)) && used < size; i++) {
        int length = snprintf(text + used, size - used, "%s%s", i ? ", " : "", type->name);
        if (length < 0) break;
        used += (size_t)length;
    }
}

sdlf_status sdlf_calculator_open(sdlf_calculator **calculator, const char *name, const sdlf_calculator_options *options)
{
    SDLF_REQUIRE(calculator);
    *calculator = NULL;
    SDLF_REQUIRE(name);
    static const sdlf_calculator_options defaults = {.threads = 0};
    const sdlf_calculator_class *type = find_class(name);
    if (!type) {
        char known[256] = "";
        const char *other, *reason;
        sdlf_suggestion near = {.word = name};
        for (int i = 0; sdlf_calculator_class_at(i) != NULL; i++)
            sdlf_suggest(&near, sdlf_calculator_class_at(i)->name);
        list_classes(known, sizeof known);
        for (int i = 0; (other = sdlf_calculator_unavailable(i, &reason)); i++) {
            if (strcmp(other, name) == 0)
                return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s' is not in this build: %s; there are: %s",
                                 name, reason, known);
        }
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "no calculator '%s'%s; there are: %s", name,
                         sdlf_suggestion_print(&near).text, known);
    }
    if (!options) options = &defaults;
    if (options->threads < 0 || options->device < 0) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "calculator '%s': %s is %d, must not be negative", name,
                         options->threads < 0 ? "threads" : "device",
                         options->threads < 0 ? options->threads : options->device);
    }
    if ((unsigned)options->math >= SDLF_MATH_COUNT)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "calculator '%s': there is no math mode %d", name, (int)options->math);
    sdlf_calculator *made = calloc(1, type->size);
    if (!made) return sdlf_fail(SDLF_ERROR_MEMORY, "calculator '%s': no memory for %zu bytes", name, type->size);
    made->type = type;
    sdlf_status status = type->inherits != NULL ? calculator_inherit(made, type, options) : SDLF_OK;
    if (status == SDLF_OK) {
        status = made->type->open(made, options);
        if (status == SDLF_OK && (status = calculator_check_inherited(made)) != SDLF_OK) made->type->close(made);
    }
    if (status != SDLF_OK) {
        calculator_disinherit(made);
        free(made);
        return sdlf_fail_context(status, "calculator '%s'", name);
    }
    *calculator = made;
    return SDLF_OK;
}

void sdlf_calculator_close(sdlf_calculator *calculator)
{
    if (!calculator) return;
    calculator->type->close(calculator);
    calculator_disinherit(calculator);
    free(calculator);
}

const sdlf_fused_slot *sdlf_fused_slot_in(const sdlf_fused_slot *list, const sdlf_fusion *fusion)
{
    for (; list != NULL && list->fusion != NULL; list++)
        if (list->fusion == fusion) return list;
    return NULL;
}

const sdlf_kernel_slot *sdlf_calculator_slot(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL || (unsigned)operation->kind >= SDLF_OPERATION_COUNT) return NULL;
    const sdlf_fused_slot *own = NULL;
    if (operation->kind == SDLF_FUSED) own = sdlf_fused_slot_in(calculator->type->fusions, operation->fused.fusion);
    return own != NULL && own->slot.run != NULL ? &own->slot : &calculator->type->kernel[operation->kind];
}

static const sdlf_kernel_slot *slot_of(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, operation);
    return slot != NULL && slot->run != NULL ? slot : NULL;
}

static bool has_algorithm(const sdlf_kernel_slot *slot, int algorithm)
{
    if (algorithm == 0) return true;
    if (algorithm < 0 || !slot->algorithms) return false;
    for (int i = 0; slot->algorithms[i]; i++) {
        if (i == algorithm) return true;
    }
    return false;
}

bool sdlf_calculator_supports(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return false;
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    if (!slot || !has_algorithm(slot, operation->algorithm)) return false;
    if (!slot->storage && sdlf_operation_storage(operation) != SDLF_NONE) return false;
    if (!slot->channels_last && sdlf_operation_is_channels_last(operation)) return false;
    if (!slot->mixed && sdlf_operation_is_mixed(operation)) return false;
    return !slot->supports || slot->supports(calculator, operation);
}

int64_t sdlf_calculator_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return 0;
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    return slot && slot->workspace ? slot->workspace(calculator, operation) : 0;
}

bool sdlf_calculator_prefers_channels_last(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return false;
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    return slot && slot->channels_last && slot->prefers_channels_last &&
           slot->prefers_channels_last(calculator, operation);
}

sdlf_dtype sdlf_calculator_storage(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training)
{
    if (calculator == NULL || operation == NULL || calculator->type->storage == NULL) return SDLF_NONE;
    return calculator->type->storage(calculator, operation, training);
}

int64_t sdlf_calculator_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return 0;
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    return slot && slot->prepared ? slot->prepared(calculator, operation) : 0;
}

const char *sdlf_calculator_algorithm(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return NULL;
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    if (!slot || !slot->algorithms || !has_algorithm(slot, operation->algorithm)) return NULL;
    bool told = operation->algorithm == 0 && slot->automatic;
    return slot->algorithms[told ? slot->automatic(calculator, operation) : operation->algorithm];
}

sdlf_algorithm_note sdlf_calculator_note(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return (sdlf_algorithm_note){0};
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    bool told = slot && slot->notes && slot->algorithms && has_algorithm(slot, operation->algorithm);
    return told ? slot->notes[operation->algorithm] : (sdlf_algorithm_note){.summary = NULL};
}

sdlf_cost sdlf_calculator_work(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (calculator == NULL || operation == NULL) return (sdlf_cost){0};
    const sdlf_kernel_slot *slot = slot_of(calculator, operation);
    return slot && slot->work ? slot->work(calculator, operation) : sdlf_operation_cost(operation);
}

static bool overlap(const sdlf_tensor *a, const sdlf_tensor *b)
{
    int64_t a_bytes = sdlf_tensor_bytes(a), b_bytes = sdlf_tensor_bytes(b);
    if (a_bytes == 0 || b_bytes == 0) return false;
    uintptr_t a_first = (uintptr_t)a->data, b_first = (uintptr_t)b->data;
    return a_first < b_first + (uintptr_t)b_bytes && b_first < a_first + (uintptr_t)a_bytes;
}

/* Checks that every operand with elements has memory, and that outputs overlap nothing, unless the class allows them
 * the memory of an input. (Operands of any strides may interleave in one block; this is not checked.) */
static sdlf_status check_memory(const sdlf_operation *operation, const sdlf_operation_class *type)
{
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *tensor = sdlf_operand_at(operation, i);
        if (sdlf_tensor_count(tensor) > 0 && !tensor->data) {
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: operand '%s' has no memory", type->name,
                             sdlf_operand_declared(type, i)->name);
        }
    }
    for (int o = SDLF_MAX_INPUTS; o < SDLF_MAX_OPERANDS; o++) {
        const sdlf_tensor *out = sdlf_operand_at(operation, o);
        for (int i = 0; i < o; i++) {
            const sdlf_tensor *other = sdlf_operand_at(operation, i);
            bool may_alias = o == SDLF_MAX_INPUTS && i < SDLF_MAX_INPUTS && (type->may_alias >> i & 1);
            if (type->any_strides >> o & 1 || type->any_strides >> i & 1) continue;
            if (!overlap(out, other) || (may_alias && out->data == other->data)) continue;
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: operand '%s' overlaps operand '%s'", type->name,
                             sdlf_operand_declared(type, o)->name, sdlf_operand_declared(type, i)->name);
        }
    }
    return SDLF_OK;
}

sdlf_status sdlf_calculator_run(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    SDLF_REQUIRE(calculator);
    SDLF_REQUIRE(operation);
    sdlf_status status = sdlf_operation_check(operation);
    if (status != SDLF_OK) return status;
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    status = check_memory(operation, type);
    if (status != SDLF_OK) return status;
    const sdlf_calculator_class *computer = calculator->type;
    if (!sdlf_calculator_supports(calculator, operation)) {
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s' has no %s for these operands", computer->name,
                         type->name);
    }
    int64_t bytes = sdlf_calculator_workspace(calculator, operation);
    if (sdlf_tensor_bytes(&operation->workspace) >= bytes)
        return sdlf_calculator_slot(calculator, operation)->run(calculator, operation);

    sdlf_operation copy = *operation;
    copy.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), NULL);
    status = computer->allocate(calculator, bytes, &copy.workspace.data);
    if (status != SDLF_OK) {
        return sdlf_fail_context(status, "%s: workspace of %" PRId64 " bytes", type->name, bytes);
    }
    status = sdlf_calculator_slot(calculator, &copy)->run(calculator, &copy);
    sdlf_status synchronized = computer->synchronize(calculator); /* the workspace may still be in use until then */
    computer->deallocate(calculator, copy.workspace.data);
    return status != SDLF_OK ? status : synchronized;
}

bool sdlf_calculator_shares_memory(const sdlf_calculator *a, const sdlf_calculator *b)
{
    if (a == NULL || b == NULL) return false;
    return a == b || strcmp(a->space, b->space) == 0;
}

bool sdlf_calculator_is_on_host(const sdlf_calculator *calculator)
{
    if (calculator == NULL) return false;
    return strcmp(calculator->space, SDLF_HOST_SPACE) == 0;
}

static const char *const math_names[SDLF_MATH_COUNT] = {"fp32", "tf32", "fp16", "bf16"};

const char *sdlf_math_name(sdlf_math math)
{
    return (unsigned)math < SDLF_MATH_COUNT ? math_names[math] : "unknown";
}

sdlf_math sdlf_math_from_name(const char *name)
{
    if (name == NULL) return SDLF_MATH_COUNT;
    for (int i = 0; i < SDLF_MATH_COUNT; i++) {
        if (strcmp(math_names[i], name) == 0) return (sdlf_math)i;
    }
    return SDLF_MATH_COUNT;
}
