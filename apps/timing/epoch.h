/* SPDX-License-Identifier: MIT */
/* The time of a training epoch, by a real trainer on real data. */
#ifndef SDLF_APPS_TIMING_EPOCH_H
#define SDLF_APPS_TIMING_EPOCH_H

#include <sdlf/trainer.h>

typedef struct epoch_time {
    int64_t samples, steps; /* of the whole epoch */
    int64_t measured_steps; /* fewer: the epoch was worked out from them */
    double seconds;
    int64_t memory; /* bytes that the trainer held, for the steps that were measured */
} epoch_time;

/* Train an epoch with `options` (its epochs and callback are set here), a short one twice, to time the second. Or, if
 * `steps` is more than 0 and less than it has, as many steps, twice, from whose second time the epoch's is worked out.
 * The model's parameters change. Ctrl-C (system/interrupt.h) ends it: the epoch is then worked out from the steps that
 * were made; SDLF_ERROR_INTERRUPTED where there is none. */
sdlf_status epoch_time_measure(epoch_time *epoch, sdlf_model *model, const sdlf_dataset *data,
                               const sdlf_trainer_options *options, int64_t steps);

#endif
