/* SPDX-License-Identifier: MIT */
/* wgrad with windows of several pixels and a horizontal stride of 1, in 16 bits: implicit GEMM over tiles of 8 x 8 pixels of dy. Shared memory also
 * holds the input under the tile with its halo, loaded once for all taps (engine/conv2d_halo.cuh). Rows are 64 filters, columns some channels, and
 * the reduction runs over the tile's pixels, two lines at a time. A block has nine taps, three in each of three warpgroups, whose accumulators stay
 * in registers over all tiles of its part of the images (split-K), and are then written to the workspace (engine/splits.h).
 *
 * Where a tile extends past the last pixel, dy is 0 and x is whatever is stored: an infinity or a NaN under
 * windows up to 7 lines or columns past the last ones can reach taps that do not read it. Compute capability
 * 9.0a. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_HALO_WEIGHTS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_HALO_WEIGHTS_CUH

#include "calculators/cuda/engine/conv2d.h"

/* The number of splits of the reduction; 0: this kernel does not support the convolution. */
int64_t engine_halo_weights_splits(const cuda_calculator *calculator, const engine_conv2d *conv);
/* sums: (splits, K, R S, C), float32. */
sdlf_status engine_run_halo_weights(const cuda_calculator *calculator, const engine_conv2d *conv, const void *x,
                                    float *sums);
#endif
