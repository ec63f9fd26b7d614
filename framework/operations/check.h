/* SPDX-License-Identifier: MIT */
/* What the checks of the operation classes are written with.
 *
 * A check collects expectations; the first one that is not met leaves its message, and those after it are not looked
 * at:
 *
 *     sdlf_check check = {.operation = operation};
 *     sdlf_dtype t = sdlf_expect_floating(&check, x);
 *     sdlf_expect_rank(&check, x, 4);
 *     sdlf_expect_operand(&check, y, t, x->shape);
 *     return check.status;
 *
 * Operands are named in messages by their place in operation->in or operation->out. An absent optional operand meets
 * every expectation. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_CHECK_H
#define SDLF_FRAMEWORK_OPERATIONS_CHECK_H

#include <sdlf/operation.h>

typedef struct sdlf_check {
    const sdlf_operation *operation;
    sdlf_status status;
} sdlf_check;

/* This dtype and this shape. */
void sdlf_expect_operand(sdlf_check *check, const sdlf_tensor *operand, sdlf_dtype dtype, sdlf_shape shape);
void sdlf_expect_dtype(sdlf_check *check, const sdlf_tensor *operand, sdlf_dtype dtype);
void sdlf_expect_shape(sdlf_check *check, const sdlf_tensor *operand, sdlf_shape shape);
void sdlf_expect_rank(sdlf_check *check, const sdlf_tensor *operand, int rank);
/* The last two axes without gaps. */
void sdlf_expect_matrices(sdlf_check *check, const sdlf_tensor *operand, const char *name);

/* uint8 or int8, if it is there; and its zero in that range. */
void sdlf_expect_quantised(sdlf_check *check, const sdlf_tensor *x, const char *name, int zero);
/* Bounds of y, which is of bytes: whole numbers that its type holds. */
void sdlf_expect_bounds(sdlf_check *check, const sdlf_tensor *y, double low, double high);

/* float32 or float64; returns which. */
sdlf_dtype sdlf_expect_floating(sdlf_check *check, const sdlf_tensor *operand);

/* An option: SDLF_ERROR_ARGUMENT with this message unless `met`. */
void sdlf_expect(sdlf_check *check, bool met, const char *format, ...) SDLF_PRINTF(3, 4);

/* low <= value <= high, or low <= value < high. A NaN lies in no range. */
void sdlf_expect_between(sdlf_check *check, const char *name, double value, double low, double high);
void sdlf_expect_below(sdlf_check *check, const char *name, double value, double low, double high);

void sdlf_expect_axis(sdlf_check *check, int axis, const sdlf_tensor *operand);
void sdlf_expect_activation(sdlf_check *check, const sdlf_activation *activation);

/* A rule for sgd with the velocity `v`, which may be absent where there is no momentum; and that a bias's velocity is
 * there if and only if both the bias and the weights' velocity are. */
void sdlf_expect_sgd(sdlf_check *check, const sdlf_sgd_rule *rule, const sdlf_tensor *v);
void sdlf_expect_bias_velocity(sdlf_check *check, const sdlf_tensor *v, const sdlf_tensor *b, const sdlf_tensor *bv);

/* A sane window that fits into x (.., H, W) at least once; its output size. {0, 0} where it is not so. */
typedef struct sdlf_size2d {
    int64_t side[2];
} sdlf_size2d;
sdlf_size2d sdlf_expect_window(sdlf_check *check, const sdlf_window2d *window, int64_t height, int64_t width);

/* The operands from which all of a convolution follows, x (N,C,H,W) and w (K,.,R,S), and groups that divide both C and
 * K; the size of its output. */
sdlf_size2d sdlf_expect_convolution(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *w,
                                    const sdlf_window2d *window, int groups);

/* Every position of the window holds at least one element of the input, and not only padding. */
void sdlf_expect_no_empty_window(sdlf_check *check, const sdlf_window2d *window, int64_t height, int64_t width);

/* a b c d, or INT64_MAX where that is less: for counts of FLOPs. */
int64_t sdlf_product(int64_t a, int64_t b, int64_t c, int64_t d);
/* a + b >= 0, or INT64_MAX where that is less. */
int64_t sdlf_sum(int64_t a, int64_t b);

#endif
