/* SPDX-License-Identifier: MIT */
/* Numbers between the host and a plan's buffers, wherever these are. */
#include "framework/plan/plan_internal.h"

#include <string.h>

sdlf_status plan_upload(sdlf_plan *plan, int buffer, int64_t offset, const void *host, int64_t bytes)
{
    const plan_buffer *target = &plan->buffers[buffer];
    if (target->memory == NULL || target->memory == host || bytes == 0) return SDLF_OK;
    char *to = (char *)target->memory + offset;
    if (plan_is_host_space(plan, target->space)) {
        memcpy(to, host, (size_t)bytes);
        return SDLF_OK;
    }
    sdlf_calculator *calculator = plan->spaces[target->space].calculator;
    return calculator->type->upload(calculator, to, host, bytes);
}

sdlf_status plan_download(sdlf_plan *plan, int buffer, int64_t offset, void *host, int64_t bytes)
{
    const plan_buffer *source = &plan->buffers[buffer];
    if (source->memory == NULL || source->memory == host || bytes == 0) return SDLF_OK;
    const char *from = (const char *)source->memory + offset;
    if (plan_is_host_space(plan, source->space)) {
        memcpy(host, from, (size_t)bytes);
        return SDLF_OK;
    }
    sdlf_calculator *calculator = plan->spaces[source->space].calculator;
    return calculator->type->download(calculator, host, from, bytes);
}

sdlf_status plan_set_control(sdlf_plan *plan, plan_control control, double value)
{
    for (int i = 0; i < plan->control_buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[plan->control_buffers[i]];
        if (buffer->control != (int)control) continue;
        union {
            float f;
            double d;
            int64_t i;
        } bits;
        if (buffer->dtype == SDLF_INT64)
            bits.i = (int64_t)value;
        else if (buffer->dtype == SDLF_FLOAT32)
            bits.f = (float)value;
        else
            bits.d = value;
        sdlf_status status = plan_upload(plan, plan->control_buffers[i], 0, &bits, buffer->bytes);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}
