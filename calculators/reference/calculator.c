/* The reference calculator: every operation in plain loops with double accumulation, on one thread.
 *
 * It is the specification of what an operation computes, a tutorial of how, and the oracle that the tests hold every
 * other calculator against. It is never optimised. */
#include "calculators/registry.h"
#include "framework/heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static sdlf_status open_reference(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)options; /* one thread, one device */
    calculator->space = "host";
    return SDLF_OK;
}

static void close_reference(sdlf_calculator *calculator)
{
    (void)calculator;
}

static void describe_reference(const sdlf_calculator *calculator, char *text, size_t size)
{
    (void)calculator;
    snprintf(text, size, "plain loops, 1 thread");
}

static sdlf_status allocate_reference(sdlf_calculator *calculator, int64_t bytes, void **memory)
{
    (void)calculator;
    *memory = sdlf_heap_allocate(bytes);
    return *memory ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory for %" PRId64 " bytes", bytes);
}

static void deallocate_reference(sdlf_calculator *calculator, void *memory)
{
    (void)calculator;
    sdlf_heap_free(memory);
}

static sdlf_status upload_reference(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes)
{
    (void)calculator;
    if (bytes > 0) memcpy(to, host, (size_t)bytes);
    return SDLF_OK;
}

static sdlf_status download_reference(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes)
{
    (void)calculator;
    if (bytes > 0) memcpy(host, from, (size_t)bytes);
    return SDLF_OK;
}

static sdlf_status synchronize_reference(sdlf_calculator *calculator)
{
    (void)calculator;
    return SDLF_OK;
}

const sdlf_calculator_class sdlf_reference_calculator_class = {
    .name = "reference",
    .summary = "plain loops with double accumulation, one thread: the specification",
    .size = sizeof(sdlf_calculator),
    .open = open_reference,
    .close = close_reference,
    .describe = describe_reference,
    .allocate = allocate_reference,
    .deallocate = deallocate_reference,
    .upload = upload_reference,
    .download = download_reference,
    .synchronize = synchronize_reference,
};
