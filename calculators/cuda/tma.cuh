/* SPDX-License-Identifier: MIT */
/* TMA: tensor maps, and the loads and stores that move tiles of tensors between global and shared memory (compute capability 9.0 and newer).
 *
 * Every map moves rows of contiguous elements, channels innermost. Rows are swizzled over their length in bytes (32, 64 or 128), as wgmma
 * reads them, with 16-byte chunks at chunk ^ (row % 8) for 128, and tiles begin at multiples of 1024 bytes; or they are not swizzled, and
 * tiles begin at multiples of 128. Elements outside of the tensor are loaded as 0 and skipped by stores. After the CUDA driver API's "Tensor
 * Map Object Management" and PTX's cp.async.bulk.tensor. */
#ifndef SDLF_CALCULATORS_CUDA_TMA_CUH
#define SDLF_CALCULATORS_CUDA_TMA_CUH

#include <cuda.h>

#include "calculators/cuda/kernels.cuh"

/* An image operand (N,H,W,C) accessed in im2col mode: base pixels run over [lower, last side - 1 + upper] along H and W in steps of
 * `stride`, W fastest, then H, then N; a load names a base pixel and the offset of a filter tap from it. Pixels may overlap. */
struct im2col_shape {
    const void *data;                        /* a multiple of 16 bytes */
    int64_t images, height, width, channels; /* a pixel is a multiple of 16 bytes */
    int lower[2], upper[2], stride[2];       /* of H and W; lower and upper in [-128, 127], stride at most 8 */
    int64_t pixel_step, row_step;            /* elements between adjacent pixels, and rows; 0: dense */
};

/* A tensor, dense unless `stride` says otherwise: dim[0] is innermost. */
struct tiled_shape {
    const void *data;           /* a multiple of 16 bytes */
    int rank;                   /* 2 to 4 */
    int64_t dim[4];             /* a row, dim[0] elements, is a multiple of 16 bytes */
    int box[4];                 /* elements of a tile along each axis, */
    int step[4] = {1, 1, 1, 1}; /* of which every step-th is moved (the traversal stride) */
    bool exact = false;         /* float32 unchanged, not rounded to tf32 */
    bool in_order = false;      /* not swizzled */
    int64_t stride[2] = {0,
                         0}; /* elements between neighbours along dim[1] and dim[2], multiples of 16 bytes; 0: dense */
};

static inline void *tma_entry(const char *name)
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? found : nullptr;
}

static inline CUtensorMapSwizzle tma_swizzle(int64_t bytes)
{
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                         : CU_TENSOR_MAP_SWIZZLE_32B;
}

static inline CUtensorMapDataType tma_type(sdlf_dtype dtype)
{
    return dtype == SDLF_BFLOAT16  ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
           : dtype == SDLF_FLOAT16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                   : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
}

/* False if the driver has no such maps, or refuses this one. */
static inline bool make_im2col_map(CUtensorMap *map, sdlf_dtype dtype, const im2col_shape &of, int chunk, int pixels)
{
    typedef CUresult encoder(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t, const cuuint32_t *,
                             CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                             CUtensorMapFloatOOBfill);
    encoder *encode = reinterpret_cast<encoder *>(tma_entry("cuTensorMapEncodeIm2col"));
    if (encode == nullptr) return false;
    const cuuint64_t c = static_cast<cuuint64_t>(of.channels), w = static_cast<cuuint64_t>(of.width);
    const cuuint64_t h = static_cast<cuuint64_t>(of.height), n = static_cast<cuuint64_t>(of.images);
    const cuuint64_t size = sdlf_dtype_size(dtype);
    const cuuint64_t pixel = of.pixel_step > 0 ? size * static_cast<cuuint64_t>(of.pixel_step) : size * c;
    const cuuint64_t row = of.row_step > 0 ? size * static_cast<cuuint64_t>(of.row_step) : pixel * w;
    const cuuint64_t dims[4] = {c, w, h, n}, strides[3] = {pixel, row, row * h};
    const int lower[2] = {of.lower[1], of.lower[0]}, upper[2] = {of.upper[1], of.upper[0]};
    const cuuint32_t steps[4] = {1, static_cast<cuuint32_t>(of.stride[1]), static_cast<cuuint32_t>(of.stride[0]), 1};
    return encode(map, tma_type(dtype), 4, const_cast<void *>(of.data), dims, strides, lower, upper,
                  static_cast<cuuint32_t>(chunk), static_cast<cuuint32_t>(pixels), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  tma_swizzle(chunk * static_cast<int64_t>(size)), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static inline bool make_tiled_map(CUtensorMap *map, sdlf_dtype dtype, const tiled_shape &of)
{
    typedef CUresult encoder(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    encoder *encode = reinterpret_cast<encoder *>(tma_entry("cuTensorMapEncodeTiled"));
    if (encode == nullptr) return false;
    const cuuint64_t size = sdlf_dtype_size(dtype);
    cuuint64_t dims[4], strides[3], stride = size;
    cuuint32_t box[4], steps[4];
    for (int i = 0; i < of.rank; i++) {
        dims[i] = static_cast<cuuint64_t>(of.dim[i]);
        box[i] = static_cast<cuuint32_t>(of.box[i]);
        steps[i] = static_cast<cuuint32_t>(of.step[i]);
        stride *= dims[i];
        if (i < 2 && of.stride[i] > 0) stride = size * static_cast<cuuint64_t>(of.stride[i]);
        if (i + 1 < of.rank) strides[i] = stride;
    }
    const CUtensorMapDataType type = of.exact ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : tma_type(dtype);
    return encode(map, type, static_cast<cuuint32_t>(of.rank), const_cast<void *>(of.data), dims, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE,
                  of.in_order ? CU_TENSOR_MAP_SWIZZLE_NONE : tma_swizzle(of.box[0] * static_cast<int64_t>(size)),
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* A float32 image (images, height, width, channels), channels a multiple of 4, and its tiles: `size` pixels along height and width, of which
 * every stride-th is moved, by TMA_CHANNELS channels, swizzled; or by `in_order` channels, not swizzled, if that is not 0. */
enum { TMA_CHANNELS = 32 };
struct image_shape {
    const float *data;
    int64_t images, height, width, channels;
    int size[2], stride[2];
    bool rounded; /* to tf32, by the load */
    int in_order;
};

static inline bool make_image_map(CUtensorMap *map, const image_shape &of)
{
    const tiled_shape tiled = {of.data,
                               4,
                               {of.channels, of.width, of.height, of.images},
                               {of.in_order > 0 ? of.in_order : TMA_CHANNELS, of.size[1], of.size[0], 1},
                               {1, of.stride[1], of.stride[0], 1},
                               !of.rounded,
                               of.in_order > 0};
    return make_tiled_map(map, SDLF_FLOAT32, tiled);
}

/* ---- on the device: each issued by one thread; loaded bytes count towards the barrier's phase ---- */

static __device__ __forceinline__ void tma_prefetch(const CUtensorMap *map)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

/* Arrive at a barrier whose phase then lasts until `bytes` more bytes have been loaded. */
static __device__ __forceinline__ void tma_expect(uint32_t barrier, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}

/* Load the channels from c on of the pixels under filter tap (r, s), for base pixel (n, h, w) and those that follow it. */
static __device__ __forceinline__ void tma_load_im2col(uint32_t shared, const CUtensorMap *map, uint32_t barrier, int c,
                                                       int w, int h, int n, int s, int r)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared),
                 "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(barrier), "h"(static_cast<uint16_t>(s)),
                 "h"(static_cast<uint16_t>(r))
                 : "memory");
#endif
}

static __device__ __forceinline__ void tma_load_2d(uint32_t shared, const CUtensorMap *map, uint32_t barrier, int x,
                                                   int y)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
#endif
}

static __device__ __forceinline__ void tma_load_3d(uint32_t shared, const CUtensorMap *map, uint32_t barrier, int x,
                                                   int y, int z)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
                 : "memory");
#endif
}

/* The first element of a tile of an image. */
struct image_place {
    int channel, column, row, image;
};

static __device__ __forceinline__ void tma_load_image(uint32_t shared, const CUtensorMap *map, const image_place &at,
                                                      uint32_t barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
                 "l"(map), "r"(at.channel), "r"(at.column), "r"(at.row), "r"(at.image), "r"(barrier)
                 : "memory");
#endif
}

/* A store from shared memory. The threads that wrote the data must have executed fence.proxy.async before. */
static __device__ __forceinline__ void tma_store_image(const CUtensorMap *map, uint32_t shared, const image_place &at)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map),
                 "r"(at.channel), "r"(at.column), "r"(at.row), "r"(at.image), "r"(shared)
                 : "memory");
#endif
}

/* Wait for the thread's stores: until their shared memory has been READ, or until all is written. */
template <bool READ> static __device__ __forceinline__ void tma_await_stores()
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
