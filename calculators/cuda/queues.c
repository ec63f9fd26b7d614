/* SPDX-License-Identifier: MIT */
/* Transfers concurrent with kernels: pinned host memory, a second stream, events as fences. A waiting host thread sleeps. */
#include "calculators/cuda/cuda.h"

static cudaStream_t stream_of(sdlf_calculator *base, sdlf_queue queue)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return queue == SDLF_QUEUE_TRANSFER ? calculator->transfers : calculator->stream;
}

static cudaEvent_t event_of(sdlf_fence *fence)
{
    return (cudaEvent_t)(void *)fence;
}

static sdlf_status allocate_host_cuda(sdlf_calculator *base, int64_t bytes, void **memory)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    *memory = NULL;
    if (bytes == 0) return SDLF_OK;
    cudaError_t error = cudaHostAlloc(memory, (size_t)bytes, cudaHostAllocDefault);
    if (error != cudaErrorMemoryAllocation) return cuda_check(error, "cudaHostAlloc");
    cudaGetLastError();
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s: no %.1f MB of the host's memory for transfers", calculator->space,
                     (double)bytes / 1e6);
}

static void deallocate_host_cuda(sdlf_calculator *base, void *memory)
{
    cuda_calculator_from(base);
    cudaFreeHost(memory);
}

/* Memory that another plan has already pinned counts as pinned. The first plan to unpin it does so for both; later transfers are then slower. */
static sdlf_status pin_host_cuda(sdlf_calculator *base, void *memory, int64_t bytes)
{
    cuda_calculator_from(base);
    cudaError_t error = cudaHostRegister(memory, (size_t)bytes, cudaHostRegisterDefault);
    if (error != cudaSuccess) cudaGetLastError();
    if (error == cudaErrorHostMemoryAlreadyRegistered) return SDLF_OK;
    return cuda_check(error, "pinning memory of the host");
}

static void unpin_host_cuda(sdlf_calculator *base, void *memory)
{
    cuda_calculator_from(base);
    if (cudaHostUnregister(memory) != cudaSuccess) cudaGetLastError();
}

static sdlf_status upload_cuda(sdlf_calculator *base, sdlf_queue queue, void *to, const void *host, int64_t bytes)
{
    return cuda_check(cudaMemcpyAsync(to, host, (size_t)bytes, cudaMemcpyHostToDevice, stream_of(base, queue)),
                      "queued upload");
}

static sdlf_status download_cuda(sdlf_calculator *base, sdlf_queue queue, void *host, const void *from, int64_t bytes)
{
    return cuda_check(cudaMemcpyAsync(host, from, (size_t)bytes, cudaMemcpyDeviceToHost, stream_of(base, queue)),
                      "queued download");
}

static sdlf_status fence_create_cuda(sdlf_calculator *base, sdlf_fence **fence)
{
    cudaEvent_t event = NULL;
    cuda_calculator_from(base);
    sdlf_status status =
        cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "CUDA event");
    *fence = (sdlf_fence *)(void *)event;
    return status;
}

static void fence_free_cuda(sdlf_calculator *base, sdlf_fence *fence)
{
    cuda_calculator_from(base);
    if (fence != NULL) cudaEventDestroy(event_of(fence));
}

static sdlf_status fence_set_cuda(sdlf_calculator *base, sdlf_queue queue, sdlf_fence *fence)
{
    return cuda_check(cudaEventRecord(event_of(fence), stream_of(base, queue)), "CUDA event");
}

static sdlf_status fence_follow_cuda(sdlf_calculator *base, sdlf_queue queue, sdlf_fence *fence)
{
    return cuda_check(cudaStreamWaitEvent(stream_of(base, queue), event_of(fence), 0), "CUDA event");
}

static sdlf_status fence_wait_cuda(sdlf_calculator *base, sdlf_fence *fence)
{
    cuda_calculator_from(base);
    return cuda_check(cudaEventSynchronize(event_of(fence)), "waiting for the device");
}

static sdlf_status fence_passed_cuda(sdlf_calculator *base, sdlf_fence *fence, bool *passed)
{
    cuda_calculator_from(base);
    cudaError_t error = cudaEventQuery(event_of(fence));
    *passed = error == cudaSuccess;
    if (error != cudaErrorNotReady) return cuda_check(error, "asking the device");
    cudaGetLastError(); /* not an error, but recorded as one */
    return SDLF_OK;
}

const sdlf_queue_class cuda_queues = {
    .allocate_host = allocate_host_cuda,
    .deallocate_host = deallocate_host_cuda,
    .pin_host = pin_host_cuda,
    .unpin_host = unpin_host_cuda,
    .upload = upload_cuda,
    .download = download_cuda,
    .fence_create = fence_create_cuda,
    .fence_free = fence_free_cuda,
    .fence_set = fence_set_cuda,
    .fence_follow = fence_follow_cuda,
    .fence_wait = fence_wait_cuda,
    .fence_passed = fence_passed_cuda,
};
