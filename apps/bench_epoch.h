/* The time of a training epoch, by a real trainer on real data. */
#ifndef SDLF_APPS_BENCH_EPOCH_H
#define SDLF_APPS_BENCH_EPOCH_H

#include <sdlf/trainer.h>

#include "apps/bench_report.h"

/* Train an epoch with `options` (its epochs and callback are set here), a short one twice, to time the second. Or `steps`
 * steps of it, if that is more than 0 (a device may do some more): the first tenth is left out of the time, from which the
 * epoch's is worked out. `memory` receives the bytes that the
 * trainer held. The model's parameters change. */
sdlf_status bench_epoch_time(bench_epoch *epoch, int64_t *memory, sdlf_model *model, const sdlf_dataset *data,
                             const sdlf_trainer_options *options, int64_t steps);

#endif
