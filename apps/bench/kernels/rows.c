/* SPDX-License-Identifier: MIT */
/* The list of operations that `sdlf bench kernels` runs, and helpers shared by its parts. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "apps/bench/kernels/kernels.h"

static const double whole = 0x1p25; /* elements at which matrix products have their listed sizes */

void kernel_rows_add(kernel_rows *rows, const sdlf_operation *operation, bool every, const char *format, ...)
{
    if (rows->count == KERNEL_ROWS) return;
    kernel_row *row = &rows->row[rows->count++];
    *row = (kernel_row){.operation = *operation, .every = every};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->text, sizeof row->text, format, arguments);
    va_end(arguments);
}

sdlf_tensor kernel_rows_tensor(const kernel_rows *rows, sdlf_shape shape)
{
    return sdlf_tensor_view(rows->dtype, shape, NULL);
}

sdlf_tensor kernel_rows_image(const kernel_rows *rows)
{
    int64_t images = rows->elements / (128 * 64 * 64);
    return kernel_rows_tensor(rows, sdlf_shape(images < 1 ? 1 : images, 128, 64, 64));
}

int64_t kernel_rows_side(const kernel_rows *rows, int64_t of_whole)
{
    int64_t side = (int64_t)((double)of_whole * sqrt((double)rows->elements / whole));
    return of_whole % 4 != 0 || of_whole < 64 ? of_whole : side < 8 ? 8 : (side + 3) / 4 * 4;
}

void kernel_rows_make(kernel_rows *rows, sdlf_dtype dtype, int64_t elements)
{
    *rows = (kernel_rows){.dtype = dtype, .elements = elements};
    kernel_rows_products(rows);
    kernel_rows_convolutions(rows);
    kernel_rows_networks(rows);
    kernel_rows_elements(rows);
    kernel_rows_axes(rows);
    kernel_rows_quantized(rows);
}
