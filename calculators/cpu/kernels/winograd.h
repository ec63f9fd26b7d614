/* Convolution forward by Winograd's minimal filtering, F(m x m, 3 x 3): m x m outputs of a 3x3 window from (m + 2)^2
 * multiplications instead of 9 m^2: 16 instead of 36 for m = 2, 36 instead of 144 for m = 4. Lavin and Gray, "Fast Algorithms
 * for Convolutional Neural Networks" (2015).
 *
 * With d a patch of (m + 2) x (m + 2) of the image, g a filter, and matrices A, B, G of constants:
 *     y = A^T [ sum over c of (G g G^T) . (B^T d B) ] A          . is the product element by element
 * The sum over channels makes (m + 2)^2 matrix products of it, (K,C) (C,tiles) each.
 *
 * Sums and differences of the image come before the multiplication, so that rounding errors are larger than in the other
 * algorithms (docs/convolution.md has figures), and one infinite or NaN pixel spoils all m x m outputs of the tiles that it
 * lies in. That is why it runs on request alone. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_H

#include "calculators/cpu/kernels/im2col.h"

/* 3x3 windows with stride 1 and no dilation; any padding, groups and sizes. */
bool winograd_takes_cpu(const convolution *v);

/* Transformed filters, in elements; and the transformation of w (K,C/G,3,3). m is 2 or 4. */
int64_t winograd_filters_size_cpu(const convolution *v, int m);
void winograd_filters_cpu(const cpu_calculator *cpu, const convolution *v, const element *w, int m, element *filters);

/* filters: transformed ones; NULL: they are transformed in scratch space, for which there is room where `ready` is false. */
im2col_space winograd_forward_space_cpu(const convolution *v, int m, bool ready);
void winograd_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, int m, const element *filters,
                          element *scratch);

#endif
