/* SPDX-License-Identifier: MIT */
/* How a plan's sizes, and values that the model is made with, follow from the length of its states. */
#ifndef SDLF_FRAMEWORK_STATEFUL_INTERNAL_H
#define SDLF_FRAMEWORK_STATEFUL_INTERNAL_H

#include <sdlf/stateful.h>

#include "framework/plan/plan_internal.h"

/* at length n: first + n slope */
typedef struct length_line {
    int64_t first, slope;
} length_line;

/* A size of the plan that is not the same for all lengths. */
typedef struct moving_size {
    int64_t *size;
    length_line line;
} moving_size;

/* A parameter whose values are not the same for all lengths: (outer, side, inner), of which the side may grow. An
 * element's place along it counts from the front or, as in a mask of what follows a position, from the end. */
typedef struct moving_values {
    int parameter;
    int64_t outer, inner, most; /* most: the side at the plan's own length */
    length_line side;
    bool from_end;
    double *first, *slope; /* of each element at the plan's own length */
    float *values;         /* room for them */
} moving_values;

typedef struct length_rule {
    bool straight; /* all of it follows lines; else a model is made for each length */
    moving_size *size;
    int size_count;
    moving_values *values;
    int values_count;
} length_rule;

/* A model for a length, and its plan without memory. */
typedef struct length_sample {
    int64_t length;
    sdlf_model *model;
    sdlf_plan *plan;
} length_sample;

/* Find the rule of a bound plan from models for other lengths; samples[0] is for its own, samples[1] for one less. */
sdlf_status length_rule_find(length_rule *rule, sdlf_plan *plan, const length_sample *samples, int count);
void length_rule_release(length_rule *rule);

/* Make the plan one for that length: by a straight rule; or as `sample` has it. */
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
    /* Behind them inputs whose open dimensions nobody gives: where `grows`, these are the states' length and `added` */
    int growing_count;
    bool grows;
    int64_t added;
    int64_t size[STATEFUL_STEPS]; /* what that may be: 1, and sizes that are given */
    int size_count;
} onnx_source;

sdlf_status stateful_source_fill(onnx_source *source, const char *path, const sdlf_stateful_options *options);
void stateful_source_free(void *source);
sdlf_stateful_maker stateful_source_make;

#endif
