/* SPDX-License-Identifier: MIT */
/* Shared by the rules of qdq_integers.c and qdq_products.c: the origins of 8-bit operands, and where results are
 * quantised. */
#ifndef SDLF_FRAMEWORK_PLAN_FUSE_QDQ_OPERANDS_H
#define SDLF_FRAMEWORK_PLAN_FUSE_QDQ_OPERANDS_H

#include "framework/plan/passes.h"

/* The 8-bit tensor from which a value is dequantised. */
typedef struct origin {
    sdlf_tensor bytes; /* in the value's shape */
    float scale;
    int zero;
    sdlf_tensor zero_point; /* one byte that is subtracted instead of `zero`; absent: none */
} quantized_origin;

/* The destination of a result: y in the result's shape, and the step that quantises it; -1: it stays float32. */
typedef struct target {
    sdlf_tensor y;
    float scale, low, high;
    int zero, step;
} quantized_target;

/* False if x is not the result of a dequantize, or a conversion, of bytes. */
bool plan_quantized_origin(const sdlf_plan *plan, const sdlf_tensor *x, const sdlf_calculator *calculator,
                           quantized_origin *from);
/* For the output of step i. */
quantized_target plan_quantized_target(const sdlf_plan *plan, int i);
/* Applies an activation to results that are quantised afterwards, as bounds. False if bounds cannot express it. */
bool plan_quantized_bound(const sdlf_activation *activation, quantized_target *to);
/* True if step i's calculator supports the fused operation. */
bool plan_quantized_is_taken(const sdlf_plan *plan, int i, const sdlf_operation *fused);
/* Replaces step i by the fused operation and removes a quantize after it, and steps that only produced its inputs. */
sdlf_status plan_quantized_replace(sdlf_plan *plan, int i, const quantized_target *to, const sdlf_operation *fused);

/* qdq_products.c: turns step i into quantized_conv2d where possible. */
sdlf_status plan_fuse_qdq_product(sdlf_plan *plan, int i);

#endif
