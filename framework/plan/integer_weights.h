/* SPDX-License-Identifier: MIT */
/* Integer weights: float32 weights that are whole multiples of one scale per filter, as the weights of quantised
 * networks are. Nothing in a model marks them; they are detected by value, so they survive every file format, and stop
 * being integer weights once training has changed them. */
#ifndef SDLF_FRAMEWORK_PLAN_INTEGER_WEIGHTS_H
#define SDLF_FRAMEWORK_PLAN_INTEGER_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/status.h>

/* For a convolution or GEMM whose weights are integers: the derived buffers (BUFFER_DERIVED) and the parameters that
 * they are computed from. With weight[k][i] = integer scale_k, these are the integers, int8; round(bias[k] /
 * (x_scale scale_k)), int32; and (x_scale scale_k) / y_scale, by which accumulators are multiplied before they are
 * quantised. */
typedef struct plan_integers {
    int weight, bias;      /* parameters; bias may be -1 */
    int64_t filters, each; /* weights are (filters, each), or, transposed, (each, filters) */
    bool transposed;
    float x_scale, y_scale, factor;
    int factors;  /* a parameter, one value per filter; -1: none */
    float *scale; /* of each filter when the plan was made: the first guess when scales are found again */
    int integers, bias_sums, multipliers; /* buffers */
} plan_integers;

/* The weights (units, inputs) of a fully connected layer as integers with a scale, and for 4 bits a zero point, per
 * block of inputs (framework/operations/gemm_weight_only.h). */
typedef struct plan_weight_only {
    int weight; /* parameter */
    int64_t units, inputs, block, blocks;
    bool halves;                 /* 4-bit integers; otherwise 8-bit */
    float *scale, *zero;         /* of each block, until they are copied into their buffers */
    int integers, scales, zeros; /* buffers */
} plan_weight_only;

/* True if each of `count` values is an integer of [-128, 127] times *scale, the largest scale for which that holds.
 * Then *low and *high are the smallest and largest of the integers. */
bool plan_find_largest_scale(const float *weight, int64_t count, double *scale, int *low, int *high);

/* True if each of `count` values is an integer of [-128, 127] times *scale. On entry *scale is a guess, or 0. */
bool plan_find_scale(const float *weight, int64_t count, double *scale);

/* The filter's bias in units of `scale`, as added to its accumulator. False if it is NaN, or so large that the
 * accumulator could leave int32. */
bool plan_find_bias_sum(float bias, double scale, int32_t *sum);

/* Iterates over the filters of such weights in order. Transposed weights are gathered several filters at a time into
 * `tile`, which the caller frees. */
enum { PLAN_FILTERS_TOGETHER = 16 };
typedef struct plan_filters {
    const float *weight;
    int64_t filters, each, first; /* first: first filter in the tile */
    float *tile;                  /* NULL: filters are contiguous in `weight` */
} plan_filters;
sdlf_status plan_filters_open(plan_filters *f, const plan_integers *w, const float *weight);
const float *plan_filters_at(plan_filters *f, int64_t k);

#endif
