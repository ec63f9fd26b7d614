/* SPDX-License-Identifier: MIT */
/* What the kernels of softmax_cross_entropy share: the operation's parameters, the sums over its rows, and the computation of a row by one thread. */
#ifndef SDLF_CALCULATORS_CUDA_CROSS_ENTROPY_CUH
#define SDLF_CALCULATORS_CUDA_CROSS_ENTROPY_CUH

#include "calculators/cuda/kernels.cuh"

static const int WARP = 32;

template <typename T> struct cross_entropy {
    const T *logits, *dloss, *weights;
    const int32_t *labels;
    T *p, *loss, *dlogits; /* dloss, dlogits and weights may be NULL */
    double *metrics;       /* may be NULL */
    int64_t rows, classes;
    double share, most; /* target of another class; of the row's label */
    T share_rounded, most_rounded;
};

struct row_sums {
    double loss, weighted;
    int64_t correct, counted;
};

static __device__ __forceinline__ void add(row_sums &to, const row_sums &from)
{
    to.loss += from.loss;
    to.weighted += from.weighted;
    to.correct += from.correct;
    to.counted += from.counted;
}

/* Compute the loss from the sums over the batch, and add them to the metrics, whose values were `before`. */
template <typename T> static __device__ void finish(const cross_entropy<T> &e, row_sums all, double3 before)
{
    *e.loss = static_cast<T>(e.weights != nullptr ? all.weighted : all.loss / static_cast<double>(e.rows));
    if (e.metrics == nullptr) return;
    e.metrics[0] = before.x + all.loss;
    e.metrics[1] = before.y + static_cast<double>(all.correct);
    e.metrics[2] = before.z + static_cast<double>(all.counted);
}

template <typename T> static __device__ __forceinline__ double3 metrics_before(const cross_entropy<T> &e)
{
    return e.metrics != nullptr ? make_double3(e.metrics[0], e.metrics[1], e.metrics[2]) : make_double3(0, 0, 0);
}

/* What is read once per row, before anything is written: its label, its weight (1 if there are none), and the factor
 * of its gradient. */
template <typename T> struct row_terms {
    int32_t label;
    T weight, scale;
};

template <typename T> static __device__ __forceinline__ row_terms<T> terms_of(const cross_entropy<T> &e, int64_t n)
{
    T weight = e.weights != nullptr ? e.weights[n] : T(1) / static_cast<T>(e.rows);
    T scale = e.dloss != nullptr && weight != T(0) ? *e.dloss * weight : T(0);
    return {e.labels[n], e.weights != nullptr ? weight : T(1), scale};
}

/* An element's probability and gradient, and its share of the loss. */
template <typename T> struct row_element {
    T p, gradient;
    double loss;
};

/* Element j of a row, given log p. */
template <typename T>
static __device__ __forceinline__ row_element<T> element_of(const cross_entropy<T> &e, const row_terms<T> &row,
                                                            int64_t j, T log_p)
{
    bool is_label = j == row.label;
    double target = is_label ? e.most : e.share;
    T p = exp(log_p), off = p - (is_label ? e.most_rounded : e.share_rounded);
    return {p, row.weight != T(0) ? off * row.scale : T(0), target != 0 ? -target * static_cast<double>(log_p) : 0};
}

/* The same for row n: stores p and the gradient; returns the element's share of the loss. */
template <typename T>
static __device__ __forceinline__ double finish_element(const cross_entropy<T> &e, const row_terms<T> &row, int64_t n,
                                                        int64_t j, T log_p)
{
    const row_element<T> made = element_of(e, row, j, log_p);
    e.p[n * e.classes + j] = made.p;
    if (e.dlogits != nullptr) e.dlogits[n * e.classes + j] = made.gradient;
    return made.loss;
}

template <typename T>
static __device__ row_sums close_row(const cross_entropy<T> &e, const row_terms<T> &row, double loss, int64_t best)
{
    if (row.weight == T(0)) return {0, 0, 0, 0};
    if (row.label < 0 || row.label >= e.classes) loss = static_cast<double>(NAN);
    return {loss, static_cast<double>(row.weight) * loss, best == row.label, 1};
}

static __device__ __forceinline__ row_sums other_sums(const row_sums &all, int step)
{
    return {__shfl_xor_sync(0xffffffffu, all.loss, step), __shfl_xor_sync(0xffffffffu, all.weighted, step),
            __shfl_xor_sync(0xffffffffu, all.correct, step), __shfl_xor_sync(0xffffffffu, all.counted, step)};
}

static __device__ __forceinline__ row_sums add_warp(row_sums all)
{
    for (int step = WARP / 2; step > 0; step /= 2) add(all, other_sums(all, step));
    return all;
}

/* Computes a row with its logits in registers: MOST is at least the number of classes. */
template <int MOST, typename T> static __device__ row_sums row_of_thread(const cross_entropy<T> &e, int64_t n)
{
    const row_terms<T> row = terms_of(e, n);
    T x[MOST], sum = 0;
#pragma unroll
    for (int j = 0; j < MOST; j++) x[j] = j < e.classes ? e.logits[n * e.classes + j] : -INFINITY;
    T largest = x[0];
    int best = 0;
#pragma unroll
    for (int j = 1; j < MOST; j++) {
        if (x[j] > largest) {
            largest = x[j];
            best = j;
        }
    }
#pragma unroll
    for (int j = 0; j < MOST; j++) sum += j < e.classes ? exp(x[j] - largest) : T(0);
    T logarithm = log(sum);
    double loss = 0;
#pragma unroll
    for (int j = 0; j < MOST; j++) {
        if (j < e.classes) loss += finish_element(e, row, n, j, x[j] - largest - logarithm);
    }
    return close_row(e, row, loss, best);
}

/* Targets are computed once, in both precisions: a division of doubles takes as long as everything else for a row of 10 classes. */
template <typename T> static void set_targets(cross_entropy<T> &e, double smoothing)
{
    T rounded = static_cast<T>(smoothing);
    e.share = smoothing / static_cast<double>(e.classes);
    e.most = (1 - smoothing) + e.share;
    e.share_rounded = rounded / static_cast<T>(e.classes);
    e.most_rounded = (1 - rounded) + e.share_rounded;
}

#endif
