/* SPDX-License-Identifier: MIT */
/* Layers that normalise. The variance that they divide by is that of the elements themselves (squared deviations over
 * their number); the one that batch_norm2d keeps for inference is the unbiased one (over their number less one).
 * Parameters are those of each channel. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_NORMALIZE_H
#define SDLF_LAYERS_NORMALIZE_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each channel of (N,C,H,W) or (N,C): y = (x - mean) / sqrt(variance + epsilon) weight + bias. Training takes mean and
 * variance of
 * the batch, over the n = N H W elements, and moves running_mean towards that mean and running_var towards that
 * variance times n / (n - 1) (as it is where n is 1); inference takes these two. Parameters weight, bias, running_mean,
 * running_var (C); the last two are not trained. */
typedef struct sdlf_batch_norm2d_options {
    const char *name;
    float epsilon;     /* default 1e-5 */
    float momentum;    /* weight of the newest batch in the running statistics; default 0.1 */
    bool no_scale;     /* weight stays 1, and is not trained */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_batch_norm2d_options;
sdlf_node sdlf_batch_norm2d(sdlf_model *model, sdlf_node x, const sdlf_batch_norm2d_options *options);

/* All axes from `axis` on normalised together. Parameters weight and bias of these axes' shape. Outputs 1 and 2 are the
 * means and the inverse deviations, with 1 in place of these axes; no gradient passes through them. */
typedef struct sdlf_layer_norm_options {
    const char *name;
    int axis;          /* default -1, the last */
    float epsilon;     /* default 1e-5 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_layer_norm_options;
sdlf_node sdlf_layer_norm(sdlf_model *model, sdlf_node x, const sdlf_layer_norm_options *options);

/* y = x / sqrt(mean of x^2 + epsilon) weight over the last axis (Zhang and Sennrich, "Root mean square layer
 * normalization", 2019). Parameter weight of that axis's size. */
typedef struct sdlf_rms_norm_options {
    const char *name;
    float epsilon;     /* default 1e-5 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_rms_norm_options;
sdlf_node sdlf_rms_norm(sdlf_model *model, sdlf_node x, const sdlf_rms_norm_options *options);

/* Groups of channels of (N,C,...) normalised, each with all that follows the channels. Parameters weight and bias
 * (C). */
typedef struct sdlf_group_norm_options {
    const char *name;
    int groups;        /* default: as many as channels, which is instance normalisation */
    float epsilon;     /* default 1e-5 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_group_norm_options;
sdlf_node sdlf_group_norm(sdlf_model *model, sdlf_node x, const sdlf_group_norm_options *options);

/* y = x / (bias + alpha mean of x^2 over `size` channels around)^beta, of (N,C,...). Beyond the first and the last
 * channel there are zeros. No parameters. */
typedef struct sdlf_lrn_options {
    const char *name;
    int size;          /* required */
    float alpha;       /* default 1e-4 */
    float beta;        /* default 0.75 */
    float bias;        /* default 1 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_lrn_options;
sdlf_node sdlf_lrn(sdlf_model *model, sdlf_node x, const sdlf_lrn_options *options);

#ifdef __cplusplus
}
#endif

#endif
