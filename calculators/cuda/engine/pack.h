/* SPDX-License-Identifier: MIT */
/* Operands that TMA cannot read as they lie, or that tensor cores cannot multiply: copies of them that these can.
 *
 * Rows of channels that are no multiple of 8 elements are packed: each with zeros behind it. Of an image of fewer than 8 channels lines of pixels
 * are packed, each pixel to 1, 2, 4 or 8 elements, with the padding around them, so that a row of a window is one run of memory, and the next
 * window's begins a multiple of 16 bytes later: the convolution is one of R taps, whose channels are all elements of a window's row, over an image
 * whose pixels, one for each window, overlap.
 *
 * The runs are multiples of 16 elements, and hold the pixels between the taps of a dilated window, too. Weights of what is no tap's are 0, so that a
 * NaN or an infinity there, up to 15 pixels behind the window, reaches its result. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_PACK_H
#define SDLF_CALCULATORS_CUDA_ENGINE_PACK_H

#include "calculators/cuda/engine/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The next multiple of 8. */
static inline int64_t engine_packed_channels(int64_t channels)
{
    return (channels + 7) / 8 * 8;
}

/* Lines of pixels of so many channels each, and how they are packed: the first pixel behind `padding` packed ones, the others `spread` apart, each
 * to `width` elements, a line to `length`, a multiple of 8; and an image's `height` lines behind `above` packed ones, to `rows` of them; zeros
 * between. */
typedef struct engine_lines {
    int64_t lines; /* packed; 0: the operand is read as it lies */
    int height, above, rows;
    int pixels, channels;
    int padding, spread, width, length;
} engine_lines;

/* Rows of channels, which need no packing. */
static inline engine_lines engine_rows(int channels)
{
    const engine_lines rows = {0, 1, 0, 1, 1, channels, 0, 1, channels, channels};
    return rows;
}

engine_lines engine_packed_x(const engine_conv2d *conv);
/* Of weights (K,R,S,C). Their numbers but `lines` hold whether they are packed or not. */
engine_lines engine_packed_weights(const engine_conv2d *conv);

/* The convolution of packed operands; its addresses are still conv's. */
engine_conv2d engine_of_packed(const engine_conv2d *conv);

/* Bytes of a copy, a multiple of 64; 0: none is needed. */
int64_t engine_pack_bytes(const engine_conv2d *conv, engine_lines lines);
/* Where a copy is needed, make it at `to` and let *data point to it. */
sdlf_status engine_pack(const cuda_calculator *calculator, const engine_conv2d *conv, void **data, void *to,
                        engine_lines lines);

/* Weights as (C,R,S,K), float32. */
sdlf_status engine_transpose_filters(const cuda_calculator *calculator, const engine_conv2d *conv, float *to);

#ifdef __cplusplus
}
#endif
#endif
