/* SPDX-License-Identifier: MIT */
/* Quantised numbers: contracts and options of the operations on them.
 *
 * Q is uint8 or int8, each operand its own; an element q stands for (q - zero) scale. Sums are of integers in int32, modulo
 * 2^32; all else is computed in float32, each operation rounded. round() goes to the nearest integer, ties to even; clamp()
 * to [low, high], within y's type, a NaN to low, except where y is float32: there it stays a NaN.
 *
 * A gemm with the operand `scale` has integers for b, which is transposed (a is not), and T is float32; a calculator says in
 * `supports` whether it takes that. The element of b at (p,j) is (q[j,p] - zero[j,g]) scale[j,g], where q is the operand b
 * and g = p / block. One block is all of k; of several, block is the smallest multiple of 32 for which they hold k. Without
 * `zero`, q is int8 (n,k) and nothing is subtracted. With it, q is uint8 (n, 16 ceil(k / 32)) and has two numbers of 4 bits
 * in each byte: of each 32 along k the first 16 are the low halves of 16 bytes, the last 16 the high halves.
 *
 * quantize: y = clamp(round(x / scale) + zero), options in `quantize`.
 *   in: x float32   out: y Q
 *
 * dequantize: y = (x - zero) scale; zero and scale in `quantize`, whose low and high have no part.
 *   in: x Q   out: y float32
 *
 * quantized_conv2d: y = clamp(round(s multiplier) + y_zero), s a convolution's; formula at its options.
 *   in: x (N,C,H,W) Q, w (K,C/G,R,S) int8, bias? (K) int32, multiplier? (K) float32, x_zero? (1) x's type
 *   out: y (N,K,P,Q) Q, float32 or int32
 * 2 N K P Q (C/G) R S operations. Row-major or channels last; beside a y that is channels last x may stay row-major.
 *
 * quantized_add: y = clamp(round((a - a_zero) a_scale + (b - b_zero) b_scale) + y_zero); without b there is no second term:
 * the same numbers by another scale. Equal shapes. y may alias a or b where both are of one byte.
 *   in: a Q, b? Q   out: y Q
 *
 * quantized_pool2d: the largest or the mean of a window; formula at its options. Row-major or channels last.
 *   in: x (N,C,H,W) Q   out: y (N,C,P,Q) Q
 *
 * integer_matmul: (a - a_zero) (b - b_zero) for every matrix of a batch (...); formula at its options.
 *   in: a (...,m,k) Q, b (...,k,n) Q, a_zero? (1) or (m) a's type, b_zero? (1) or (n) b's type,
 *       scale? (1) or (n) float32, bias? (1) or (n) float32   out: y (...,m,n) int32, float32 or Q
 * 2 m n k operations a matrix.
 *
 * dynamic_quantize: uint8 of a range that x has itself. With low the least of all x and 0, and high the largest of them
 * and 0: scale = (high - low) / 255, or 1 where that range is 0; zero = clamp(round(-low / scale)), y =
 * clamp(round(x / scale) + zero) to [0, 255]. What a NaN in x comes to is left open.
 *   in: x float32   out: y uint8, scale (1) float32, zero (1) uint8
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

/* y[n,k,p,q] = clamp(round(s multiplier[k]) + y_zero), where s is
 *   bias[k] + the sum over c,r,s of (x[n, ...] - x_zero) w[k,c,r,s], windows, groups and letters as in conv2d_forward;
 * outside of x the difference is 0. Into float32 there is no rounding and no zero: y = clamp(s multiplier[k]). Into int32,
 * without a multiplier, y = s. An operand x_zero stands for the option's number. A product of matrices (M,C) and (K,C), the
 * second one transposed, is the convolution of (M,C,1,1) with (K,C,1,1). */
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

/* y = clamp(round(v scale) + y_zero), where v is the largest x of the window less x_zero; or, with `average`, the sum of
 * x - x_zero over the window's positions inside the input, and the scale is divided by their number, or by R S if
 * count_padding. Every window holds an element of the input. */
typedef struct sdlf_quantized_pool2d_options {
    sdlf_window2d window;
    bool average; /* the mean, not the largest */
    bool count_padding;
    float scale; /* of x divided by that of y */
    int x_zero, y_zero;
    float low, high;
} sdlf_quantized_pool2d_options;

/* For every matrix of a batch, of any number of axes, s = (a - a_zero) (b - b_zero), and by the type of y:
 *   int32     y = s
 *   float32   y = clamp(s scale[j] + bias[j])
 *   Q         y = clamp(round(s scale[j] + bias[j]) + y_zero)
 * The operand a_zero is one number, or one for each row; b_zero, scale and bias are one, or one for each column, of all
 * matrices. Without these operands the options' numbers stand for them, and no bias is added. a and b may have any strides
 * along the batch, while each of their matrices is row-major. */
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
