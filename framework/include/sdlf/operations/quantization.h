/* SPDX-License-Identifier: MIT */
/* Quantised values: contracts and options of the operations on them.
 *
 * Q is uint8 or int8, independently for each operand; an element q represents (q - zero) scale. Integers are accumulated in
 * int32, modulo 2^32; all else is computed in float32, each operation rounded. round() rounds to the nearest integer, ties to
 * even. clamp() limits to [low, high], within y's type; a NaN becomes low, but stays a NaN if y is float32.
 *
 * Weight-only quantisation: a gemm with the operand `scale` has integers for b, with transpose_b and not transpose_a, and T is
 * float32; a calculator's `supports` says whether it can. Element (p,j) of b is (q[j,p] - zero[j,g]) scale[j,g], where q is the
 * operand b and g = p / block. With one block, it spans all of k; with several, block is the smallest multiple of 32 for which
 * they cover k. Without `zero`, q is int8 (n,k) and nothing is subtracted. With it, q is uint8 (n, 16 ceil(k / 32)) with two
 * 4-bit values per byte: of each 32 along k, the first 16 are the low halves of 16 bytes, the last 16 the high halves.
 *
 * quantize: y = clamp(round(x / scale) + zero), options in `quantize`.
 *   in: x float32   out: y Q
 *
 * dequantize: y = (x - zero) scale; zero and scale in `quantize`, whose low and high are ignored.
 *   in: x Q   out: y float32
 *
 * quantized_conv2d: y = clamp(round(s multiplier) + y_zero), s being a convolution; formula at its options.
 *   in: x (N,C,H,W) Q, w (K,C/G,R,S) int8, bias? (K) int32, multiplier? (K) float32, x_zero? (1) x's type
 *   out: y (N,K,P,Q) Q, float32 or int32
 * 2 N K P Q (C/G) R S operations. Row-major or channels last; x may stay row-major when y is channels last.
 *
 * quantized_add: y = clamp(round((a - a_zero) a_scale + (b - b_zero) b_scale) + y_zero). Without b the second term is absent,
 * which only rescales a. Equal shapes. y may alias a or b if both have one-byte elements.
 *   in: a Q, b? Q   out: y Q
 *
 * quantized_pool2d: the maximum or the mean of a window; formula at its options. Row-major or channels last.
 *   in: x (N,C,H,W) Q   out: y (N,C,P,Q) Q
 *
 * integer_matmul: (a - a_zero) (b - b_zero) for every matrix of a batch (...); formula at its options.
 *   in: a (...,m,k) Q, b (...,k,n) Q, a_zero? (1) or (m) a's type, b_zero? (1) or (n) b's type,
 *       scale? (1) or (n) float32, bias? (1) or (n) float32   out: y (...,m,n) int32, float32 or Q
 * 2 m n k operations per matrix.
 *
 * dynamic_quantize: uint8, with a range computed from x. With low the minimum of all x and 0, and high the maximum of
 * all x and 0: scale = (high - low) / 255, or 1 if that is 0; zero = clamp(round(-low / scale)), y = clamp(round(x /
 * scale) + zero), both to [0, 255]. The result for a NaN in x is unspecified.
 *   in: x float32   out: y uint8, scale (1) float32, zero (1) uint8
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked where the options are used: scales are finite and positive, scale multipliers finite, zero
 * points in the range of their operand's type, low <= high whole numbers in that of y. */
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

/* y[n,k,p,q] = clamp(round(s multiplier[k]) + y_zero), where s is
 *   bias[k] + sum over c,r,s of (x[n, ...] - x_zero) w[k,c,r,s], with windows, groups and letters as in conv2d_forward;
 * outside x the difference is 0. If y is float32, there is no rounding or zero point: y = clamp(s multiplier[k]). If y is
 * int32, without a multiplier, y = s. An operand x_zero overrides the option. The matrix product of (M,C) with the transpose
 * of (K,C) is the convolution of (M,C,1,1) with (K,C,1,1). */
typedef struct sdlf_quantized_conv2d_options {
    sdlf_window2d window;
    int groups;
    int x_zero, y_zero;
    float low, high; /* of y; for float32 any values, including infinities */
} sdlf_quantized_conv2d_options;

typedef struct sdlf_quantized_add_options {
    float a_scale, b_scale; /* the scale of a, and of b, divided by that of y */
    int a_zero, b_zero, y_zero;
    float low, high;
} sdlf_quantized_add_options;

/* y = clamp(round(v scale) + y_zero), where v is the maximum of x in the window minus x_zero; or, with
 * `average`, the sum of x - x_zero over the window's positions inside the input, with the scale divided
 * by their number, or by R S if count_padding. Every window contains an element of the input. */
typedef struct sdlf_quantized_pool2d_options {
    sdlf_window2d window;
    bool average; /* the mean instead of the maximum */
    bool count_padding;
    float scale; /* that of x divided by that of y */
    int x_zero, y_zero;
    float low, high;
} sdlf_quantized_pool2d_options;

/* For every matrix of a batch, of any number of axes, s = (a - a_zero) (b - b_zero); by the type of y:
 *   int32     y = s
 *   float32   y = clamp(s scale[j] + bias[j])
 *   Q         y = clamp(round(s scale[j] + bias[j]) + y_zero)
 * The operand a_zero has one element, or one for each row; b_zero, scale and bias have one, or one for
 * each column; they are the same for all matrices. If an operand is absent, the option replaces it, and no
 * bias is added. a and b may have any strides along the batch, but each of their matrices is row-major. */
typedef struct sdlf_integer_matmul_options {
    int a_zero, b_zero; /* if the operand of that name is absent */
    float scale;        /* likewise; the scale of a times that of b, divided by that of y */
    int y_zero;
    float low, high; /* of y, if one-byte or float32; for float32 they may be infinite */
} sdlf_integer_matmul_options;

#ifdef __cplusplus
}
#endif
#endif
