/* SPDX-License-Identifier: MIT */
/* Losses. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_LOSS_H
#define SDLF_LAYERS_LOSS_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Mean cross-entropy of logits (N,C) and labels (N) int32. Output 0 is the scalar loss that a training plan minimises:
 * the mean over n of -sum over c of t[n,c] log p[n,c], p = softmax(logits), t = (1 - smoothing) onehot(label) +
 * smoothing / C. A label outside [0, C) makes it NaN. For sequences, logits (N,T,C) and labels (N,T), the mean is over
 * all N T positions; for images, logits (N,C,H,W) and labels (N,H,W), over all N H W pixels. A trainer adds this layer
 * to a network that ends in softmax or in logits. */
typedef struct sdlf_softmax_cross_entropy_options {
    const char *name;
    float smoothing;   /* label smoothing, in [0, 1); default 0 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_softmax_cross_entropy_options;
sdlf_node sdlf_softmax_cross_entropy(sdlf_model *model, sdlf_node logits, sdlf_node labels,
                                     const sdlf_softmax_cross_entropy_options *options);
/* The same with weights (N): the weighted sum of the rows' losses instead of their mean. Rows of weight 0 do not count;
 * to average over L labelled nodes, set their weights to 1 / L. */
sdlf_node sdlf_softmax_cross_entropy_weighted(sdlf_model *model, sdlf_node logits, sdlf_node labels, sdlf_node weights,
                                              const sdlf_softmax_cross_entropy_options *options);

/* Losses against float targets of the same shape (N,...), averaged over all elements; with d = x - t:
 *   mse: d^2   mae: |d|   huber: d^2 / 2 where |d| < delta, else delta (|d| - delta / 2)
 *   bce_with_logits: -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))
 *     There is one target from 0 to 1 for each label, and a sample may
 *     have several labels. The accuracy of a sample is the share of its
 *     labels for which x > 0 exactly when t > 1/2. */
typedef struct sdlf_huber_options {
    const char *name;
    float delta;       /* default 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_huber_options;
sdlf_node sdlf_mse(sdlf_model *model, sdlf_node x, sdlf_node targets);
sdlf_node sdlf_mae(sdlf_model *model, sdlf_node x, sdlf_node targets);
sdlf_node sdlf_huber(sdlf_model *model, sdlf_node x, sdlf_node targets, const sdlf_huber_options *options);
sdlf_node sdlf_bce_with_logits(sdlf_model *model, sdlf_node logits, sdlf_node targets);

#ifdef __cplusplus
}
#endif

#endif
