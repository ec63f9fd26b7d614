/* SPDX-License-Identifier: MIT */
/* The inner loops of quantized_conv2d: tiles of pixels and filters, of sums in int32 that stay in registers.
 *
 * The image lies channels last with its padding. Its elements are bytes where an instruction multiplies bytes by bytes and adds four
 * products (VNNI, vpdpbusd); else they are int16, of which an instruction adds two products (vpmaddwd). So neither saturates. Either way a
 * step takes four bytes of the image, "a quad": of a tile's pixels each, broadcast, times a quad of each of a vector's filters.
 *
 * A window is a few runs of elements that follow one another: a row of it, where all channels belong to one filter and columns are not
 * dilated, else one position. Weights of a run's last quad are 0 behind its end, where the image may have anything.
 *
 * Depthwise, lanes are channels: a quad is one element, and one weight, with zeros above them. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_QUANTIZED_TILES_H
#define SDLF_CALCULATORS_CPU_KERNELS_QUANTIZED_TILES_H

#include "calculators/cpu/kernels/quantized.h"

/* What a sum, the bias in it, becomes: round(sum scale), sum scale, or the sum itself. */
typedef enum quantized_form { QUANTIZED_BYTES = 0, QUANTIZED_FLOATS, QUANTIZED_SUMS } quantized_form;

typedef struct quantized_layer {
    /* the padded image, and where in it pixel (n, p, q)'s window begins, in bytes */
    const uint8_t *image;
    int64_t image_step, row_step, column_step, group_step;
    int64_t pixel_step, columns,
        stride; /* depthwise: of the image's columns, and of the window; columns 0: it is dilated */
    /* the window */
    const int64_t *run;     /* where each begins, in bytes, from the window's beginning */
    int64_t runs, quads;    /* of each */
    const int32_t *weights; /* [group][vector of filters][run][quad][lane]; depthwise [vector of channels][run][lane] */
    /* what becomes of sums: less less_rows[pixel] less_columns[filter], where these are there; and, of bytes and floats, times
     * scale[filter], plus shift[filter], where that is there */
    const int32_t *bias, *less_rows[2], *less_columns[2];
    const float *scale, *shift;
    rounding to;
    quantized_form form;
    void *y; /* (N,P,Q,K) */
    int64_t p, q, k, groups;
} quantized_layer;

/* Pixels first .. last - 1, linearised over (N,P,Q), of `vectors` vectors of filters from `vector` of a group on, at most
 * QUANTIZED_VECTORS. */
typedef void quantized_tile_function(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors,
                                     int64_t first, int64_t last);
/* All channels of a row of pixels. */
typedef void quantized_depthwise_function(const quantized_layer *layer, int64_t row);

quantized_tile_function quantized_tiles_cpu, quantized_tiles_vnni_cpu;
quantized_depthwise_function quantized_depthwise_cpu, quantized_depthwise_vnni_cpu;

/* Does this instance have the functions that end in _vnni_cpu? (And the machine what they need: see level.c.) */
#if SDLF_VECTOR_BYTES == 64
enum { QUANTIZED_VNNI = 1, QUANTIZED_VECTORS = 4 };
#else
enum { QUANTIZED_VNNI = 0, QUANTIZED_VECTORS = 2 };
#endif

/* The image's elements are bytes. */
static inline bool quantized_has_vnni(const sdlf_calculator *calculator)
{
    return QUANTIZED_VNNI && cpu_from_const(calculator)->level->vnni();
}

/* All pixels and filters of a layer that is not depthwise, on all threads; `length`: elements of a run. */
void quantized_product_cpu(const cpu_calculator *cpu, const quantized_layer *layer, bool vnni, int64_t pixels,
                           int64_t length);

#endif
