/* SPDX-License-Identifier: MIT */
/* The check pass: every step's calculator must have a kernel that takes it. Sets the cost of each, and the algorithms
 * that were asked for. */
#include "framework/plan/passes.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/suggest.h>

/* The kinds of operations whose algorithm the options may ask for, under the kind that has all of its names. */
typedef struct request {
    const char *wanted; /* "NAME" or "CALCULATOR:NAME"; NULL: nothing is asked for */
    sdlf_operation_kind kind;
    const char *what;
} request;

static request conv_request(const sdlf_plan *plan)
{
    return (request){plan->options.conv_algorithm, SDLF_CONV2D_FORWARD, "convolution"};
}

static request gemm_request(const sdlf_plan *plan)
{
    return (request){plan->options.gemm_algorithm, SDLF_GEMM, "gemm"};
}

static bool is_convolution(sdlf_operation_kind kind)
{
    return kind == SDLF_CONV2D_FORWARD || kind == SDLF_CONV2D_BACKWARD_INPUT || kind == SDLF_CONV2D_BACKWARD_WEIGHTS;
}

const char *plan_requested_algorithm(const sdlf_plan *plan, sdlf_operation_kind kind)
{
    if (is_convolution(kind)) return plan->options.conv_algorithm;
    return kind == SDLF_GEMM ? plan->options.gemm_algorithm : NULL;
}

/* The name of the algorithm; NULL: nothing is asked of this calculator. */
static const char *name_for(const request *r, const sdlf_calculator_class *type)
{
    const char *colon = r->wanted != NULL ? strchr(r->wanted, ':') : NULL;
    if (colon == NULL) return r->wanted;
    size_t length = (size_t)(colon - r->wanted);
    return strlen(type->name) == length && strncmp(type->name, r->wanted, length) == 0 ? colon + 1 : NULL;
}

/* -1: the calculator has none of that name. */
static int index_of(const sdlf_calculator_class *type, sdlf_operation_kind kind, const char *name)
{
    const char *const *names = type->kernel[kind].algorithms;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    return -1;
}

static sdlf_status no_such(const request *r, const sdlf_calculator_class *type)
{
    const char *const *names = type->kernel[r->kind].algorithms, *wanted = name_for(r, type);
    sdlf_suggestion near = {.word = wanted};
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        int n = snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "; it has: ", names[i]);
        if (n > 0 && (size_t)n < sizeof known - used) used += (size_t)n;
        sdlf_suggest(&near, names[i]);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "calculator '%s' has no %s algorithm '%s'%s%s", type->name, r->what, wanted,
                     sdlf_suggestion_print(&near).text, known);
}

/* A convolution takes the algorithm that was asked for, where its calculator has that and it takes the operation. */
static sdlf_status choose_conv_algorithm(const sdlf_plan *plan, plan_step *step)
{
    const request r = conv_request(plan);
    const sdlf_calculator_class *type = step->calculator->type;
    sdlf_operation_kind kind = step->operation.kind;
    const char *name = is_convolution(kind) ? name_for(&r, type) : NULL;
    if (name == NULL) return SDLF_OK;
    int index = index_of(type, kind, name);
    if (index < 0 && kind != SDLF_CONV2D_FORWARD) return SDLF_OK; /* the backward pass may have fewer algorithms */
    if (index < 0) return no_such(&r, type);
    step->operation.algorithm = index; /* where it takes the operation: one may be for 1x1 windows only, say */
    if (!sdlf_calculator_supports(step->calculator, &step->operation)) step->operation.algorithm = 0;
    return SDLF_OK;
}

/* A product that cannot be had in the way that was asked for is an error: nobody would know what was timed. */
static sdlf_status choose_gemm_algorithm(const sdlf_plan *plan, plan_step *step)
{
    const request r = gemm_request(plan);
    const sdlf_calculator_class *type = step->calculator->type;
    const char *name = step->operation.kind == SDLF_GEMM ? name_for(&r, type) : NULL;
    if (name == NULL) return SDLF_OK;
    int index = index_of(type, SDLF_GEMM, name);
    if (index < 0) return no_such(&r, type);
    step->operation.algorithm = index;
    if (sdlf_calculator_supports(step->calculator, &step->operation)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s': its algorithm '%s' does not take gemm of %s %s, %s",
                     type->name, name, sdlf_dtype_name(step->operation.in[0].dtype),
                     sdlf_shape_print(step->operation.in[0].shape).text,
                     sdlf_shape_print(step->operation.in[1].shape).text);
}

/* The algorithm that was asked for is one of a calculator that computes here, and of the one that it names: also where
 * no operation of this plan has the choice, all being fused, say. */
static sdlf_status check_request(const sdlf_plan *plan, request r)
{
    const sdlf_calculator_class *meant = NULL;
    if (r.wanted == NULL) return SDLF_OK;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_calculator_class *type = plan->steps[i].calculator->type;
        const char *name = name_for(&r, type);
        if (name == NULL) continue;
        if (index_of(type, r.kind, name) >= 0) return SDLF_OK;
        if (meant == NULL) meant = type;
    }
    if (meant != NULL) return no_such(&r, meant);
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s algorithm '%s': no layer of this plan runs on calculator '%.*s'", r.what,
                     r.wanted, (int)strcspn(r.wanted, ":"), r.wanted);
}

sdlf_status plan_check_support(sdlf_plan *plan)
{
    sdlf_status checked = check_request(plan, conv_request(plan));
    if (checked == SDLF_OK) checked = check_request(plan, gemm_request(plan));
    if (checked != SDLF_OK) return checked;
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        const sdlf_layer *layer = plan->nodes[step->node].layer;
        sdlf_status status = choose_conv_algorithm(plan, step);
        if (status == SDLF_OK) status = choose_gemm_algorithm(plan, step);
        if (status != SDLF_OK) return sdlf_fail_context(status, "layer '%s' (%s)", layer->name, layer->type->name);
        step->cost = sdlf_operation_cost(&step->operation);
        if (sdlf_calculator_supports(step->calculator, &step->operation)) continue;
        const sdlf_operation *op = &step->operation;
        const sdlf_tensor *shown = sdlf_tensor_present(&op->in[0]) ? &op->in[0] : &op->out[0];
        return sdlf_fail(
            SDLF_ERROR_UNSUPPORTED,
            "layer '%s' (%s): calculator '%s' cannot compute %s on %s %s; give the layer another calculator",
            layer->name, layer->type->name, step->calculator->type->name, sdlf_operation_type(op)->name,
            sdlf_dtype_name(shown->dtype), sdlf_shape_print(shown->shape).text);
    }
    return SDLF_OK;
}
