/* SPDX-License-Identifier: MIT */
/* Parameter updates: the rule that `sgd_update` shares with the operations that end in it, and the rule of dynamic loss
 * scaling.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked where the options are used. */
#ifndef SDLF_OPERATIONS_UPDATE_H
#define SDLF_OPERATIONS_UPDATE_H

#include <stdbool.h>

/* How sgd_update, and operations that end in it, update weights w with velocity v and biases b with velocity bv. The
 * gradient is g + decay w for weights and g + bias_decay b for biases; otherwise sgd_update's formula applies to
 * both. */
typedef struct sdlf_sgd_rule {
    float momentum;   /* in [0, 1); 0 without v */
    float decay;      /* >= 0 */
    float bias_decay; /* >= 0; ignored by sgd_update, which does not know what it updates */
    bool nesterov;
} sdlf_sgd_rule;

/* How loss_scale_update changes the scale. Its state is (scale, good, skipped): the scale of the loss gradient, the
 * good steps since the scale last changed, and the skipped steps. With the old scale, factor = found ? 0 : 1 / scale;
 * this is the operand scale? of updates. Then, if found is not 0: skipped += 1, good = 0, scale = max(backoff scale,
 * 2^-64); else good += 1, and when good reaches interval: good = 0, scale = growth scale, unless that exceeds 2^64.
 * done = step - skipped is the number of steps that took effect. */
typedef struct sdlf_loss_scale_rule {
    float growth;  /* >= 1 */
    float backoff; /* in (0, 1] */
    int interval;  /* good steps before the scale grows; 0: the scale is fixed */
} sdlf_loss_scale_rule;

#endif
