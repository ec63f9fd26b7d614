/* SPDX-License-Identifier: MIT */
/* The weights and biases that inference derives from a model's parameters (plan_fold): those of a product with the
 * affine function after it, and the sums of several of them, with their kernels at their positions in a larger one. */
#include "framework/plan/passes.h"

#include <math.h>
#include <stdlib.h>

sdlf_status plan_derive_weights(sdlf_plan *plan, sdlf_operation *product, sdlf_shape weights)
{
    const sdlf_dtype dtype = plan->options.dtype;
    sdlf_status status = plan_new_tensor(plan, BUFFER_DERIVED, dtype, weights, &product->in[1]);
    if (status == SDLF_OK)
        status = plan_new_tensor(plan, BUFFER_DERIVED, dtype, sdlf_shape(weights.dim[0]), &product->in[2]);
    return status;
}

sdlf_status plan_add_fold(sdlf_plan *plan, const plan_fold *fold, const sdlf_operation *product)
{
    plan_fold *folds = realloc(plan->folds, (size_t)(plan->fold_count + 1) * sizeof *folds);
    if (folds == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan->folds = folds;
    folds[plan->fold_count] = *fold;
    folds[plan->fold_count].folded_weight = product->in[1].buffer;
    folds[plan->fold_count].folded_bias = product->in[2].buffer;
    plan->buffers[product->in[1].buffer].fold = plan->buffers[product->in[2].buffer].fold = plan->fold_count;
    plan->fold_count++;
    return SDLF_OK;
}

/* True if the weights are a part of those of several branches. */
static bool is_branch(const plan_fold *fold)
{
    return fold->whole[0] > 0;
}

/* A position in a filter of all branches: input channel of the group, row, column. */
typedef struct tap {
    int64_t channel, y, x;
} tap;

static tap tap_of(const plan_fold *fold, int64_t element)
{
    return (tap){element / fold->whole[1] / fold->whole[0], element / fold->whole[1] % fold->whole[0],
                 element % fold->whole[1]};
}

static void next_tap(const plan_fold *fold, tap *at)
{
    if (++at->x < fold->whole[1]) return;
    at->x = 0;
    if (++at->y < fold->whole[0]) return;
    at->y = 0;
    at->channel++;
}

/* The branch's weight there, of output channel k. */
static double weight_at(const plan_fold *fold, const float *weight, int64_t k, const tap *at)
{
    const int64_t y = at->y - fold->first[0], x = at->x - fold->first[1];
    if (y < 0 || y >= fold->kernel[0] || x < 0 || x >= fold->kernel[1]) return 0;
    if (weight == NULL) return at->channel == k % fold->group_channels;
    return weight[((k * fold->group_channels + at->channel) * fold->kernel[0] + y) * fold->kernel[1] + x];
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
        row = is_branch(fold) ? fold->group_channels * fold->whole[0] * fold->whole[1]
                              : sdlf_shape_count(parameters[fold->weight].spec.shape) / fold->channels;
    for (int64_t at = first; at < first + count;) {
        int64_t k = at / row, end = (k + 1) * row < first + count ? (k + 1) * row : first + count;
        for (int i = 0; i < 5; i++)
            if (part[i] >= 0) of[i] = ((const float *)parameters[part[i]].value.data)[k];
        double s = fold->factor * of[1] / sqrt(of[4] + fold->epsilon), folded_bias = (of[0] - of[3]) * s + of[2];
        tap here = !bias && is_branch(fold) ? tap_of(fold, at - k * row) : (tap){0};
        for (; at < end; at++) {
            double value = folded_bias;
            if (!bias && !is_branch(fold)) value = weight[at] * s;
            if (!bias && is_branch(fold)) {
                value = weight_at(fold, weight, k, &here) * s;
                next_tap(fold, &here);
            }
            out[at - first] = adds ? out[at - first] + value : value;
        }
    }
}

void plan_compute_fold(const sdlf_plan *plan, const plan_fold *fold, bool bias, int64_t first, int64_t count,
                       double *out)
{
    add_fold(plan, fold, bias, first, count, false, out);
    for (int next = fold->next; next > 0; next = plan->folds[next - 1].next)
        add_fold(plan, &plan->folds[next - 1], bias, first, count, true, out);
}
