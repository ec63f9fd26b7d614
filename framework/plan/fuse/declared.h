/* SPDX-License-Identifier: MIT */
/* Where a fusion that a calculator declares finds its pattern. */
#ifndef SDLF_FRAMEWORK_PLAN_FUSE_DECLARED_H
#define SDLF_FRAMEWORK_PLAN_FUSE_DECLARED_H

#include <sdlf/fusion.h>

#include "framework/plan/passes.h"

typedef struct fusion_match {
    const sdlf_fusion *fusion;
    const sdlf_calculator *calculator;
    unsigned variant;
    int step[SDLF_FUSION_MEMBERS]; /* -1: not found (yet), or not in this variant */
    sdlf_operation fused;          /* once all are found */
} fusion_match;

/* The first fusion that the step's calculator declares and takes with that step as a member. */
bool plan_match_fusion(const sdlf_plan *plan, int step, fusion_match *match);
/* The fused operation in the place of its members. */
sdlf_status plan_take_fusion(sdlf_plan *plan, const fusion_match *match);

#endif
