/* SPDX-License-Identifier: MIT */
/* How weights follow their gradient: what `sgd_update` and the operations that end in it share, and how the scale of the
 * loss follows whether gradients are finite.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by what takes them. */
#ifndef SDLF_OPERATIONS_UPDATE_H
#define SDLF_OPERATIONS_UPDATE_H

#include <stdbool.h>

/* How sgd_update, and operations that end in it, change weights w with velocity v and biases b with velocity bv. The
 * gradient is g + decay w for weights, g + bias_decay b for biases; the rest is sgd_update's formula, for both
 * alike. */
typedef struct sdlf_sgd_rule {
    float momentum;   /* in [0, 1); 0 without v */
    float decay;      /* >= 0 */
    float bias_decay; /* >= 0; sgd_update, which does not know what it updates, takes no notice of it */
    bool nesterov;
} sdlf_sgd_rule;

/* How loss_scale_update changes the scale. Its state is (scale, good, skipped): the scale of the loss's gradient, the good
 * steps since the scale last changed, and the skipped steps. With the old scale, factor = found ? 0 : 1 / scale, the scale?
 * of updates. Then, where found is not 0: skipped += 1, good = 0, scale = max(backoff scale, 2^-64); else good += 1, and
 * once good is interval: good = 0, scale = growth scale, unless that is above 2^64. done = step - skipped, the steps that
 * have been taken. */
typedef struct sdlf_loss_scale_rule {
    float growth;  /* >= 1 */
    float backoff; /* in (0, 1] */
    int interval;  /* good steps before the scale grows; 0: the scale is fixed */
} sdlf_loss_scale_rule;

#endif
