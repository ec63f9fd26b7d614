/* Convolution over boxes: launching. Built for compute capability 9.0a, and called on 9.0 alone. */
#include "calculators/cuda/conv2d/boxes.cuh"

typedef CUresult (*encode_tiled)(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                 const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                 const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

/* The driver's function, since SDLF is not linked with the driver. */
static cudaError_t find_encode(encode_tiled *encode)
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    if (error == cudaSuccess && result != cudaDriverEntryPointSuccess) error = cudaErrorNotSupported;
    *encode = reinterpret_cast<encode_tiled>(found);
    return error;
}

/* How the copy engine sees x: (images, height, width, channels), in boxes of 32 channels of what a tile's windows cover. */
static sdlf_status describe(CUtensorMap *map, const cuda_patch &p)
{
    encode_tiled encode = nullptr;
    cudaError_t error = find_encode(&encode);
    if (error != cudaSuccess) return cuda_check(error, "conv2d over boxes");
    const cuuint64_t line = static_cast<cuuint64_t>(p.channels) * 4, plane = line * static_cast<cuuint64_t>(p.width);
    const cuuint64_t dims[] = {static_cast<cuuint64_t>(p.channels), static_cast<cuuint64_t>(p.width),
                               static_cast<cuuint64_t>(p.height), static_cast<cuuint64_t>(p.images)};
    const cuuint64_t strides[] = {line, plane, plane * static_cast<cuuint64_t>(p.height)};
    const cuuint32_t box[] = {PATCH_CHANNELS, static_cast<cuuint32_t>(p.patch_across),
                              static_cast<cuuint32_t>(p.patch_pixels / p.patch_across), 1};
    const cuuint32_t steps[] = {1, 1, 1, 1};
    CUresult result = encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, const_cast<float *>(p.x), dims, strides, box,
                             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return cuda_check(result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "conv2d over boxes");
}

template <typename FACTOR, int GROUPS, int PIXELS, int STAGES, int ROUNDING, int BLOCKS>
static sdlf_status launch_tile(sdlf_calculator *base, const cuda_patch &p, const cuda_boxes_launch &how)
{
    using product = boxes_product<FACTOR, GROUPS, PIXELS, STAGES, ROUNDING>;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto kernel = boxes_kernel<product, BLOCKS>;
    CUtensorMap map = {};
    sdlf_status status = p.quads ? describe(&map, p) : SDLF_OK;
    if (status == SDLF_OK) status = allow_shared(kernel, how.shared);
    if (status != SDLF_OK) return status;
    const dim3 blocks(static_cast<unsigned>(p.splits), static_cast<unsigned>(p.tiles_filters),
                      static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across));
    launch_cluster(calculator, kernel, blocks, dim3(product::THREADS), static_cast<int>(how.shared),
                   dim3(static_cast<unsigned>(p.splits)), map, p, how.pools);
    return cuda_check_launch("conv2d over boxes");
}

template <typename FACTOR>
static sdlf_status launch(sdlf_calculator *calculator, const cuda_patch &p, const cuda_boxes_launch &how)
{
    switch (how.tile) {
    case 0: return launch_tile<FACTOR, 1, 256, 2, 1, 2>(calculator, p, how);
    case 1: return launch_tile<FACTOR, 1, 256, 5, 3, 1>(calculator, p, how);
    case 2: return launch_tile<FACTOR, 2, 256, 3, 3, 1>(calculator, p, how);
    case 3: return launch_tile<FACTOR, 1, 128, 4, 3, 2>(calculator, p, how);
    case 4: return launch_tile<FACTOR, 2, 128, 4, 3, 1>(calculator, p, how);
    default: return launch_tile<FACTOR, 2, 128, 2, 1, 2>(calculator, p, how);
    }
}

extern "C" sdlf_status cuda_boxes_multiply(sdlf_calculator *calculator, const cuda_patch *problem,
                                           const cuda_boxes_launch *how)
{
    return cuda_calculator_from(calculator)->math == SDLF_MATH_FP16 ? launch<patch_fp16>(calculator, *problem, *how)
                                                                    : launch<patch_bf16>(calculator, *problem, *how);
}
