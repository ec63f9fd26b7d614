/* SPDX-License-Identifier: MIT */
/* What the rules that end in an SGD update share: finding the update of a gradient, and moving it to where that is
 * made. */
#ifndef SDLF_FRAMEWORK_PLAN_FUSE_UPDATES_H
#define SDLF_FRAMEWORK_PLAN_FUSE_UPDATES_H

#include "framework/plan/passes.h"

/* The sgd_update that is the only reader of `gradient`, which only step `producer` writes, on the same calculator; -1:
 * there is none, or the gradient is wanted otherwise: kept for the caller, or clipped by the norm of all of them. */
int plan_find_sgd(const sdlf_plan *plan, int producer, const sdlf_tensor *gradient);

/* Do a bias and its weights follow one rule (but for decay) with one rate, both with a velocity or both without? */
bool plan_is_one_rule(const sdlf_operation *weights, const sdlf_operation *bias);

/* May the parameter that step `update` changes be changed at step `to` already? Not where another step in between still
 * wants its old value; `absorbed` (-1: none) does not count, as it becomes part of step `to`. */
bool plan_may_update_at(const sdlf_plan *plan, int update, int to, int absorbed);

/* The rule. It looks at one step of the backward pass. */
sdlf_status plan_fuse_conv_update(sdlf_plan *plan, int step);

#endif
