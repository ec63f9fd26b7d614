/* SPDX-License-Identifier: MIT */
/* Failing CUDA runtime calls, for SDLF_FAULT="device N" and "lost N" (shim.c). Calls that do not fail are forwarded to the
 * runtime, or to its stand-in. */
#include "shim.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string.h>

static _Thread_local cudaError_t last_error; /* of a call that was made to fail */
static atomic_bool lost;

static cudaError_t fault(bool makes)
{
    if (fails(&device_calls) || atomic_load(&lost)) {
        atomic_store(&lost, true); /* nothing works any more, as after a fault on the device */
        return last_error = cudaErrorLaunchFailure;
    }
    return makes && fails(&device) ? (last_error = cudaErrorMemoryAllocation) : cudaSuccess;
}

/* WRAP(makes, name, parameters, arguments): the function of that name, which may fail before it is called. */
#define WRAP(makes, name, parameters, arguments)                                                                       \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        cudaError_t error = fault(makes);                                                                              \
        if (error != cudaSuccess) return error;                                                                        \
        cudaError_t(*next) parameters;                                                                                 \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                                        \
        memcpy(&next, &symbol, sizeof symbol);                                                                         \
        return next arguments;                                                                                         \
    }

cudaError_t __cudaLaunchKernel(cudaKernel_t of, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);

WRAP(true, cudaMalloc, (void **memory, size_t bytes), (memory, bytes))
WRAP(true, cudaHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
WRAP(true, cudaHostRegister, (void *memory, size_t bytes, unsigned flags), (memory, bytes, flags))
WRAP(true, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
WRAP(true, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
WRAP(true, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph))
WRAP(true, cudaGraphInstantiate, (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
     (executable, graph, flags))
WRAP(false, cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode))
WRAP(false, cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream))
WRAP(false, cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream))
WRAP(false, cudaSetDevice, (int number), (number))
WRAP(false, cudaMemGetInfo, (size_t * available, size_t *total), (available, total))
WRAP(false, cudaMemcpyAsync, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
     (to, from, bytes, kind, stream))
WRAP(false, cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream), (to, value, bytes, stream))
WRAP(false, cudaStreamSynchronize, (cudaStream_t stream), (stream))
WRAP(false, cudaDeviceSynchronize, (void), ())
WRAP(false, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
WRAP(false, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
WRAP(false, cudaEventQuery, (cudaEvent_t event), (event))
WRAP(false, cudaEventSynchronize, (cudaEvent_t event), (event))
WRAP(false, cudaFuncSetAttribute, (const void *function, enum cudaFuncAttribute attribute, int value),
     (function, attribute, value))
WRAP(false, cudaLaunchKernelExC, (const cudaLaunchConfig_t *of, const void *function, void **arguments),
     (of, function, arguments))
WRAP(false, __cudaLaunchKernel,
     (cudaKernel_t of, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
     (of, grid, block, arguments, shared, stream))

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error, (*next)(void);
    void *symbol = dlsym(RTLD_NEXT, "cudaGetLastError");
    memcpy(&next, &symbol, sizeof symbol);
    if (!atomic_load(&lost)) last_error = cudaSuccess;
    cudaError_t other = next();
    return error != cudaSuccess ? error : other;
}
