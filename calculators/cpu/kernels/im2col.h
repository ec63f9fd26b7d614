/* SPDX-License-Identifier: MIT */
/* Convolution by im2col and GEMM: rows (c, r, s) of the im2col matrix, columns (p, q). */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IM2COL_H
#define SDLF_CALCULATORS_CPU_KERNELS_IM2COL_H

#include "calculators/cpu/kernels/convolution.h"

/* A block of the matrix: rows [row, row + rows), columns [column, column + columns). */
typedef struct patches {
    int64_t row, rows, column, columns;
} patches;

/* Writes a block of the im2col matrix of one group's image x (c,h,w): to[i * step + j]. */
void im2col_cpu(element *to, int64_t step, const element *x, const convolution *v, patches piece);

/* The adjoint (col2im): adds each element of the block to the element of dx that it came from. */
void col2im_cpu(element *dx, const element *from, int64_t step, const convolution *v, patches piece);

/* True if the matrix equals x itself (1x1 windows, stride 1, no padding). */
bool im2col_is_plain_cpu(const convolution *v);

/* The three GEMM convolutions over all images, with the scratch space of each thread and the space shared by all, in
 * elements. bias, residual, dw and db may be NULL. */
typedef struct im2col_space {
    int64_t each, shared;
} im2col_space;

static inline int64_t im2col_bytes_cpu(const sdlf_calculator *calculator, im2col_space space)
{
    return (space.shared + cpu_from_const(calculator)->threads * space.each) * (int64_t)sizeof(element);
}

typedef struct convolution_forward {
    convolution v;
    const element *x, *w, *bias, *residual;
    element *y;
    sdlf_activation activation;
} convolution_forward;

im2col_space im2col_forward_space_cpu(const convolution *v);
void im2col_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, element *scratch);

im2col_space im2col_backward_input_space_cpu(const convolution *v);
void im2col_backward_input_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, const element *w,
                               element *dx, element *scratch);

im2col_space im2col_backward_weights_space_cpu(const convolution *v);
void im2col_backward_weights_cpu(const cpu_calculator *cpu, const convolution *v, const element *x, const element *dy,
                                 element *dw, element *scratch);

/* db[k] = sum over n,p,q of dy */
void convolution_backward_bias_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, element *db);

#endif
