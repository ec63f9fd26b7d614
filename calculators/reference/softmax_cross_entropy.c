/* SPDX-License-Identifier: MIT */
/* softmax_cross_entropy: p = softmax(logits), loss = mean over the N rows of -sum over classes of t log p.
 *
 * The target t is (1 - smoothing) at the row's label plus smoothing / C everywhere; log p = x - max - log sum exp. */
#include "calculators/reference/reference.h"

#include <math.h>

static double target(const sdlf_operation *operation, int64_t label, int64_t j, int64_t classes)
{
    double smoothing = (double)operation->cross_entropy.smoothing;
    return (j == label ? 1 - smoothing : 0) + smoothing / (double)classes;
}

/* Row n: writes p, returns the row's loss and whether the largest logit (the first of equals) is the label's. */
static double forward_row(const sdlf_operation *operation, int64_t n, bool *correct)
{
    const sdlf_tensor *logits = &operation->in[0], *p = &operation->out[0];
    int64_t classes = logits->shape.dim[1], first = n * classes, label = ((const int32_t *)operation->in[1].data)[n];
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++) {
        if (get(logits, first + j) > get(logits, first + best)) best = j;
    }
    *correct = best == label;
    double largest = get(logits, first + best), sum = 0, loss = 0;
    for (int64_t j = 0; j < classes; j++) sum += exp(get(logits, first + j) - largest);
    for (int64_t j = 0; j < classes; j++) {
        double log_p = get(logits, first + j) - largest - log(sum), t = target(operation, label, j, classes);
        put(p, first + j, exp(log_p));
        if (t != 0) loss -= t * log_p;
    }
    return label >= 0 && label < classes ? loss : NAN;
}

/* The weight of row n's loss. */
static double weight(const sdlf_operation *operation, int64_t n)
{
    const sdlf_tensor *weights = &operation->in[3];
    return sdlf_tensor_present(weights) ? get(weights, n) : 1 / (double)operation->in[0].shape.dim[0];
}

/* dlogits = (p - t) dloss / N, or with the row's weight in place of 1 / N */
static void gradient(const sdlf_operation *operation, const sdlf_tensor *p, const sdlf_tensor *dlogits)
{
    int64_t rows = p->shape.dim[0], classes = p->shape.dim[1];
    for (int64_t e = 0; e < rows * classes; e++) {
        int64_t label = ((const int32_t *)operation->in[1].data)[e / classes];
        double w = weight(operation, e / classes);
        double difference = w != 0 ? get(p, e) - target(operation, label, e % classes, classes) : 0;
        put(dlogits, e, difference * w * get(&operation->in[2], 0));
    }
}

sdlf_status softmax_cross_entropy_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    int64_t rows = operation->in[0].shape.dim[0], hits = 0, counted = 0;
    double sum = 0, weighted = 0;
    for (int64_t n = 0; n < rows; n++) {
        bool correct;
        double loss = forward_row(operation, n, &correct), w = weight(operation, n);
        if (w == 0) continue;
        sum += loss;
        weighted += w * loss;
        if (correct) hits++;
        counted++;
    }
    put(&operation->out[1], 0, sdlf_tensor_present(&operation->in[3]) ? weighted : sum / (double)rows);
    if (sdlf_tensor_present(&operation->out[2])) {
        double *metrics = operation->out[2].data;
        metrics[0] += sum;
        metrics[1] += (double)hits;
        metrics[2] += (double)counted;
    }
    if (sdlf_tensor_present(&operation->out[3])) gradient(operation, &operation->out[0], &operation->out[3]);
    return SDLF_OK;
}

sdlf_status softmax_cross_entropy_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    gradient(operation, &operation->in[0], &operation->out[0]);
    return SDLF_OK;
}
