/* SPDX-License-Identifier: MIT */
/* One convolution of the lab: its sizes, as text and as an operation. */
#ifndef SDLF_APPS_BENCH_CONV_SHAPE_H
#define SDLF_APPS_BENCH_CONV_SHAPE_H

#include <sdlf/calculator.h>

/* The limit of one number of a shape: far more than fits any machine, far less than overflows. */
enum { LAB_SIDE_MOST = 1 << 24 };

/* Letters as in <sdlf/operation.h>; the first of each pair is vertical. Padding is the same on both sides. */
typedef struct lab_shape {
    int64_t n, c, h, w, k;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t groups;
} lab_shape;

/* The command-line options of one; NULL if an option was not given. */
typedef struct lab_shape_text {
    const char *shape, *kernel, *stride, *padding, *dilation;
    int64_t groups;
} lab_shape_text;

/* Parse "1x64x56x56", "64x3x3", "2" or "2x1". Errors: SDLF_ERROR_ARGUMENT names the option, its form and what was
 * found. */
sdlf_status lab_shape_read(lab_shape *shape, const lab_shape_text *text);

/* Create its checked conv2d_forward, with no memory bound. Errors: SDLF_ERROR_ARGUMENT says which sizes do not fit. */
sdlf_status lab_shape_operation(const lab_shape *shape, sdlf_dtype dtype, sdlf_operation *operation);

/* "1x64x56x56, 64 of 3x3, stride 2, padding 1": default values are omitted. */
typedef struct lab_shape_line {
    char text[160];
} lab_shape_line;
lab_shape_line lab_shape_print(const lab_shape *shape);

#endif
