/* SPDX-License-Identifier: MIT */
/* The weights and biases that inference derives from a model's parameters (plan_fold): those of a product with the
 * affine function after it, and the sums of several of them, with their kernels at their positions in a larger one. */
#include "framework/plan/passes.h"

#include <math.h>

/* Element e of the filter of output channel k, before the channel's factor. */
static double filter_element(const plan_fold *fold, const float *weight, int64_t row, int64_t k, int64_t e)
{
    if (fold->whole[0] == 0) return weight[k * row + e];
    const int64_t x = e % fold->whole[1] - fold->first[1], rest = e / fold->whole[1];
    const int64_t y = rest % fold->whole[0] - fold->first[0], channel = rest / fold->whole[0];
    if (x < 0 || x >= fold->kernel[1] || y < 0 || y >= fold->kernel[0]) return 0;
    if (weight == NULL) return channel == k % fold->group_channels;
    return weight[((k * fold->group_channels + channel) * fold->kernel[0] + y) * fold->kernel[1] + x];
}

/* Writes, or adds, the values of one fold. */
static void add_fold(const sdlf_plan *plan, const plan_fold *fold, bool bias, int64_t first, int64_t count, bool adds,
                     double *out)
{
    const sdlf_parameter *parameters = plan->model->parameters;
    const float *weight = fold->weight >= 0 ? parameters[fold->weight].value.data : NULL;
    const int part[] = {fold->bias, fold->scale, fold->shift, fold->mean, fold->variance};
    double of[] = {0, 1, 0, 0, 1}; /* of the channel */
    int64_t row = 1;
    if (!bias)
        row = fold->whole[0] > 0 ? fold->group_channels * fold->whole[0] * fold->whole[1]
                                 : sdlf_shape_count(parameters[fold->weight].spec.shape) / fold->channels;
    for (int64_t at = first; at < first + count;) {
        int64_t k = at / row, end = (k + 1) * row < first + count ? (k + 1) * row : first + count;
        for (int i = 0; i < 5; i++)
            if (part[i] >= 0) of[i] = ((const float *)parameters[part[i]].value.data)[k];
        double s = fold->factor * of[1] / sqrt(of[4] + fold->epsilon), folded_bias = (of[0] - of[3]) * s + of[2];
        for (; at < end; at++) {
            double value = bias ? folded_bias : filter_element(fold, weight, row, k, at - k * row) * s;
            out[at - first] = adds ? out[at - first] + value : value;
        }
    }
}

void plan_compute_fold(const sdlf_plan *plan, const plan_fold *fold, bool bias, int64_t first, int64_t count,
                       double *out, sdlf_dtype dtype)
{
    add_fold(plan, fold, bias, first, count, false, out);
    for (int next = fold->next; next > 0; next = plan->folds[next - 1].next)
        add_fold(plan, &plan->folds[next - 1], bias, first, count, true, out);
    for (int64_t i = 0; dtype == SDLF_FLOAT32 && i < count; i++) ((float *)out)[i] = (float)out[i];
}
