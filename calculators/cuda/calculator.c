/* SPDX-License-Identifier: MIT */
/* The CUDA calculator: opening a device, its memory, and the table of kernels. */
#include "calculators/cuda/cuda.h"
#include "calculators/cuda/gemm/blas.h"
#include "calculators/cuda/slots.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calculators/registry.h"

static_assert(offsetof(cuda_calculator, base) == 0, "base must be first");

cuda_calculator *cuda_calculator_from(sdlf_calculator *calculator)
{
    assert(calculator->type->replay == replay_cuda); /* cuda, or a class that extends it */
    cuda_calculator *cuda = (cuda_calculator *)calculator;
    cudaSetDevice(cuda->device); /* if this fails, so does the next call, which reports it */
    return cuda;
}

sdlf_status cuda_check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return SDLF_OK;
    cudaGetLastError(); /* clear an error that is not sticky */
    sdlf_status status = error == cudaErrorMemoryAllocation ? SDLF_ERROR_MEMORY : SDLF_ERROR_DEVICE;
    return sdlf_fail(status, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

sdlf_status cuda_check_launch(const char *kernel)
{
    return cuda_check(cudaGetLastError(), kernel);
}

sdlf_status cuda_check_blas(cublasStatus_t status, const char *what)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return SDLF_OK;
    case CUBLAS_STATUS_ALLOC_FAILED: return sdlf_fail(SDLF_ERROR_MEMORY, "%s: cuBLAS is out of memory", what);
    case CUBLAS_STATUS_NOT_SUPPORTED: return sdlf_fail(SDLF_ERROR_DEVICE, "%s: cuBLAS does not support it", what);
    default: return sdlf_fail(SDLF_ERROR_DEVICE, "%s: cuBLAS failed with status %d", what, (int)status);
    }
}

void close_cuda(sdlf_calculator *base)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    if (calculator->transfers != NULL) cudaStreamSynchronize(calculator->transfers);
    if (calculator->stream != NULL) cudaStreamSynchronize(calculator->stream);
    cuda_release_products(calculator);
    if (calculator->blas_lt != NULL) calculator->library->lt_destroy(calculator->blas_lt);
    if (calculator->blas != NULL) calculator->library->destroy(calculator->blas);
    cudaFree(calculator->blas_workspace);
    cudaFree(calculator->tickets);
    if (calculator->transfers != NULL) cudaStreamDestroy(calculator->transfers);
    if (calculator->stream != NULL) cudaStreamDestroy(calculator->stream);
    free(calculator->library);
    calculator->library = NULL;
    memset(&calculator->stream, 0, sizeof *calculator - offsetof(cuda_calculator, stream));
}

static sdlf_status complain_of_driver(void)
{
    int driver = 0, runtime = 0;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return sdlf_fail(SDLF_ERROR_DEVICE, "no CUDA device: there is no NVIDIA driver on this machine");
    return sdlf_fail(SDLF_ERROR_DEVICE, "the NVIDIA driver supports CUDA %d.%d; this build needs CUDA %d.%d",
                     driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

/* The device must exist and have compute capability 7.5 or newer. */
static sdlf_status find_device(cuda_calculator *calculator, int device)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorInsufficientDriver) return complain_of_driver();
    if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
        cudaGetLastError();
        return sdlf_fail(SDLF_ERROR_DEVICE, "no CUDA device: the NVIDIA driver lists none");
    }
    sdlf_status status = cuda_check(error, "no CUDA device: counting devices");
    if (status != SDLF_OK) return status;
    if (device < 0 || device >= count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "no CUDA device %d: there are %d, counted from 0", device, count);
    struct cudaDeviceProp properties;
    status = cuda_check(cudaGetDeviceProperties(&properties, device), "CUDA device properties");
    if (status != SDLF_OK) return status;
    calculator->device = device;
    calculator->capability = 10 * properties.major + properties.minor;
    calculator->multiprocessors = properties.multiProcessorCount;
    calculator->shared_most = (int)properties.sharedMemPerBlockOptin;
    snprintf(calculator->name, sizeof calculator->name, "%s", properties.name);
    snprintf(calculator->space, sizeof calculator->space, "cuda:%d", device);
    calculator->base.space = calculator->space;
    if (calculator->capability < 75)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "CUDA device %d (%s) has compute capability %d.%d; 7.5 is the oldest",
                         device, calculator->name, properties.major, properties.minor);
    return SDLF_OK;
}

/* This build must have kernels that the device can run. */
static sdlf_status find_kernels(cuda_calculator *calculator)
{
    cudaError_t error = cuda_kernel_architecture(&calculator->kernels);
    if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
        return cuda_check(error, "CUDA kernels");
    cudaGetLastError();
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                     "this build has no kernels for CUDA device %d (%s, compute capability %d.%d); "
                     "build with -DCMAKE_CUDA_ARCHITECTURES=%d",
                     calculator->device, calculator->name, calculator->capability / 10, calculator->capability % 10,
                     calculator->capability);
}

/* tf32 and bfloat16 require compute capability 8.0, of the device and of the kernels. */
static sdlf_status check_math(const cuda_calculator *calculator)
{
    const char *math = sdlf_math_name(calculator->math);
    const int device = calculator->capability, kernels = abs(calculator->kernels);
    if (calculator->math != SDLF_MATH_TF32 && calculator->math != SDLF_MATH_BF16) return SDLF_OK;
    if (device < 80)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "CUDA device %d (%s, compute capability %d.%d) has no %s",
                         calculator->device, calculator->name, device / 10, device % 10, math);
    if (kernels >= 80) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_UNSUPPORTED,
        "CUDA device %d (%s) has %s, but this build has kernels for compute capability %d.%d, which has no "
        "%s; build with -DCMAKE_CUDA_ARCHITECTURES=%d",
        calculator->device, calculator->name, math, kernels / 10, kernels % 10, math, device);
}

/* Programmatic dependent launches in captured graphs too require CUDA 12.3. */
static bool can_overlap(const cuda_calculator *calculator)
{
    int driver = 0, built = calculator->kernels < 0 ? -calculator->kernels : calculator->kernels;
    cudaDriverGetVersion(&driver);
    return CUDART_VERSION >= 12030 && driver >= 12030 && calculator->capability >= 90 && built >= 90;
}

sdlf_status open_cuda(sdlf_calculator *base, const sdlf_calculator_options *options)
{
    cuda_calculator *calculator = (cuda_calculator *)base; /* its device is not known yet */
    calculator->math = options != NULL ? options->math : SDLF_MATH_FP32;
    sdlf_status status = find_device(calculator, options != NULL ? options->device : 0);
    if (status != SDLF_OK) return status;
    status = cuda_check(cudaSetDevice(calculator->device), "cudaSetDevice");
    if (status == SDLF_OK) status = find_kernels(calculator);
    if (status == SDLF_OK) status = check_math(calculator);
    if (status != SDLF_OK) return status;
    calculator->overlaps = can_overlap(calculator);
    cuda_count_clusters(calculator);
    calculator->library = calloc(1, sizeof *calculator->library);
    if (calculator->library == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a calculator");
    status = cuda_blas_load(calculator->library);
    if (status == SDLF_OK)
        status = cuda_check(cudaStreamCreateWithFlags(&calculator->stream, cudaStreamNonBlocking), "CUDA stream");
    if (status == SDLF_OK)
        status = cuda_check(cudaStreamCreateWithFlags(&calculator->transfers, cudaStreamNonBlocking), "CUDA stream");
    if (status == SDLF_OK)
        status = cuda_check(cudaMalloc(&calculator->blas_workspace, CUDA_BLAS_WORKSPACE), "cuBLAS workspace");
    const size_t tickets = CUDA_TICKETS * sizeof *calculator->tickets;
    if (status == SDLF_OK) status = cuda_check(cudaMalloc((void **)&calculator->tickets, tickets), "tickets");
    if (status == SDLF_OK)
        status = cuda_check(cudaMemsetAsync(calculator->tickets, 0, tickets, calculator->stream), "tickets");
    if (status == SDLF_OK) status = cuda_check_blas(calculator->library->create(&calculator->blas), "cuBLAS");
    if (status == SDLF_OK) status = cuda_check_blas(calculator->library->lt_create(&calculator->blas_lt), "cuBLASLt");
    if (status == SDLF_OK)
        status =
            cuda_check_blas(calculator->library->set_stream(calculator->blas, calculator->stream), "cuBLAS stream");
    if (status == SDLF_OK)
        status = cuda_check_blas(
            calculator->library->set_workspace(calculator->blas, calculator->blas_workspace, CUDA_BLAS_WORKSPACE),
            "cuBLAS workspace");
    if (status != SDLF_OK) close_cuda(base);
    return status;
}

/* "NVIDIA H100 PCIe, compute capability 9.0, kernels built for 9.0, math fp32" */
void describe_cuda(const sdlf_calculator *base, char *text, size_t size)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    int device = calculator->capability, kernels = calculator->kernels;
    snprintf(text, size, "%s, compute capability %d.%d, kernels %s %d.%d, math %s", calculator->name, device / 10,
             device % 10, kernels > 0 ? "built for" : "translated from", (kernels > 0 ? kernels : -kernels) / 10,
             (kernels > 0 ? kernels : -kernels) % 10, sdlf_math_name(calculator->math));
}

int device_count_cuda(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
}

sdlf_status allocate_cuda(sdlf_calculator *base, int64_t bytes, void **memory)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    *memory = NULL;
    if (bytes == 0) return SDLF_OK;
    cudaError_t error = cudaMalloc(memory, (size_t)bytes);
    if (error != cudaErrorMemoryAllocation) return cuda_check(error, "cudaMalloc");
    cudaGetLastError();
    size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s (%s): asked for %.1f MB, and %.1f of %.1f MB are free", calculator->space,
                     calculator->name, (double)bytes / 1e6, (double)available / 1e6, (double)total / 1e6);
}

void deallocate_cuda(sdlf_calculator *base, void *memory)
{
    cuda_calculator_from(base);
    cudaFree(memory);
}

sdlf_status upload_cuda(sdlf_calculator *base, void *to, const void *host, int64_t bytes)
{
    return cuda_check(cudaMemcpyAsync(to, host, (size_t)bytes, cudaMemcpyHostToDevice, cuda_stream(base)), "upload");
}

sdlf_status download_cuda(sdlf_calculator *base, void *host, const void *from, int64_t bytes)
{
    cudaStream_t stream = cuda_stream(base);
    sdlf_status status =
        cuda_check(cudaMemcpyAsync(host, from, (size_t)bytes, cudaMemcpyDeviceToHost, stream), "download");
    return status == SDLF_OK ? cuda_check(cudaStreamSynchronize(stream), "download") : status;
}

/* The other library's streams need not be known: both `to` and `from` are on this device, and all of its streams are synchronized. */
sdlf_status copy_from_device_cuda(sdlf_calculator *base, void *to, const void *from, int64_t bytes)
{
    cudaStream_t stream = cuda_stream(base);
    sdlf_status status = cuda_check(cudaDeviceSynchronize(), "waiting for the device");
    if (status == SDLF_OK)
        status = cuda_check(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    return status == SDLF_OK ? cuda_check(cudaStreamSynchronize(stream), "copy") : status;
}

sdlf_status synchronize_cuda(sdlf_calculator *base)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    sdlf_status status = cuda_check(cudaStreamSynchronize(calculator->transfers), "waiting for the device");
    return status == SDLF_OK ? cuda_check(cudaStreamSynchronize(calculator->stream), "waiting for the device") : status;
}

sdlf_status memory_info_cuda(sdlf_calculator *base, int64_t *available, int64_t *total)
{
    size_t free_bytes = 0, all_bytes = 0;
    cuda_calculator_from(base);
    sdlf_status status = cuda_check(cudaMemGetInfo(&free_bytes, &all_bytes), "memory of the device");
    *available = (int64_t)free_bytes;
    *total = (int64_t)all_bytes;
    return status;
}

/* ---- recording: a CUDA graph ---- */

sdlf_status record_begin_cuda(sdlf_calculator *base)
{
    return cuda_check(cudaStreamBeginCapture(cuda_stream(base), cudaStreamCaptureModeThreadLocal), "recording");
}

sdlf_status record_end_cuda(sdlf_calculator *base, void **recording)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    sdlf_status status = cuda_check(cudaStreamEndCapture(cuda_stream(base), &graph), "recording");
    if (status == SDLF_OK) status = cuda_check(cudaGraphInstantiate(&executable, graph, 0), "CUDA graph");
    if (status == SDLF_OK) status = cuda_check(cudaGraphUpload(executable, cuda_stream(base)), "CUDA graph");
    if (graph != NULL) cudaGraphDestroy(graph);
    *recording = executable;
    return status;
}

sdlf_status replay_cuda(sdlf_calculator *base, void *recording)
{
    return cuda_check(cudaGraphLaunch(recording, cuda_stream(base)), "CUDA graph");
}

void discard_cuda(sdlf_calculator *base, void *recording)
{
    cudaStreamSynchronize(cuda_stream(base));
    cudaGraphExecDestroy(recording);
}

const sdlf_calculator_class sdlf_cuda_calculator_class = {
    .name = "cuda",
    .summary = "one NVIDIA GPU",
    .size = sizeof(cuda_calculator),
    .has_math = true,
    .open = open_cuda,
    .close = close_cuda,
    .describe = describe_cuda,
    .storage = storage_cuda,
    CUDA_METHODS,
    .fusions = fusions_cuda,
    .kernel = {CUDA_SLOTS},
};
