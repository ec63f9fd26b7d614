/* SPDX-License-Identifier: MIT */
/* The loops of quantized_conv2d for every instruction set: see quantized_tiles.h. */
#define SDLF_VNNI 0
#include "calculators/cpu/kernels/quantized_loops.h"

void quantized_tiles_cpu(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors, int64_t first,
                         int64_t last)
{
    all_tiles(layer, group, from, vectors, first, last);
}

void quantized_depthwise_cpu(const quantized_layer *layer, int64_t row)
{
    depthwise_row(layer, row);
}
