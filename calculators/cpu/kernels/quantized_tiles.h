/* SPDX-License-Identifier: MIT */
/* The microkernels of quantized_conv2d: register tiles of pixels and filters, with int32 accumulators.
 *
 * The image is NHWC with its padding. Its elements are bytes where an instruction multiplies bytes and adds four
 * products (vpdpbusd, VNNI); else int16, where one adds two products (vpmaddwd). Neither saturates. A step consumes four
 * bytes of the image, "a quad": one for each pixel of the tile, broadcast, times one for each of a vector's filters.
 *
 * A window is a few contiguous runs of elements: a window row if all channels belong to one filter and columns are not
 * dilated, else one position. Weights of a run's last quad are 0 past its end, where the image may hold anything.
 *
 * Depthwise, lanes are channels: a quad is one element, and one weight, zero-extended. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_QUANTIZED_TILES_H
#define SDLF_CALCULATORS_CPU_KERNELS_QUANTIZED_TILES_H

#include "calculators/cpu/kernels/quantized.h"

/* What an accumulator, bias included, becomes: round(sum scale), sum scale, or the sum itself. */
typedef enum quantized_form { QUANTIZED_BYTES = 0, QUANTIZED_FLOATS, QUANTIZED_SUMS } quantized_form;

typedef struct quantized_layer {
    /* the padded image, and the offset in it of the window of pixel (n, p, q), in bytes */
    const uint8_t *image;
    int64_t image_step, row_step, column_step, group_step;
    int64_t pixel_step, columns,
        stride; /* depthwise: of the image's columns, and of the window; columns 0: it is dilated */
    /* the window */
    const int64_t *run;     /* the offset of each in the window, in bytes */
    int64_t runs, quads;    /* of each */
    const int32_t *weights; /* [group][vector of filters][run][quad][lane]; depthwise [vector of channels][run][lane] */
    /* the epilogue: the accumulator minus less_rows[pixel] less_columns[filter], if present; and, for bytes and floats,
     * times scale[filter], plus shift[filter], if present */
    const int32_t *bias, *less_rows[2], *less_columns[2];
    const float *scale, *shift;
    rounding to;
    quantized_form form;
    void *y; /* (N,P,Q,K) */
    int64_t p, q, k, groups;
} quantized_layer;

/* Computes pixels first .. last - 1, linearised over (N,P,Q), for `vectors` vectors of filters from vector `from` of a
 * group on, at most QUANTIZED_VECTORS. */
typedef void quantized_tile_function(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors,
                                     int64_t first, int64_t last);
/* Computes all channels of a row of pixels. */
typedef void quantized_depthwise_function(const quantized_layer *layer, int64_t row);

quantized_tile_function quantized_tiles_cpu, quantized_tiles_vnni_cpu;
quantized_depthwise_function quantized_depthwise_cpu, quantized_depthwise_vnni_cpu;

/* Whether this instance has the functions that end in _vnni_cpu. (For CPU support see level.c.) */
#if SDLF_VECTOR_BYTES == 64
enum { QUANTIZED_VNNI = 1, QUANTIZED_VECTORS = 4 };
#else
enum { QUANTIZED_VNNI = 0, QUANTIZED_VECTORS = 2 };
#endif

/* True if the image's elements are bytes. */
static inline bool quantized_has_vnni(const sdlf_calculator *calculator)
{
    return QUANTIZED_VNNI && cpu_from_const(calculator)->level->vnni();
}

/* Computes all pixels and filters of a layer that is not depthwise, on all threads; `length`: elements of a run. */
void quantized_product_cpu(const cpu_calculator *cpu, const quantized_layer *layer, bool vnni, int64_t pixels,
                           int64_t length);

#endif
