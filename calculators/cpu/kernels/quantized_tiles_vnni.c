/* SPDX-License-Identifier: MIT */
/* The loops of quantized_conv2d with VNNI, for the instance of 64 bytes: see quantized_tiles.h. Compiled with what they need. */
#include "calculators/cpu/kernels/quantized_tiles.h"

#if SDLF_VECTOR_BYTES == 64
#define SDLF_VNNI 1
#include "calculators/cpu/kernels/quantized_loops.h"

void quantized_tiles_vnni_cpu(const quantized_layer *layer, int64_t group, int64_t from, int64_t vectors, int64_t first,
                              int64_t last)
{
    all_tiles(layer, group, from, vectors, first, last);
}

void quantized_depthwise_vnni_cpu(const quantized_layer *layer, int64_t row)
{
    depthwise_row(layer, row);
}
#endif
