/* SPDX-License-Identifier: MIT */
/* How a plan's sizes, and some of the model's values, depend on the length of its states. */
#ifndef SDLF_FRAMEWORK_STATEFUL_INTERNAL_H
#define SDLF_FRAMEWORK_STATEFUL_INTERNAL_H

#include <sdlf/stateful.h>

#include "framework/plan/plan_internal.h"

/* value at length n: first + n slope */
typedef struct length_line {
    int64_t first, slope;
} length_line;

/* A size in the plan that depends on the length. */
typedef struct moving_size {
    int64_t *size;
    length_line line;
} moving_size;

/* A parameter whose values depend on the length: (outer, side, inner), of which the side may grow. The position of an
 * element along the side counts from the front or, as in a causal mask, from the end. */
typedef struct moving_values {
    int parameter;
    int64_t outer, inner, most; /* most: the side at the plan's own length */
    length_line side;
    bool from_end;
    double *first, *slope; /* of each element at the plan's own length */
    float *values;         /* memory for the values */
} moving_values;

typedef struct length_rule {
    bool straight; /* every size and value is linear in the length; else a model is created for each length */
    moving_size *size;
    int size_count;
    moving_values *values;
    int values_count;
} length_rule;

/* A model for one length, and its plan without memory. */
typedef struct length_sample {
    int64_t length;
    sdlf_model *model;
    sdlf_plan *plan;
} length_sample;

/* Finds the rule of a bound plan from models for other lengths; samples[0] has its own length, samples[1] one less. */
sdlf_status length_rule_find(length_rule *rule, sdlf_plan *plan, const length_sample *samples, int count);
void length_rule_release(length_rule *rule);

/* Changes the plan to that length: by a linear rule, or by copying from `sample`. */
sdlf_status length_rule_apply(const length_rule *rule, sdlf_plan *plan, int64_t length);
sdlf_status length_rule_copy(const length_rule *rule, sdlf_plan *plan, const length_sample *sample);

/* ---- an ONNX file that models are made from ---- */

enum { STATEFUL_SHAPES = 256, STATEFUL_STEPS = 32 };

typedef struct onnx_source {
    char *path;
    sdlf_onnx_dimension *dimension; /* names are owned */
    int dimension_count;
    sdlf_onnx_shape *shape; /* those of states come first, then given ones; names are owned */
    int state_count, shape_count;
    /* Then inputs with open dimensions that are not given: if `grows`, these are the states' length + `added`. */
    int growing_count;
    bool grows;
    int64_t added;
    int64_t size[STATEFUL_STEPS]; /* possible values of `added`: 1, and the sizes that are given */
    int size_count;
} onnx_source;

sdlf_status stateful_source_fill(onnx_source *source, const char *path, const sdlf_stateful_options *options);
void stateful_source_free(void *source);
sdlf_stateful_maker stateful_source_make;

#endif
