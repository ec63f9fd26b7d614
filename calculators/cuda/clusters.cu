/* SPDX-License-Identifier: MIT */
/* Counts the clusters that the device holds at a time. No device property gives this: GPCs differ in their number of multiprocessors, even
 * between devices of the same name, and a cluster does not span two GPCs. */
#include "calculators/cuda/cuda.h"

#include "calculators/cuda/kernels.cuh"

enum { THREADS = 128 };

static __global__ void stands_for_any()
{
}

/* The number of clusters of `size` blocks, `fit` of which fit on a multiprocessor; 0: unknown. */
static int clusters_of(const cuda_calculator *calculator, int size, int fit)
{
    const int shared = ((calculator->shared_most + 1024) / fit - 1024) / 1024 * 1024;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(size);
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(size * calculator->multiprocessors * fit));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = static_cast<size_t>(shared);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int count = 0;
    if (allow_shared(stands_for_any, shared) == SDLF_OK && allow_cluster(stands_for_any, size) == SDLF_OK &&
        cudaOccupancyMaxActiveClusters(&count, stands_for_any, &config) == cudaSuccess)
        return count;
    cudaGetLastError();
    return 0;
}

extern "C" void cuda_count_clusters(cuda_calculator *calculator)
{
    for (int fit = 1; fit <= CUDA_CLUSTER_FIT; fit++) {
        for (int size = 1; size <= CUDA_CLUSTER; size++) {
            int count = 0;
            if (size > 1 && cuda_is_built_for(calculator, 90)) count = clusters_of(calculator, size, fit);
            bool known = count > 0 || size > CUDA_CLUSTER_PORTABLE;
            calculator->clusters[fit - 1][size] = known ? count : calculator->multiprocessors * fit / size;
        }
    }
}
