/* SPDX-License-Identifier: MIT */
/* The algorithm selection pass: operations whose calculator offers several algorithms use the one that the plan's
 * choices name; others are autotuned and added. Without choices, calculators use their own heuristics. */
#include "framework/plan/passes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/choices.h"
#include "framework/plan/autotune.h"
#include "framework/plan/layouts/layouts.h"

typedef struct line {
    char text[600];
    size_t used;
} line;

static void append(line *l, const char *format, ...) SDLF_PRINTF(2, 3);
static void append(line *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(l->text + l->used, sizeof l->text - l->used, format, arguments);
    va_end(arguments);
    if (length > 0) l->used += (size_t)length;
    if (l->used >= sizeof l->text) l->used = sizeof l->text - 1;
}

/* " x 1,3,32,32 w 8,3,3,3 bias 8": the operands present, under the names of their kind. */
static void append_operands(line *l, const sdlf_operand *names, const sdlf_tensor *tensors)
{
    for (int i = 0; names[i].name != NULL; i++) {
        if (!sdlf_tensor_present(&tensors[i])) continue;
        append(l, " %s", names[i].name);
        for (int axis = 0; axis < tensors[i].shape.rank; axis++)
            append(l, "%c%lld", axis == 0 ? ' ' : ',', (long long)tensors[i].shape.dim[axis]);
    }
}

/* Describes the operation in one line; false for kinds that cannot print their options. */
static bool describe(line *l, const sdlf_operation *op)
{
    const sdlf_operation_class *type = sdlf_operation_type(op);
    sdlf_operation own = *op;
    const sdlf_activation *epilogue = sdlf_operation_epilogue(&own);
    char options[300];
    if (type->print_options == NULL) return false;
    type->print_options(op, options, sizeof options);
    append(l, "%s %s", type->name, sdlf_dtype_name(op->out[0].dtype));
    append_operands(l, type->in, op->in);
    append_operands(l, type->out, op->out);
    append(l, "%s", options);
    if (epilogue != NULL && epilogue->function != SDLF_IDENTITY) append(l, " activation %d", (int)epilogue->function);
    return true;
}

/* True if the operation's algorithm supports it, in its present layout or channels last. */
static bool is_taken(const plan_step *step, const sdlf_operation *operation, bool may_use_nhwc)
{
    sdlf_operation nhwc = sdlf_operation_channels_last(operation);
    return sdlf_calculator_supports(step->calculator, operation) ||
           (may_use_nhwc && sdlf_calculator_supports(step->calculator, &nhwc));
}

/* The index of the algorithm of that name if it supports the operation; 0: none. */
static int algorithm_named(const plan_step *step, const char *name, bool may_use_nhwc)
{
    const char *const *names = sdlf_calculator_slot(step->calculator, &step->operation)->algorithms;
    sdlf_operation operation = step->operation;
    for (int i = 1; name != NULL && names[i] != NULL; i++) {
        operation.algorithm = i;
        if (strcmp(names[i], name) == 0 && is_taken(step, &operation, may_use_nhwc)) return i;
    }
    return 0;
}

static sdlf_status race(sdlf_choices *choices, plan_step *step, bool may_use_nhwc, const char *device,
                        const char *operation)
{
    const char *const *names = sdlf_calculator_slot(step->calculator, &step->operation)->algorithms;
    autotune_result result;
    sdlf_status status = autotune_run(&result, step->calculator, &step->operation, may_use_nhwc);
    if (status != SDLF_OK) return sdlf_fail_context(status, "racing %s", operation);
    if (result.algorithm == 0) return SDLF_OK; /* no memory for any: use the calculator's own rule */
    line times = {.used = 0};
    for (int i = 0; i < result.count; i++)
        append(&times, "%s%s %.1f us", i > 0 ? ", " : "", names[result.ran[i]], result.seconds[i] * 1e6);
    step->operation.algorithm = result.algorithm;
    return choices_add(choices, device, operation, names[result.algorithm], times.text);
}

static sdlf_status choose(sdlf_choices *choices, plan_step *step, bool may_use_nhwc)
{
    line device = {.used = 0}, operation = {.used = 0};
    char on[400] = "";
    if (!describe(&operation, &step->operation)) return SDLF_OK;
    if (may_use_nhwc) append(&operation, " any layout");
    step->calculator->type->describe(step->calculator, on, sizeof on);
    append(&device, "%s: %s", step->calculator->type->name, on);
    step->operation.algorithm = algorithm_named(step, choices_find(choices, device.text, operation.text), may_use_nhwc);
    if (step->operation.algorithm != 0) return SDLF_OK;
    return race(choices, step, may_use_nhwc, device.text, operation.text);
}

sdlf_status plan_choose(sdlf_plan *plan)
{
    sdlf_choices *choices = plan->options.choices;
    layout_votes *votes = NULL;
    if (choices == NULL) return SDLF_OK;
    sdlf_status status = layout_count_votes(plan, &votes);
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        plan_step *step = &plan->steps[i];
        const sdlf_kernel_slot *slot = sdlf_calculator_slot(step->calculator, &step->operation);
        if (slot->algorithms == NULL || step->operation.algorithm != 0) continue; /* 0: none was requested */
        bool may_use_nhwc = layout_uses_nhwc(votes, step->calculator);
        bool last = may_use_nhwc && sdlf_calculator_prefers_channels_last(step->calculator, &step->operation);
        if (may_use_nhwc && slot->prefers_channels_last != NULL && plan->options.mode == SDLF_TRAIN)
            continue; /* all are channels last, or none: a row-major one could undo it */
        const sdlf_layer *layer = plan->nodes[step->node].layer;
        status = sdlf_fail_context(choose(choices, step, last), "layer '%s' (%s)", layer->name, layer->type->name);
    }
    free(votes);
    return status;
}
