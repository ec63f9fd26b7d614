/* SPDX-License-Identifier: MIT */
/* The gradient by the weights with windows of several pixels and a stride of 1 across, in 16 bits: implicit GEMM over tiles of 8 x 8 pixels of dy, beside which
 * shared memory holds the image under the tile with its halo, loaded once for all taps (engine/conv2d_halo.cuh). Rows are 64 filters, columns some
 * channels, and the reduction goes over the tile's pixels, two lines at a time; a block has nine taps, three in each of three warpgroups, whose sums stay
 * in registers over all tiles of its part of the images (split-K), and goes into the workspace (engine/splits.h).
 *
 * Where a tile has no pixel dy is 0, and x is what is there: an infinity or a NaN that windows up to 7 lines or columns behind the last ones would see
 * can reach taps that do not see it.
 * Compute capability 9.0a. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_HALO_WEIGHTS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_HALO_WEIGHTS_CUH

#include "calculators/cuda/engine/conv2d.h"

/* How the product is cut: parts of the reduction, 0: it is not computed here. */
int64_t engine_halo_weights_splits(const cuda_calculator *calculator, const engine_conv2d *conv);
/* sums: (splits, K, R S, C), float32. */
sdlf_status engine_run_halo_weights(const cuda_calculator *calculator, const engine_conv2d *conv, const void *x,
                                    float *sums);
#endif
