/* SPDX-License-Identifier: MIT */
/* Convolution forward by Winograd's minimal filtering, F(m x m, 3 x 3): m x m outputs of a 3x3 window from (m + 2)^2
 * multiplications instead of 9 m^2: 16 instead of 36 for m = 2, 36 instead of 144 for m = 4. Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks" (2015). Activations are NHWC.
 *
 * With d a tile of (m + 2) x (m + 2) input pixels, g a filter, and constant matrices A, B, G:
 *     y = A^T [ sum over c of (G g G^T) . (B^T d B) ] A          . is the elementwise product
 * The sum over channels becomes (m + 2)^2 matrix products, (tiles,C) (C,K) each. Vectors run over channels, so that the
 * transforms need no shuffles; the products use the implicit GEMM microkernel (implicit_tile.h), one panel of filters
 * at a time. Transformed input tiles ("patches") and products of a run of tiles stay in the second-level cache:
 *     filters   U[group][panel][t][c][filter of the panel]    t counts the points; filters are padded to whole vectors
 *     patches   V[t][tile][c]                                 channels are padded to whole vectors
 *     products  M[t][tile][filter of the panel]               of one panel
 * 2 (m + 2)^2 K C tiles FLOPs in the products, against 18 m^2 K C tiles of the convolution itself; x and y are moved
 * once, U once for each run.
 *
 * The input transform adds and subtracts before the multiplication. With m = 2 the accuracy is that of a direct sum;
 * with m = 4 rounding errors are larger (docs/guides/convolution-algorithms.md has figures), which is why it runs only
 * on request. One infinite or NaN pixel contaminates all m x m outputs of the tiles that contain it. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_H

#include "calculators/cpu/kernels/im2col.h"

/* Supports 3x3 windows with stride 1 and no dilation; any padding and sizes, groups of more than one channel. */
bool winograd_takes_cpu(const convolution *v);

/* True if it is faster than implicit GEMM, with m = 2. v must be supported. */
bool winograd_pays_cpu(const convolution *v);

/* Elements of transformed filters, and transforming w (K,C/G,3,3). m is 2 or 4. */
int64_t winograd_packed_size_cpu(const convolution *v, int m);
void winograd_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w, int m);

/* forward->w is not read. */
im2col_space winograd_space_cpu(const convolution *v, int m);
void winograd_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, int m, const element *packed,
                          element *scratch);

#endif
