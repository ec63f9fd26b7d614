/* SPDX-License-Identifier: MIT */
/* Recording and replay on the mock device. */
#include "guarded.h"

#include <sys/mman.h>

sdlf_status guarded_record_begin(sdlf_calculator *base)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "another recording");
    if (status != SDLF_OK) return status;
    guarded->recording = (guarded_recording *)(void *)guarded_map(sizeof *guarded->recording).memory;
    return guarded->recording != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory to record");
}

sdlf_status guarded_record_end(sdlf_calculator *base, void **result)
{
    guarded_calculator *guarded = guarded_from(base);
    *result = guarded->recording;
    guarded->recording = NULL;
    return *result != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_DEVICE, "guarded: nothing is being recorded");
}

sdlf_status guarded_replay(sdlf_calculator *base, void *kept)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "a replay");
    if (status != SDLF_OK) return status;
    return guarded_enqueue(guarded, SDLF_QUEUE_COMPUTE, &(guarded_entry){.work = GUARDED_REPLAY, .recording = kept});
}

void guarded_discard(sdlf_calculator *base, void *kept)
{
    CHECK_OK(base->type->synchronize(base)); /* it may be queued */
    munmap(kept, sizeof(guarded_recording));
}
