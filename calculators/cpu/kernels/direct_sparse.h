/* SPDX-License-Identifier: MIT */
/* The gradients of a convolution followed by a max-pool, from the marked positions only. See direct.h for the layouts.
 *
 * After a 2x2 pool three quarters of the gradient are zeros (more with ReLU). A marked position (p,q) of filter k
 * contributes, for each row of the window: dx's run at (p + r, q) += share times w's row, and w's row += share times
 * x's run. Each is S C contiguous elements, processed in whole vectors. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_DIRECT_SPARSE_H
#define SDLF_CALCULATORS_CPU_KERNELS_DIRECT_SPARSE_H

#include "calculators/cpu/kernels/direct_conv2d.h"

enum { SPARSE_SLOTS = 9, SPARSE_MOST_SLOTS = 126 };

/* A filter's vectors: rows of S C elements, each padded to whole vectors; slot i reads at offset[i] from its window. */
typedef struct sparse_filter {
    int64_t slots, padded_slots; /* padded to a multiple of SPARSE_SLOTS */
    int64_t row_vectors;
    int64_t offset[SPARSE_MOST_SLOTS];
} sparse_filter;

/* One marked position. */
typedef struct sparse_mark {
    int64_t at; /* where its window begins in the packed image */
    int32_t k, position;
    element share;
} sparse_mark;

/* The marks of an image, sorted by filter and by position. */
typedef struct sparse_marks {
    int64_t limit; /* capacity */
    sparse_mark *by_filter, *by_position;
    int32_t *filter_start, *position_start; /* K + 1, P Q + 1 */
} sparse_marks;

/* Returns whether it pays: a row of the window must fill a vector. */
bool sparse_takes_cpu(const convolution *v);
sparse_filter sparse_filter_of_cpu(const convolution *v);

/* Elements of scratch space for the marks, and their construction in it. */
int64_t sparse_marks_size_cpu(const convolution *v, const direct_pool *pool);
sparse_marks sparse_marks_of_cpu(const convolution *v, const direct_pool *pool, element *scratch);

/* Returns false if there are too many marks for the sparse path to pay. */
bool sparse_mark_cpu(sparse_marks *marks, const convolution *v, const direct_pool *pool, const element *dy,
                     const uint8_t *mask);

/* Packs w (K,C,R,S) as [k][slot]. */
void sparse_pack_cpu(element *packed, const convolution *v, const sparse_filter *filter, const element *w);

/* sums[k][slot] += */
void sparse_weights_cpu(element *sums, const convolution *v, const sparse_filter *filter, const sparse_marks *marks,
                        const element *image);
/* image += the input gradient; image is the packed dx, with space for one more vector after it */
void sparse_input_cpu(element *image, const convolution *v, const sparse_filter *filter, const sparse_marks *marks,
                      const element *packed);

#endif
