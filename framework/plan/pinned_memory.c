/* SPDX-License-Identifier: MIT */
/* Pins the memory that copies between the host and a device use: transfers are several times faster, and a copy to the
 * device is queued without the host waiting for it. Part of binding.
 *
 * Candidates are the host's arena, as a whole, and the memory of parameters and optimizer states, which the model owns
 * and keeps as long as it has plans. Small buffers are not worth it. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 1 << 16 };

/* Pins the host memory that `step`, a copy, uses: all of the arena, or a buffer's own memory. pinned[buffer], and
 * pinned[0] for the arena, has a bit for each space whose calculator has pinned it. False: it is not pinned. */
static bool pin_for(sdlf_plan *plan, const plan_step *step, unsigned char *pinned)
{
    const sdlf_queue_class *queues = step->calculator->type->queues;
    int from = step->operation.in[0].buffer, to = step->operation.out[0].buffer;
    bool up = plan_is_host_space(plan, plan->buffers[from].space);
    const plan_buffer *host = &plan->buffers[up ? from : to];
    const plan_space *space = &plan->spaces[host->space];
    bool whole = host->offset >= 0;
    void *memory = whole ? space->arena : host->memory;
    int64_t bytes = whole ? space->bytes : host->bytes;
    if (queues == NULL || queues->pin_host == NULL || bytes < LEAST_BYTES) return false;
    unsigned char *seen = &pinned[whole ? 0 : host - plan->buffers];
    unsigned bit = 1u << plan->buffers[up ? to : from].space;
    if (*seen & bit) return true;
    if (queues->pin_host(step->calculator, memory, bytes) != SDLF_OK) return false;
    plan->pins[plan->pin_count++] = (plan_pin){step->calculator, memory};
    *seen |= (unsigned char)bit;
    return true;
}

sdlf_status plan_pin_memory(sdlf_plan *plan)
{
    int copies = 0;
    for (int i = 0; i < plan->step_count; i++) copies += plan->steps[i].phase == SDLF_PHASE_COPY;
    if (copies == 0) return SDLF_OK;
    plan->pins = calloc((size_t)copies, sizeof *plan->pins);
    unsigned char *pinned = calloc((size_t)plan->buffer_count, sizeof *pinned);
    if (plan->pins == NULL || pinned == NULL) {
        free(pinned);
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        if (step->phase != SDLF_PHASE_COPY) continue;
        bool ready = pin_for(plan, step, pinned);
        step->queued = ready && plan_is_host_space(plan, plan->buffers[step->operation.in[0].buffer].space);
    }
    free(pinned);
    return SDLF_OK;
}

void plan_unpin_memory(sdlf_plan *plan)
{
    for (int i = 0; i < plan->pin_count; i++) {
        const plan_pin *pin = &plan->pins[i];
        pin->calculator->type->synchronize(pin->calculator); /* after a failure something may still be queued */
        pin->calculator->type->queues->unpin_host(pin->calculator, pin->memory);
    }
    free(plan->pins);
}

sdlf_status plan_settle_uploads(sdlf_plan *plan)
{
    for (int i = 0; i < plan->space_count; i++) {
        plan_space *space = &plan->spaces[i];
        if (!space->uploading) continue;
        sdlf_status status = space->calculator->type->synchronize(space->calculator);
        if (status != SDLF_OK) return status;
        space->uploading = false;
    }
    return SDLF_OK;
}
