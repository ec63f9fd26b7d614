/* SPDX-License-Identifier: MIT */
/* Functions with which the checks of the operation classes are written.
 *
 * A check collects expectations; the first one that is not met sets its message, and later ones are
 * ignored:
 *
 *     sdlf_check check = {.operation = operation};
 *     sdlf_dtype t = sdlf_expect_floating(&check, x);
 *     sdlf_expect_rank(&check, x, 4);
 *     sdlf_expect_operand(&check, y, t, x->shape);
 *     return check.status;
 *
 * Messages identify operands by their position in operation->in or operation->out. An absent optional operand meets
 * every expectation. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_CHECK_H
#define SDLF_FRAMEWORK_OPERATIONS_CHECK_H

#include <sdlf/operation.h>

typedef struct sdlf_check {
    const sdlf_operation *operation;
    sdlf_status status;
} sdlf_check;

/* Has this dtype and this shape. */
void sdlf_expect_operand(sdlf_check *check, const sdlf_tensor *operand, sdlf_dtype dtype, sdlf_shape shape);
void sdlf_expect_dtype(sdlf_check *check, const sdlf_tensor *operand, sdlf_dtype dtype);
void sdlf_expect_shape(sdlf_check *check, const sdlf_tensor *operand, sdlf_shape shape);
void sdlf_expect_rank(sdlf_check *check, const sdlf_tensor *operand, int rank);
/* Has no gaps in its last two axes. */
void sdlf_expect_matrices(sdlf_check *check, const sdlf_tensor *operand, const char *name);

/* Is uint8 or int8, if present, with `zero` in the range of that type. */
void sdlf_expect_quantised(sdlf_check *check, const sdlf_tensor *x, const char *name, int zero);
/* y has 8-bit elements; the bounds are integers that its type can hold. */
void sdlf_expect_bounds(sdlf_check *check, const sdlf_tensor *y, double low, double high);

/* Is float32 or float64; returns which. */
sdlf_dtype sdlf_expect_floating(sdlf_check *check, const sdlf_tensor *operand);

/* An option: SDLF_ERROR_ARGUMENT with this message unless `met`. */
void sdlf_expect(sdlf_check *check, bool met, const char *format, ...) SDLF_PRINTF(3, 4);

/* low <= value <= high, or low <= value < high. A NaN is in no range. */
void sdlf_expect_between(sdlf_check *check, const char *name, double value, double low, double high);
void sdlf_expect_below(sdlf_check *check, const char *name, double value, double low, double high);

void sdlf_expect_axis(sdlf_check *check, int axis, const sdlf_tensor *operand);
void sdlf_expect_activation(sdlf_check *check, const sdlf_activation *activation);

/* A rule for sgd with the velocity `v`, which may be absent without momentum; and that a bias's velocity is present if
 * and only if both the bias and the weights' velocity are. */
void sdlf_expect_sgd(sdlf_check *check, const sdlf_sgd_rule *rule, const sdlf_tensor *v);
void sdlf_expect_bias_velocity(sdlf_check *check, const sdlf_tensor *v, const sdlf_tensor *b, const sdlf_tensor *bv);

/* A valid window that fits into x (.., H, W) at least once; returns its output size, {0, 0} if it is not met. */
typedef struct sdlf_size2d {
    int64_t side[2];
} sdlf_size2d;
sdlf_size2d sdlf_expect_window(sdlf_check *check, const sdlf_window2d *window, int64_t height, int64_t width);

/* The operands that determine a convolution, x (N,C,H,W) and w (K,.,R,S), and groups that divide both C and K; returns
 * its output size. */
sdlf_size2d sdlf_expect_convolution(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *w,
                                    const sdlf_window2d *window, int groups);

/* Every position of the window covers at least one element of the input, not only padding. */
void sdlf_expect_no_empty_window(sdlf_check *check, const sdlf_window2d *window, int64_t height, int64_t width);

/* a b c d, saturated to INT64_MAX: for counts of FLOPs. */
int64_t sdlf_product(int64_t a, int64_t b, int64_t c, int64_t d);
/* a + b >= 0, saturated to INT64_MAX. */
int64_t sdlf_sum(int64_t a, int64_t b);

#endif
