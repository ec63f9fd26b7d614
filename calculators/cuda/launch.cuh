/* SPDX-License-Identifier: MIT */
/* Overlapped launches: the blocks of a kernel may start while the previous kernel of the stream is still running ("programmatic dependent
 * launch", compute capability 9.0 and newer), which hides launch latency. Works in captured graphs too.
 *
 * A kernel started by launch_overlapped calls wait_and_launch_dependent_grids() in every thread before it writes anything, or reads what kernels wrote. Before
 * that it may set itself up and call prefetch_line. Since wait_and_launch_dependent_grids() waits before it lets the next kernel start, at most two such kernels
 * run at once: directly after a kernel that calls it (not launch_dependent_grids), memory that this kernel does not write may be read early. */
#ifndef SDLF_CALCULATORS_CUDA_LAUNCH_CUH
#define SDLF_CALCULATORS_CUDA_LAUNCH_CUH

#include "calculators/cuda/cuda.h"

/* Wait until the writes of earlier kernels are visible; then allow the next kernel to start. */
static __device__ __forceinline__ void wait_and_launch_dependent_grids()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* The same in two parts, for kernels with more independent work: launch_dependent_grids comes first, then whatever depends on nothing that
 * kernels of this stream write (such as weights that were prepacked, and waited for, before anything ran). wait_on_dependent_grids precedes
 * all other reads and every write. */
static __device__ __forceinline__ void launch_dependent_grids()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wait_on_dependent_grids()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Prefetch the 128 bytes around the address into the L2 cache. */
static __device__ __forceinline__ void prefetch_line(const void *address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

/* Prefetch into the L2 cache this block's share of what a later kernel reads. Called by one thread, which does not wait for it. Bytes and
 * address are multiples of 16. */
static __device__ __forceinline__ void prefetch_share(const char *from, int64_t bytes, unsigned block, unsigned blocks)
{
#if __CUDA_ARCH__ >= 900
    constexpr int64_t PIECE = 32 << 10;
    const int64_t each = (bytes / blocks + 127) / 128 * 128;
    int64_t at = each * block, end = at + each < bytes ? at + each : bytes;
    for (; at < end; at += PIECE) {
        const uint32_t piece = static_cast<uint32_t>(end - at < PIECE ? end - at : PIECE);
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from + at), "r"(piece) : "memory");
    }
#endif
}

/* kernel<<<blocks, threads, shared>>>(arguments...) on the calculator's stream, in clusters of `cluster` blocks (1: none;
 * more: compute capability 9.0 and newer). Call cuda_check_launch afterwards. */
template <typename... Parameters, typename... Arguments>
static void launch_cluster(const cuda_calculator *calculator, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                           int shared, dim3 cluster, Arguments... arguments)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = static_cast<size_t>(shared);
    config.stream = calculator->stream;
    config.attrs = attributes;
    if (calculator->overlaps) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster.x * cluster.y * cluster.z > 1) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs].val.clusterDim.x = cluster.x;
        attributes[config.numAttrs].val.clusterDim.y = cluster.y;
        attributes[config.numAttrs++].val.clusterDim.z = cluster.z;
    }
    cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/* Shared memory to request for each of `blocks` blocks that need `bytes`: where there is a multiprocessor for every block, enough that no
 * two share one. Otherwise, blocks that start while the previous kernel ends would crowd onto the multiprocessors that become free first. */
static inline int64_t shared_alone(const cuda_calculator *calculator, int64_t blocks, int64_t bytes)
{
    int64_t least = calculator->shared_most / 2 + 1024;
    return calculator->overlaps && blocks <= calculator->multiprocessors && bytes < least ? least : bytes;
}

template <typename... Parameters, typename... Arguments>
static void launch_overlapped(const cuda_calculator *calculator, void (*kernel)(Parameters...), dim3 blocks,
                              dim3 threads, int shared, Arguments... arguments)
{
    launch_cluster(calculator, kernel, blocks, threads, shared, dim3(1), arguments...);
}

#endif
