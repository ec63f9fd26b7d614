/* SPDX-License-Identifier: MIT */
/* Kernels of the stand-in: they are found by name, launched, and do nothing. Tensor maps are only checked. */
#include "stand_in.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration; /* what __cudaPushCallConfiguration left */

typedef struct kernel {
    const void *function;
    const char *name;
} kernel;

static kernel *kernels;
static size_t kernel_count, kernel_room;

/* These are called by constructors, before there is a second thread. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external, size_t size,
                       int constant, int global);
void __cudaRegisterFunction(void **handle, const char *function, char *address, const char *name, int limit,
                            void *thread, void *block, dim3 *block_size, dim3 *grid_size, int *warp_size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *found, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t of, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;
    (void)binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external, size_t size,
                       int constant, int global)
{
    (void)handle, (void)host, (void)address, (void)name, (void)external, (void)size, (void)constant, (void)global;
}

void __cudaRegisterFunction(void **handle, const char *function, char *address, const char *name, int limit,
                            void *thread, void *block, dim3 *block_size, dim3 *grid_size, int *warp_size)
{
    (void)handle, (void)address, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size,
        (void)warp_size;
    if (kernel_count == kernel_room) {
        kernel_room = kernel_room ? 2 * kernel_room : 4096;
        kernels = realloc(kernels, kernel_room * sizeof *kernels);
        if (kernels == NULL) abort();
    }
    kernels[kernel_count++] = (kernel){function, name};
}

static void write_launch(const void *function, dim3 grid, dim3 block, size_t shared)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    static FILE *file;
    const char *path = getenv("SDLF_STAND_IN_LAUNCHES");
    if (path == NULL) return;
    pthread_mutex_lock(&one_at_a_time);
    if (file == NULL) file = fopen(path, "ae");
    size_t i = 0;
    while (i < kernel_count && kernels[i].function != function) i++;
    if (file != NULL)
        fprintf(file, "%s %ux%ux%u %ux%ux%u %zu\n", i < kernel_count ? kernels[i].name : "?", grid.x, grid.y, grid.z,
                block.x, block.y, block.z, shared);
    if (file != NULL) fflush(file);
    pthread_mutex_unlock(&one_at_a_time);
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, size_t shared)
{
    write_launch(function, grid, block, shared);
    const bool possible = grid.x >= 1 && grid.x <= 0x7fffffff && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
                          grid.z <= 65535 && block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 &&
                          (size_t)block.x * block.y * block.z <= 1024 && shared <= stand_in_device()->shared;
    return possible ? stand_in_take((stand_in_step){0}) : stand_in_result(cudaErrorInvalidConfiguration);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    memcpy(stream, &configuration.stream, sizeof configuration.stream);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *found, const void *function)
{
    memcpy(found, &function, sizeof function);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t of, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream)
{
    (void)arguments, (void)stream;
    return launch(of, grid, block, shared);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *of, const void *function, void **arguments)
{
    (void)arguments;
    return launch(function, of->gridDim, of->blockDim, of->dynamicSmemBytes);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    (void)function;
    memset(attributes, 0, sizeof *attributes);
    attributes->binaryVersion = attributes->ptxVersion = stand_in_device()->capability;
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 64;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    (void)function;
    return stand_in_result(attribute != cudaFuncAttributeMaxDynamicSharedMemorySize ||
                                   (size_t)value <= stand_in_device()->shared
                               ? cudaSuccess
                               : cudaErrorInvalidValue);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                   size_t shared, unsigned flags)
{
    (void)function, (void)flags;
    const int by_threads = 1024 / threads, by_shared = (int)((stand_in_device()->shared + 1024) / (shared + 1024));
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *of)
{
    (void)function;
    unsigned size = 1;
    for (unsigned i = 0; i < of->numAttrs; i++)
        if (of->attrs[i].id == cudaLaunchAttributeClusterDimension) size = of->attrs[i].val.clusterDim.x;
    *clusters = stand_in_device()->multiprocessors / (int)size;
    return cudaSuccess;
}

/* ---- tensor maps, by the driver's limits ---- */

static bool addresses_fit(unsigned rank, const void *data, const cuuint64_t *sizes, const cuuint64_t *strides)
{
    bool fit = rank >= 1 && rank <= 5 && (size_t)data % 16 == 0;
    for (unsigned i = 0; fit && i < rank; i++) fit = sizes[i] >= 1 && sizes[i] <= (cuuint64_t)1 << 32;
    for (unsigned i = 0; fit && i + 1 < rank; i++) fit = strides[i] % 16 == 0 && strides[i] < (cuuint64_t)1 << 40;
    return fit;
}

static CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data,
                             const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                             const cuuint32_t *steps_of, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                             CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    bool fit = addresses_fit(rank, data, sizes, strides);
    for (unsigned i = 0; fit && i < rank; i++)
        fit = box[i] >= 1 && box[i] <= 256 && steps_of[i] >= 1 && steps_of[i] <= 8;
    memset(map, 0, sizeof *map);
    return fit ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult encode_im2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data,
                              const cuuint64_t *sizes, const cuuint64_t *strides, const int *lower, const int *upper,
                              cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps_of,
                              CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                              CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)interleave, (void)swizzle, (void)promotion, (void)fill, (void)steps_of;
    bool fit = addresses_fit(rank, data, sizes, strides) && rank == 4 && channels <= 256 && pixels <= 1024;
    for (int i = 0; fit && i < 2; i++) fit = lower[i] >= -128 && lower[i] <= 127 && upper[i] >= -128 && upper[i] <= 127;
    memset(map, 0, sizeof *map);
    return fit ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *said)
{
    (void)version, (void)flags;
    __typeof__(&encode_tiled) tiled = encode_tiled;
    __typeof__(&encode_im2col) im2col = encode_im2col;
    *found = NULL;
    if (strcmp(name, "cuTensorMapEncodeTiled") == 0) memcpy(found, &tiled, sizeof tiled);
    if (strcmp(name, "cuTensorMapEncodeIm2col") == 0) memcpy(found, &im2col, sizeof im2col);
    if (said != NULL) *said = *found != NULL ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
