/* SPDX-License-Identifier: MIT */
/* Boxes of tensors, brought into shared memory by the bulk copy engine: compute capability 9.0 and newer.
 *
 * A map (CUtensorMap) says where a tensor of four axes lies, channels innermost, and how large a box is; a copy names the box's first
 * element along each axis, which may lie outside: what does not exist reads as 0. In shared memory, channels of a place are a
 * row of 128 bytes, rows follow each other, and the 16-byte chunks of a row stand at chunk ^ (row % 8); boxes begin at multiples of 1024. Or
 * channels of a place are so many as the box says, in their order; such boxes begin at multiples of 128. */
#ifndef SDLF_CALCULATORS_CUDA_BOXES_CUH
#define SDLF_CALCULATORS_CUDA_BOXES_CUH

#include <cuda.h>

#include "calculators/cuda/kernels.cuh"

enum { BOX_CHANNELS = 32 }; /* of a row */

/* A tensor (images, height, width, channels) in float32, and boxes of it: `size` places along height and width, of which every
 * stride-th is copied. */
struct box_shape {
    const float *data; /* a multiple of 16 bytes; channels are a multiple of 4 */
    int64_t images, height, width, channels;
    int size[2], stride[2];
    bool rounded; /* to tf32, on the way */
    int in_order; /* channels of a place, where they lie in their order; 0: BOX_CHANNELS, in chunks */
};

/* The map of it. False: the driver has no such maps, or refuses this one. */
static inline bool make_box_map(CUtensorMap *map, const box_shape &shape)
{
    typedef CUresult encoder(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess || result != cudaDriverEntryPointSuccess || found == nullptr) return false;
    const cuuint64_t row = static_cast<cuuint64_t>(shape.channels) * sizeof(float);
    const cuuint64_t line = row * static_cast<cuuint64_t>(shape.width);
    const cuuint64_t dims[4] = {static_cast<cuuint64_t>(shape.channels), static_cast<cuuint64_t>(shape.width),
                                static_cast<cuuint64_t>(shape.height), static_cast<cuuint64_t>(shape.images)};
    const cuuint64_t strides[3] = {row, line, line * static_cast<cuuint64_t>(shape.height)};
    const cuuint32_t box[4] = {static_cast<cuuint32_t>(shape.in_order > 0 ? shape.in_order : BOX_CHANNELS),
                               static_cast<cuuint32_t>(shape.size[1]), static_cast<cuuint32_t>(shape.size[0]), 1};
    const cuuint32_t steps[4] = {1, static_cast<cuuint32_t>(shape.stride[1]), static_cast<cuuint32_t>(shape.stride[0]),
                                 1};
    const CUtensorMapDataType type = shape.rounded ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    return reinterpret_cast<encoder *>(found)(
               map, type, 4, const_cast<float *>(shape.data), dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               shape.in_order > 0 ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* The first element of a box. */
struct box_place {
    int channel, column, row, image;
};

/* Bring a map to where copies read it. */
static __device__ __forceinline__ void prefetch_map(const CUtensorMap *map)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

/* Queue the copy of a box; its bytes count for the barrier's phase (box_expect). By one thread. */
static __device__ __forceinline__ void box_load(uint32_t shared, const CUtensorMap *map, const box_place &at,
                                                uint32_t barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
                 "l"(map), "r"(at.channel), "r"(at.column), "r"(at.row), "r"(at.image), "r"(barrier)
                 : "memory");
#endif
}

/* Arrive at a barrier, whose phase then lasts until so many bytes more have been copied. */
static __device__ __forceinline__ void box_expect(uint32_t barrier, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}

/* Queue the copy of a box from shared memory to where the map says; what lies outside is left out. Then wait for those that were queued: until
 * their shared memory was READ, or until all is written. By one thread, which a fence (fence.proxy.async) of those that wrote precedes. */
static __device__ __forceinline__ void box_store(const CUtensorMap *map, uint32_t shared, const box_place &at)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map),
                 "r"(at.channel), "r"(at.column), "r"(at.row), "r"(at.image), "r"(shared)
                 : "memory");
#endif
}
template <bool READ> static __device__ __forceinline__ void boxes_stored()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (READ)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    else
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

#endif
