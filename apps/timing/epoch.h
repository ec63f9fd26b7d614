/* SPDX-License-Identifier: MIT */
/* The time of a training epoch, measured with a real trainer on real data. */
#ifndef SDLF_APPS_TIMING_EPOCH_H
#define SDLF_APPS_TIMING_EPOCH_H

#include <sdlf/trainer.h>

typedef struct epoch_time {
    int64_t samples, steps; /* of the whole epoch */
    int64_t measured_steps; /* fewer: the epoch was extrapolated from them */
    double seconds;
    int64_t memory; /* bytes that the trainer held, for the steps that were measured */
} epoch_time;

/* Train an epoch with `options` (its epochs and callback are set here); a short epoch is run twice, and the second
 * timed. If `steps` is more than 0 and less than an epoch has, run that many steps twice and extrapolate the epoch from
 * the second run. The model's parameters change. Ctrl-C (system/interrupt.h) ends it: the epoch is then extrapolated
 * from the completed steps; SDLF_ERROR_INTERRUPTED if there are none. */
sdlf_status epoch_time_measure(epoch_time *epoch, sdlf_model *model, const sdlf_dataset *data,
                               const sdlf_trainer_options *options, int64_t steps);

#endif
