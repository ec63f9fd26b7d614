/* SPDX-License-Identifier: MIT */
/* A preloaded stand-in for the CUDA runtime and a device, for machines without one: device memory is host memory, copies are performed,
 * kernels do nothing. The host code for a device (plans, launches, graphs, memory, errors) thus runs everywhere, although nothing is
 * computed; scripts/faults.sh makes it fail call by call. Environment variables:
 *
 *     SDLF_STAND_IN_CAPABILITY=80   the device's compute capability: 75, 80, 86, 89, 90 (the default), 120
 *     SDLF_STAND_IN_LAUNCHES=FILE   each launch adds a line there: kernel, grid, block, bytes of dynamic shared memory
 *
 * A launch or a tensor map that no device accepts is rejected, as documented for the runtime and the driver. */
#include "stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct steps {
    stand_in_step *all;
    size_t count, room;
} steps;

static _Thread_local steps *captured;        /* the graph being captured in this thread, or NULL */
static _Thread_local cudaError_t last_error; /* cudaSuccess: none since it was asked for */

cudaError_t stand_in_result(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

static cudaError_t give(void *made, void **to)
{
    *to = made;
    return stand_in_result(made != NULL ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* ---- the device ---- */

const stand_in_generation *stand_in_device(void)
{
    static const stand_in_generation all[] = {{90, 132, 227 << 10}, {75, 40, 64 << 10},  {80, 108, 163 << 10},
                                              {86, 84, 99 << 10},   {89, 128, 99 << 10}, {120, 170, 99 << 10}};
    const char *wanted = getenv("SDLF_STAND_IN_CAPABILITY");
    for (size_t i = 0; wanted != NULL && i < sizeof all / sizeof all[0]; i++)
        if (all[i].capability == atoi(wanted)) return &all[i];
    return all;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int number)
{
    return stand_in_result(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int number)
{
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "stand-in");
    properties->major = stand_in_device()->capability / 10;
    properties->minor = stand_in_device()->capability % 10;
    properties->multiProcessorCount = stand_in_device()->multiprocessors;
    properties->sharedMemPerBlockOptin = stand_in_device()->shared;
    properties->sharedMemPerBlock = 48 << 10;
    properties->totalGlobalMem = (size_t)4 << 30;
    properties->maxThreadsPerBlock = 1024;
    properties->warpSize = 32;
    return stand_in_result(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

/* Of what it is asked about, a device has everything. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int number)
{
    (void)attribute;
    *value = 1;
    return stand_in_result(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = (size_t)4 << 30;
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    default: return "another CUDA error";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    default: return "another CUDA error";
    }
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- memory ---- */

/* Zeros, so that what no kernel has written is the same in every run. */
static cudaError_t allocate(void **memory, size_t bytes)
{
    const size_t whole = (bytes + 255) / 256 * 256;
    void *made = aligned_alloc(256, whole);
    if (made != NULL) memset(made, 0, whole);
    return give(made, memory);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    return allocate(memory, bytes);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(memory, bytes);
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return stand_in_result(memory != NULL && bytes > 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void *memory)
{
    (void)memory;
    return cudaSuccess;
}

/* ---- what streams do ---- */

static void carry_out(const stand_in_step *s)
{
    if (s->bytes == 0) return;
    if (s->from != NULL)
        memmove(s->to, s->from, s->bytes);
    else
        memset(s->to, s->value, s->bytes);
}

cudaError_t stand_in_take(stand_in_step s)
{
    if (captured == NULL) {
        carry_out(&s);
        return cudaSuccess;
    }
    if (captured->count == captured->room) {
        size_t room = captured->room ? 2 * captured->room : 64;
        stand_in_step *more = realloc(captured->all, room * sizeof *more);
        if (more == NULL) return stand_in_result(cudaErrorMemoryAllocation);
        captured->all = more;
        captured->room = room;
    }
    captured->all[captured->count++] = s;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind, (void)stream;
    if (bytes > 0 && (to == NULL || from == NULL)) return stand_in_result(cudaErrorInvalidValue);
    return stand_in_take((stand_in_step){.to = to, .from = from, .bytes = bytes});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    if (bytes > 0 && to == NULL) return stand_in_result(cudaErrorInvalidValue);
    return stand_in_take((stand_in_step){.to = to, .value = value, .bytes = bytes});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    return give(malloc(1), (void **)stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)stream, (void)flags;
    return stand_in_result(event != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    return give(malloc(1), (void **)event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    return stand_in_result(event != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return cudaEventRecord(event, NULL);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return cudaEventRecord(event, NULL);
}

/* ---- graphs ---- */

static void release(steps *of)
{
    if (of != NULL) free(of->all);
    free(of);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)stream, (void)mode;
    if (captured != NULL) return stand_in_result(cudaErrorIllegalState);
    return give(calloc(1, sizeof *captured), (void **)&captured);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    (void)stream;
    *graph = (cudaGraph_t)captured;
    captured = NULL;
    return stand_in_result(*graph != NULL ? cudaSuccess : cudaErrorIllegalState);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    const steps *of = (const steps *)graph;
    steps *copy = calloc(1, sizeof *copy);
    if (copy != NULL && of->count > 0 && (copy->all = malloc(of->count * sizeof *of->all)) == NULL) {
        free(copy);
        copy = NULL;
    }
    if (copy != NULL && of->count > 0) memcpy(copy->all, of->all, of->count * sizeof *of->all);
    if (copy != NULL) copy->count = of->count;
    return give(copy, (void **)executable);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    release((steps *)graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    release((steps *)executable);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream)
{
    (void)stream;
    return stand_in_result(executable != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    (void)stream;
    const steps *of = (const steps *)executable;
    for (size_t i = 0; i < of->count; i++) carry_out(&of->all[i]);
    return cudaSuccess;
}
