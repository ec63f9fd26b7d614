/* SPDX-License-Identifier: MIT */
/* Reading and setting the loss scale of a training plan in its calculator's memory. */
#include "framework/plan/plan_internal.h"

#include <math.h>

#include "framework/require.h"

enum { NUMBERS = 3 }; /* (scale, good, skipped), see loss_scale_update */

sdlf_status sdlf_plan_loss_scale(sdlf_plan *plan, sdlf_loss_scale *scale)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(scale);
    *scale = (sdlf_loss_scale){.scale = 0};
    if (!sdlf_tensor_present(&plan->loss_scale)) return SDLF_OK;
    double values[NUMBERS], found[NUMBERS];
    sdlf_status status = sdlf_plan_synchronize(plan);
    if (status == SDLF_OK)
        status = plan_download(plan, plan->loss_scale.buffer, 0, values, sdlf_tensor_bytes(&plan->loss_scale));
    if (status != SDLF_OK) return status;
    sdlf_convert(SDLF_FLOAT64, found, plan->loss_scale.dtype, values, NUMBERS);
    *scale = (sdlf_loss_scale){.scale = found[0], .good = (int64_t)found[1], .skipped = (int64_t)found[2]};
    return SDLF_OK;
}

sdlf_status sdlf_plan_set_loss_scale(sdlf_plan *plan, const sdlf_loss_scale *scale)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(scale);
    if (!sdlf_tensor_present(&plan->loss_scale))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: it was made without a loss scale");
    if (!(scale->scale > 0) || isinf(scale->scale) || scale->good < 0 || scale->skipped < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "plan: expected a loss scale above 0 and counts of 0 or more, found %g, %lld and %lld",
                         scale->scale, (long long)scale->good, (long long)scale->skipped);
    const double values[NUMBERS] = {scale->scale, (double)scale->good, (double)scale->skipped};
    double converted[NUMBERS];
    sdlf_convert(plan->loss_scale.dtype, converted, SDLF_FLOAT64, values, NUMBERS);
    return plan_upload(plan, plan->loss_scale.buffer, 0, converted, sdlf_tensor_bytes(&plan->loss_scale));
}

sdlf_status plan_begin_loss_scale(sdlf_plan *plan)
{
    bool own = sdlf_tensor_present(&plan->loss_scale) && plan->buffers[plan->loss_scale.buffer].offset >= 0;
    if (!own) return SDLF_OK;
    return sdlf_plan_set_loss_scale(plan, &(sdlf_loss_scale){.scale = (double)plan->options.loss_scale});
}
