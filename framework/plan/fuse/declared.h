/* SPDX-License-Identifier: MIT */
/* Matching of the fusion patterns that calculators declare. */
#ifndef SDLF_FRAMEWORK_PLAN_FUSE_DECLARED_H
#define SDLF_FRAMEWORK_PLAN_FUSE_DECLARED_H

#include <sdlf/fusion.h>

#include "framework/plan/passes.h"

typedef struct fusion_match {
    const sdlf_fusion *fusion;
    const sdlf_calculator *calculator;
    unsigned variant;
    int step[SDLF_FUSION_MEMBERS]; /* -1: not found yet, or not part of this variant */
    sdlf_operation fused;          /* valid once all members are found */
} fusion_match;

/* Finds the first fusion that the step's calculator declares and supports with that step as a member. */
bool plan_match_fusion(const sdlf_plan *plan, int step, fusion_match *match);
/* Replaces the members by the fused operation. */
sdlf_status plan_take_fusion(sdlf_plan *plan, const fusion_match *match);

#endif
