/* SPDX-License-Identifier: MIT */
/* Winograd convolutions: 3x3 windows with stride 1, in float32, forward.
 *
 * A tile of MxM outputs needs a patch (input tile) of (M+2)x(M+2) pixels. Patch and filter are transformed and
 * multiplied point by point; these products, summed over channels, are transformed back:
 *
 *   y = A^T [ sum over c of (G g[k,c] G^T) * (B^T d[c] B) ] A
 *
 *   winograd-2x2         16 multiplications for 36, all three steps in one kernel (conv2d/winograd_fused.cu)
 *   winograd-2x2-steps   the same in three: patches, a batch of 16 GEMMs by cuBLAS, outputs (conv2d/winograd_steps.cu)
 *   winograd-4x4         in three steps, too: 36 multiplications for 144 (lab/conv2d_winograd.cu)
 *
 * `prepare` transforms the filters; where they are not prepacked, each call transforms them into its workspace.
 * docs/guides/convolution-algorithms.md says how exact the results are. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_WINOGRAD_H
#define SDLF_CALCULATORS_CUDA_CONV2D_WINOGRAD_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tile of a block of the fused kernel, and the channels of a k-step. */
enum { WINOGRAD_FILTERS = 64, WINOGRAD_TILES = 32, WINOGRAD_CHANNELS = 8, WINOGRAD_POINTS = 16 };

/* A forward operation with its addresses. Tiles are linearised over images, rows and columns. */
typedef struct cuda_winograd {
    const float *x, *u; /* u: the transformed filters */
    float *y;
    const float *bias, *residual;
    float *scratch; /* the fused kernel's partial outputs; v and the GEMMs' results of the steps */
    unsigned *tickets;
    sdlf_activation activation;
    int channels, height, width, filters, out_height, out_width, padding[2];
    int tiles_down, tiles_across, tiles;
    int filter_blocks, tile_blocks, splits; /* of the fused kernel; splits of the channels */
} cuda_winograd;

/* Transform w (K,C,3,3) to u: for the fused kernel (K / 64, C / 8, 16 points, 8, 64), both rounded up and padded with
 * zeros; for the steps (points, K, C). */
sdlf_status cuda_winograd_filters_fused(sdlf_calculator *calculator, const float *w, float *u, int filters,
                                        int channels);
/* y = act(conv2d(x, w) + bias + residual) in one kernel. */
sdlf_status cuda_winograd_fused(sdlf_calculator *calculator, const cuda_winograd *problem);
int64_t cuda_winograd_shared(void); /* bytes of shared memory of a block */

/* In steps, side x side tiles (winograd_steps.cuh): u from w; v (points, C, tiles) of x; y of (points, K, tiles). */
typedef struct cuda_winograd_steps {
    int side;
    sdlf_status (*filters)(sdlf_calculator *calculator, const float *w, float *u, int filters, int channels);
    sdlf_status (*patches)(sdlf_calculator *calculator, const cuda_winograd *problem, float *v);
    sdlf_status (*outputs)(sdlf_calculator *calculator, const cuda_winograd *problem, const float *products);
} cuda_winograd_steps;
extern const cuda_winograd_steps cuda_winograd_steps_2;
bool cuda_winograd_takes(const sdlf_operation *operation, const cuda_winograd_steps *steps);
int64_t cuda_winograd_prepared(const sdlf_operation *operation, const cuda_winograd_steps *steps);
sdlf_status cuda_winograd_prepare(sdlf_calculator *calculator, const sdlf_operation *operation,
                                  const cuda_winograd_steps *steps);
int64_t cuda_winograd_workspace(const sdlf_operation *operation, const cuda_winograd_steps *steps);
sdlf_status cuda_winograd_run(sdlf_calculator *calculator, const sdlf_operation *operation,
                              const cuda_winograd_steps *steps);

/* The algorithms: fused, and in steps with 2x2 tiles. */
bool cuda_winograd_fused_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* For an operation that both support: true if the steps are faster than the fused kernel. */
bool cuda_winograd_prefers_steps(const sdlf_operation *operation);
bool cuda_winograd_2_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_winograd_fused_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_winograd_2_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_winograd_fused_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_winograd_2_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_winograd_fused_cuda, conv2d_winograd_2_cuda;
sdlf_kernel conv2d_winograd_fused_prepare_cuda, conv2d_winograd_2_prepare_cuda;

#ifdef __cplusplus
}
#endif
#endif
