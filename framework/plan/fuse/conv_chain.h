/* SPDX-License-Identifier: MIT */
/* Convolutions behind each other, of which nobody sees what lies between: what the rules that join such look for. */
#ifndef SDLF_FRAMEWORK_PLAN_FUSE_CONV_CHAIN_H
#define SDLF_FRAMEWORK_PLAN_FUSE_CONV_CHAIN_H

#include "framework/plan/passes.h"

/* A convolution with constant weights and bias, for which no algorithm was asked for: a calculator may make them ready
 * once. */
bool conv_chain_is_plain(const sdlf_plan *plan, const sdlf_operation *operation);
/* 1x1, and of every pixel. */
bool conv_chain_is_pointwise(const sdlf_operation *conv);
/* A filter a channel. */
bool conv_chain_is_depthwise(const sdlf_operation *conv);
/* The only step that reads what step i makes, all of it and under the same shape, if that is the image of a plain
 * convolution (not its residual) by the same calculator; else -1. */
int conv_chain_next(const sdlf_plan *plan, int i);

#endif
