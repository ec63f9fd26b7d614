/* SPDX-License-Identifier: MIT */
/* Class scores as probabilities. */
#include "apps/output/scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

sdlf_status scores_check(const double *score, int64_t count)
{
    int64_t finite = 0, impossible = 0;
    for (int64_t i = 0; i < count; i++) {
        finite += isfinite(score[i]);
        impossible += score[i] == -INFINITY;
    }
    if (finite == count || (finite > 0 && finite + impossible == count)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_NUMERIC,
                     "the network's outputs are not finite: %" PRId64 " of %" PRId64
                     " are NaN or infinite; check the weights and the preprocessing",
                     count - finite, count);
}

void scores_to_probabilities(double *score, int64_t count)
{
    double sum = 0, most = -INFINITY;
    bool inside = true;
    for (int64_t i = 0; i < count; i++) {
        inside = inside && score[i] >= 0 && score[i] <= 1;
        sum += score[i];
        most = fmax(most, score[i]);
    }
    if (inside && fabs(sum - 1) < 1e-3) return;
    sum = 0;
    for (int64_t i = 0; i < count; i++) sum += score[i] = exp(score[i] - most);
    for (int64_t i = 0; i < count; i++) score[i] /= sum;
}
