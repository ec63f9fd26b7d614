/* SPDX-License-Identifier: MIT */
/* Forward convolution of images of few channels, packed so that windows begin 16 bytes apart (engine/pack.h): implicit GEMM whose first operand is
 * the packed image itself, as it lies. Without swizzling wgmma takes 8 rows of 16 bytes that follow each other; of a line of the image these are the
 * same 16 bytes of 8 neighbouring windows, and the next 16 bytes of all of them begin 16 bytes later.
 *
 * A block keeps the weights of BN filters in shared memory, and computes every slots-th pair of runs, of 64 windows of a row each, a warpgroup a run.
 * A producer thread loads the R pieces of lines of both runs by bulk copies into a ring of stages. Reads x R times from the second-level cache,
 * writes y once. Compute capability 9.0a. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_WINDOWS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_WINDOWS_CUH

#include "calculators/cuda/engine/image_params.cuh"
#include "calculators/cuda/engine/pack.h"

struct windows_params {
    image_params image; /* of[0]: pixels and count[1] are those of whole runs */
    const char *x;
    int64_t line_bytes;
    int lines, stride, dilation;   /* of an image; from a result's row, and from a tap, to the next */
    int taps, row_bytes;           /* R; of a window, a multiple of 32 */
    int boxes;                     /* of 128 bytes of a filter's weights */
    divider<int32_t> runs, height; /* of a row of the result; P */
    int all_runs;
};

/* Of packed operands; params: what the epilogue needs. */
sdlf_status engine_forward_windows(const cuda_calculator *calculator, const engine_conv2d *packed,
                                   image_params *params);
#endif
