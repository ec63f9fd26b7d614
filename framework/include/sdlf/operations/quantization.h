/* SPDX-License-Identifier: MIT */
/* Quantised numbers: a byte q, uint8 or int8, stands for (q - zero) scale. The options of quantised operations;
 * <sdlf/operations/kinds.h> has their formulas.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by what takes them: scales are finite and positive, multipliers of a scale finite, zeros
 * in the range of their operand's type, low <= high whole numbers in that of y. */
#ifndef SDLF_OPERATIONS_QUANTIZATION_H
#define SDLF_OPERATIONS_QUANTIZATION_H

#include <stdbool.h>

#include <sdlf/operations/window.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_quantize_options {
    float scale;
    int zero;
    float low, high; /* quantize: of y */
} sdlf_quantize_options;

typedef struct sdlf_quantized_conv2d_options {
    sdlf_window2d window;
    int groups;
    int x_zero, y_zero;
    float low, high; /* of y; where that is float32, any numbers, infinities too */
} sdlf_quantized_conv2d_options;

typedef struct sdlf_quantized_add_options {
    float a_scale, b_scale; /* that of a, and of b, divided by that of y */
    int a_zero, b_zero, y_zero;
    float low, high;
} sdlf_quantized_add_options;

typedef struct sdlf_quantized_pool2d_options {
    sdlf_window2d window;
    bool average; /* the mean, not the largest */
    bool count_padding;
    float scale; /* of x divided by that of y */
    int x_zero, y_zero;
    float low, high;
} sdlf_quantized_pool2d_options;

typedef struct sdlf_integer_matmul_options {
    int a_zero, b_zero; /* where there are no operands of that name */
    float scale;        /* likewise; that of a times that of b, divided by that of y */
    int y_zero;
    float low, high; /* of y: of bytes, or of float32, where they may be infinite */
} sdlf_integer_matmul_options;

#ifdef __cplusplus
}
#endif
#endif
