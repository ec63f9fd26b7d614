/* SPDX-License-Identifier: MIT */
/* What the rules of qdq_integers.c and qdq_products.c share: where operands of bytes come from, and where results are
 * quantised. */
#ifndef SDLF_FRAMEWORK_PLAN_FUSE_QDQ_OPERANDS_H
#define SDLF_FRAMEWORK_PLAN_FUSE_QDQ_OPERANDS_H

#include "framework/plan/passes.h"

/* Where a value comes from that stands for bytes. */
typedef struct origin {
    sdlf_tensor bytes; /* in the value's shape */
    float scale;
    int zero;
    sdlf_tensor zero_point; /* one byte that is subtracted, instead of `zero`; absent: none */
} quantized_origin;

/* Where a result goes: y in the result's shape, and the step that quantises it; -1: it stays float32. */
typedef struct target {
    sdlf_tensor y;
    float scale, low, high;
    int zero, step;
} quantized_target;

/* False: x is not what a dequantize, or a conversion, makes of bytes. */
bool plan_quantized_origin(const sdlf_plan *plan, const sdlf_tensor *x, const sdlf_calculator *calculator,
                           quantized_origin *from);
/* Of what step i makes. */
quantized_target plan_quantized_target(const sdlf_plan *plan, int i);
/* What an activation does to results that are quantised afterwards: bounds. False: something else. */
bool plan_quantized_bound(const sdlf_activation *activation, quantized_target *to);
/* Does step i's calculator take the fused operation? */
bool plan_quantized_is_taken(const sdlf_plan *plan, int i, const sdlf_operation *fused);
/* Step i becomes the fused operation; a quantize behind it, and what only made its inputs, goes. */
sdlf_status plan_quantized_replace(sdlf_plan *plan, int i, const quantized_target *to, const sdlf_operation *fused);

/* qdq_products.c: step i as quantized_conv2d, where it can be that. */
sdlf_status plan_fuse_qdq_product(sdlf_plan *plan, int i);

#endif
