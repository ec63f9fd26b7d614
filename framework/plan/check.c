/* The check pass: every step's calculator must have a kernel that takes it. Sets the cost of each, and the algorithms that were asked
 * for. */
#include "framework/plan/passes.h"

#include <string.h>

/* Is `name` what stands between `text` and `end`? */
static bool is_prefix(const char *name, const char *text, const char *end)
{
    return strlen(name) == (size_t)(end - text) && strncmp(name, text, strlen(name)) == 0;
}

/* A convolution takes the algorithm that was asked for, where its calculator has that and it takes the operation. */
static sdlf_status choose_algorithm(const sdlf_plan *plan, plan_step *step)
{
    const char *wanted = plan->options.conv_algorithm;
    if (wanted == NULL) return SDLF_OK;
    sdlf_operation_kind kind = step->operation.kind;
    if (kind != SDLF_CONV2D_FORWARD && kind != SDLF_CONV2D_BACKWARD_INPUT && kind != SDLF_CONV2D_BACKWARD_WEIGHTS)
        return SDLF_OK;
    const char *calculator = step->calculator->type->name, *colon = strchr(wanted, ':');
    if (colon != NULL) { /* that calculator's alone */
        if (!is_prefix(calculator, wanted, colon)) return SDLF_OK;
        wanted = colon + 1;
    }
    const char *const *names = step->calculator->type->kernel[kind].algorithms;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], wanted) != 0) continue;
        step->operation.algorithm = i; /* where it takes the operation: one may be for 1x1 windows alone, say */
        if (!sdlf_calculator_supports(step->calculator, &step->operation)) step->operation.algorithm = 0;
        return SDLF_OK;
    }
    if (kind != SDLF_CONV2D_FORWARD) return SDLF_OK; /* the backward pass may have fewer algorithms */
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "calculator '%s' has no convolution algorithm '%s'", calculator, wanted);
}

/* A product that cannot be had in the way that was asked for is an error: nobody would know what was timed. */
static sdlf_status choose_gemm_algorithm(const sdlf_plan *plan, plan_step *step)
{
    const char *wanted = plan->options.gemm_algorithm, *calculator = step->calculator->type->name;
    if (wanted == NULL || step->operation.kind != SDLF_GEMM) return SDLF_OK;
    const char *const *names = step->calculator->type->kernel[SDLF_GEMM].algorithms;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], wanted) != 0) continue;
        step->operation.algorithm = i;
        if (sdlf_calculator_supports(step->calculator, &step->operation)) return SDLF_OK;
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s': its algorithm '%s' does not take gemm of %s %s, %s",
                         calculator, wanted, sdlf_dtype_name(step->operation.in[0].dtype),
                         sdlf_shape_print(step->operation.in[0].shape).text,
                         sdlf_shape_print(step->operation.in[1].shape).text);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "calculator '%s' has no algorithm '%s' for gemm", calculator, wanted);
}

static bool has_algorithm(const sdlf_calculator_class *type, const char *name)
{
    const char *const *names = type->kernel[SDLF_CONV2D_FORWARD].algorithms;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* The algorithm that was asked for is one of a calculator that computes here, and of the one that it names: also where every
 * convolution is fused, which leaves no choice. */
static sdlf_status check_conv_algorithm(const sdlf_plan *plan)
{
    const char *wanted = plan->options.conv_algorithm, *colon = wanted != NULL ? strchr(wanted, ':') : NULL;
    const char *name = colon != NULL ? colon + 1 : wanted;
    const sdlf_calculator_class *meant = NULL;
    if (wanted == NULL) return SDLF_OK;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_calculator_class *type = plan->steps[i].calculator->type;
        if (colon != NULL && !is_prefix(type->name, wanted, colon)) continue;
        if (has_algorithm(type, name)) return SDLF_OK;
        if (meant == NULL) meant = type;
    }
    if (meant != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "calculator '%s' has no convolution algorithm '%s'", meant->name, name);
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "convolution algorithm '%s': nothing of this plan runs on '%.*s'", wanted,
                     colon != NULL ? (int)(colon - wanted) : 0, wanted);
}

sdlf_status plan_check_support(sdlf_plan *plan)
{
    sdlf_status checked = check_conv_algorithm(plan);
    if (checked != SDLF_OK) return checked;
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        const sdlf_layer *layer = plan->nodes[step->node].layer;
        sdlf_status status = choose_algorithm(plan, step);
        if (status == SDLF_OK) status = choose_gemm_algorithm(plan, step);
        if (status != SDLF_OK) return sdlf_fail_context(status, "layer '%s' (%s)", layer->name, layer->type->name);
        step->cost = sdlf_operation_cost(&step->operation);
        if (sdlf_calculator_supports(step->calculator, &step->operation)) continue;
        const sdlf_operation *op = &step->operation;
        const sdlf_tensor *shown = sdlf_tensor_present(&op->in[0]) ? &op->in[0] : &op->out[0];
        return sdlf_fail(
            SDLF_ERROR_UNSUPPORTED,
            "layer '%s' (%s): calculator '%s' cannot compute %s on %s %s; give the layer another calculator",
            layer->name, layer->type->name, step->calculator->type->name, sdlf_operation_class_of(op->kind)->name,
            sdlf_dtype_name(shown->dtype), sdlf_shape_print(shown->shape).text);
    }
    return SDLF_OK;
}
