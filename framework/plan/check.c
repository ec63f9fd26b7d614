/* SPDX-License-Identifier: MIT */
/* The check pass: every step's calculator must have a kernel that supports it. Sets the cost of each, and the requested
 * algorithms. */
#include "framework/plan/passes.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/suggest.h>

/* The algorithm that the options request for a class of kinds, under the kind that lists all its algorithms' names. */
typedef struct request {
    const char *wanted; /* "NAME" or "CALCULATOR:NAME"; NULL: nothing is requested */
    sdlf_operation_kind kind;
    const char *what;
    bool strict; /* unsupported operations are an error: the timing would be meaningless otherwise */
} request;

static request request_for(const sdlf_plan *plan, sdlf_algorithm_request which)
{
    const sdlf_plan_options *options = &plan->options;
    if (which == SDLF_REQUEST_CONV)
        return (request){options->conv_algorithm, SDLF_CONV2D_FORWARD, "convolution", false};
    if (which == SDLF_REQUEST_GEMM) return (request){options->gemm_algorithm, SDLF_GEMM, "gemm", true};
    return (request){0};
}

const char *plan_requested_algorithm(const sdlf_plan *plan, sdlf_operation_kind kind)
{
    return request_for(plan, sdlf_operation_class_of(kind)->request).wanted;
}

/* The name of the algorithm; NULL: none is requested for this calculator. */
static const char *name_for(const request *r, const sdlf_calculator_class *type)
{
    const char *colon = r->wanted != NULL ? strchr(r->wanted, ':') : NULL;
    if (colon == NULL) return r->wanted;
    size_t length = (size_t)(colon - r->wanted);
    return strlen(type->name) == length && strncmp(type->name, r->wanted, length) == 0 ? colon + 1 : NULL;
}

/* -1: the calculator has no algorithm of that name. */
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

/* Sets the requested algorithm, if the operation's calculator has it and it supports the operation. */
static sdlf_status choose_algorithm(const sdlf_plan *plan, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    const sdlf_calculator_class *type = step->calculator->type;
    const request r = request_for(plan, sdlf_operation_class_of(op->kind)->request);
    const char *name = name_for(&r, type);
    if (name == NULL) return SDLF_OK;
    int index = index_of(type, op->kind, name);
    if (index < 0) return op->kind == r.kind ? no_such(&r, type) : SDLF_OK; /* a backward pass may have fewer of them */
    op->algorithm = index; /* if supported: one may require 1x1 windows, for example */
    if (sdlf_calculator_supports(step->calculator, op)) return SDLF_OK;
    op->algorithm = 0;
    if (!r.strict) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s': its algorithm '%s' does not support %s of %s %s, %s",
                     type->name, name, r.what, sdlf_dtype_name(op->in[0].dtype), sdlf_shape_print(op->in[0].shape).text,
                     sdlf_shape_print(op->in[1].shape).text);
}

/* Checks that the requested algorithm belongs to a calculator that computes here, and to the one it names: even if no
 * operation of this plan has the choice, for example because all are fused. */
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
    for (int i = 0; i < SDLF_REQUEST_COUNT; i++) {
        sdlf_status checked = check_request(plan, request_for(plan, i));
        if (checked != SDLF_OK) return checked;
    }
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        const sdlf_layer *layer = plan->nodes[step->node].layer;
        sdlf_status status = choose_algorithm(plan, step);
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
