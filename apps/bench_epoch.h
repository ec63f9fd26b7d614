/* The time of a training epoch, by a real trainer on real data. */
#ifndef SDLF_APPS_BENCH_EPOCH_H
#define SDLF_APPS_BENCH_EPOCH_H

#include <sdlf/trainer.h>

#include "apps/bench_report.h"

/* Train one epoch with `options` (its epochs and callback are set here), or `steps` steps of it if that is more than 0: the
 * first tenth of those is left out of the time, from which the epoch's is worked out. `memory` receives the bytes that the
 * trainer held. The model's parameters change. */
sdlf_status bench_epoch_time(bench_epoch *epoch, int64_t *memory, sdlf_model *model, const sdlf_dataset *data,
                             const sdlf_trainer_options *options, int64_t steps);

#endif
