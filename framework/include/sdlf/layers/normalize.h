/* SPDX-License-Identifier: MIT */
/* Normalisation layers. They divide by the biased variance (the sum of squared deviations divided by their number); the
 * running variance that batch_norm2d keeps for inference is unbiased (divided by their number minus one). Parameters
 * are per channel. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_NORMALIZE_H
#define SDLF_LAYERS_NORMALIZE_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For each channel of (N,C,H,W) or (N,C): y = (x - mean) / sqrt(variance + epsilon) weight + bias.
 * Training uses the mean and variance of the batch over n = N H W elements, and moves running_mean towards
 * that mean and running_var towards that variance times n / (n - 1) (unscaled if n is 1). Inference uses
 * the running statistics. Parameters weight, bias, running_mean, running_var (C); the last two are not
 * trained. */
typedef struct sdlf_batch_norm2d_options {
    const char *name;
    float epsilon;     /* default 1e-5 */
    float momentum;    /* weight of the newest batch in the running statistics; default 0.1 */
    bool no_scale;     /* weight is fixed at 1 and not trained */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_batch_norm2d_options;
sdlf_node sdlf_batch_norm2d(sdlf_model *model, sdlf_node x, const sdlf_batch_norm2d_options *options);

/* Normalise jointly over all axes from `axis` on. Parameters weight and bias have their shape. Outputs 1 and 2 are the
 * means and the inverse standard deviations, with size 1 along these axes; no gradient passes through them. */
typedef struct sdlf_layer_norm_options {
    const char *name;
    int axis;          /* default -1, the last */
    float epsilon;     /* default 1e-5 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_layer_norm_options;
sdlf_node sdlf_layer_norm(sdlf_model *model, sdlf_node x, const sdlf_layer_norm_options *options);

/* y = x / sqrt(mean of x^2 + epsilon) weight over the last axis (Zhang and Sennrich, "Root mean square layer
 * normalization", 2019). Parameter weight has that axis's size. */
typedef struct sdlf_rms_norm_options {
    const char *name;
    float epsilon;     /* default 1e-5 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_rms_norm_options;
sdlf_node sdlf_rms_norm(sdlf_model *model, sdlf_node x, const sdlf_rms_norm_options *options);

/* Normalise each group of channels of (N,C,...) over its channels and all following axes. Parameters weight and bias
 * (C). */
typedef struct sdlf_group_norm_options {
    const char *name;
    int groups;        /* default: as many as channels, which is instance normalisation */
    float epsilon;     /* default 1e-5 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_group_norm_options;
sdlf_node sdlf_group_norm(sdlf_model *model, sdlf_node x, const sdlf_group_norm_options *options);

/* y = x / (bias + alpha mean of x^2 over the `size` channels around it)^beta, for (N,C,...). Channels beyond the first
 * and the last count as zeros. No parameters. */
typedef struct sdlf_lrn_options {
    const char *name;
    int size;          /* required */
    float alpha;       /* default 1e-4 */
    float beta;        /* default 0.75 */
    float bias;        /* default 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_lrn_options;
sdlf_node sdlf_lrn(sdlf_model *model, sdlf_node x, const sdlf_lrn_options *options);

#ifdef __cplusplus
}
#endif

#endif
