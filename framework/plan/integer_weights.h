/* SPDX-License-Identifier: MIT */
/* Weights of integers: those that a model has as float32 though they are whole multiples of one number for each filter,
 * as the weights of quantised networks are. Nothing in a model marks them: they are found by their values, so that they
 * stay what they are in every format, and are none any more once training has moved them. */
#ifndef SDLF_FRAMEWORK_PLAN_INTEGER_WEIGHTS_H
#define SDLF_FRAMEWORK_PLAN_INTEGER_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/status.h>

/* Of a product whose weights are integers: buffers that are worked out (BUFFER_DERIVED), and the parameters that they
 * come from. With
 * weight[k][i] = integer scale_k: the integers, int8; round(bias[k] / (x_scale scale_k)), int32; and (x_scale scale_k)
 * / y_scale, times what sums are multiplied by before they are quantised. */
typedef struct plan_integers {
    int weight, bias;      /* parameters; bias may be -1 */
    int64_t filters, each; /* weights are (filters, each), or, transposed, (each, filters) */
    bool transposed;
    float x_scale, y_scale, factor;
    int factors;  /* a parameter, one number for each filter; -1: none */
    float *scale; /* of each filter, as it was when the plan was made: where to look for it first */
    int integers, bias_sums, multipliers; /* buffers */
} plan_integers;

/* A fully connected layer's weights (units, inputs) as integers with a scale, and of 4 bits a zero point, for each
 * block of inputs (framework/operations/gemm_weight_only.h). */
typedef struct plan_weight_only {
    int weight; /* parameter */
    int64_t units, inputs, block, blocks;
    bool halves;                 /* of 4 bits, else of 8 */
    float *scale, *zero;         /* of each block, until they are where they belong */
    int integers, scales, zeros; /* buffers */
} plan_weight_only;

/* `count` numbers: is each an integer of [-128, 127] times *scale, which is the largest that does it? Then *low and
 * *high are the least and greatest of the integers. */
bool plan_find_largest_scale(const float *weight, int64_t count, double *scale, int *low, int *high);

/* `count` numbers: is each an integer of [-128, 127] times *scale? On the way in *scale is a guess, or 0. */
bool plan_find_scale(const float *weight, int64_t count, double *scale);

/* What a filter's bias adds to its sum, in units of `scale`; false: it is no number, or so large that the sum could
 * leave int32. */
bool plan_find_bias_sum(float bias, double scale, int32_t *sum);

/* The filters of such weights one after the other, in order: of transposed ones some are brought together at a time. Free
 * `tile`. */
enum { PLAN_FILTERS_TOGETHER = 16 };
typedef struct plan_filters {
    const float *weight;
    int64_t filters, each, first; /* first: of those in the tile */
    float *tile;                  /* NULL: they lie in `weight` as they are */
} plan_filters;
sdlf_status plan_filters_open(plan_filters *f, const plan_integers *w, const float *weight);
const float *plan_filters_at(plan_filters *f, int64_t k);

#endif
