/* Memory that copies between the host and a device use, pinned: a device transfers it several times faster, and a copy to
 * the device is queued without the host waiting for it. Part of binding.
 *
 * What may be pinned: the host's arena, as a whole, and the memory of parameters and optimiser states, which the model owns and
 * keeps for as long as it has plans. Small buffers are not worth it. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 1 << 16 };

static bool is_pinned(const sdlf_plan *plan, const sdlf_calculator *calculator, const void *memory)
{
    for (int i = 0; i < plan->pin_count; i++) {
        if (plan->pins[i].calculator == calculator && plan->pins[i].memory == memory) return true;
    }
    return false;
}

/* Where the memory of a buffer of the host begins that can be pinned, and how long it is. */
static void *region_of(const sdlf_plan *plan, const plan_buffer *buffer, int64_t *bytes)
{
    const plan_space *space = &plan->spaces[buffer->space];
    *bytes = buffer->offset >= 0 ? space->bytes : buffer->bytes;
    return buffer->offset >= 0 ? space->arena : buffer->memory;
}

/* Pin what `step`, a copy, uses of the host's memory. False: it stays as it is. */
static bool pin_for(sdlf_plan *plan, const plan_step *step)
{
    const sdlf_queue_class *queues = step->calculator->type->queues;
    const plan_buffer *from = &plan->buffers[step->operation.in[0].buffer];
    const plan_buffer *to = &plan->buffers[step->operation.out[0].buffer];
    int64_t bytes;
    void *memory = region_of(plan, plan_is_host_space(plan, from->space) ? from : to, &bytes);
    if (queues == NULL || queues->pin_host == NULL || bytes < LEAST_BYTES) return false;
    if (is_pinned(plan, step->calculator, memory)) return true;
    if (queues->pin_host(step->calculator, memory, bytes) != SDLF_OK) return false;
    plan->pins[plan->pin_count++] = (plan_pin){step->calculator, memory};
    return true;
}

sdlf_status plan_pin_memory(sdlf_plan *plan)
{
    int copies = 0;
    for (int i = 0; i < plan->step_count; i++) copies += plan->steps[i].phase == SDLF_PHASE_COPY;
    if (copies == 0) return SDLF_OK;
    plan->pins = calloc((size_t)copies, sizeof *plan->pins);
    if (plan->pins == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        if (step->phase != SDLF_PHASE_COPY) continue;
        bool pinned = pin_for(plan, step);
        step->queued = pinned && plan_is_host_space(plan, plan->buffers[step->operation.in[0].buffer].space);
    }
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
