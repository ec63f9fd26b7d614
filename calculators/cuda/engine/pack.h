/* SPDX-License-Identifier: MIT */
/* Repacks operands that TMA cannot read, or that Tensor Cores cannot multiply, as they are stored.
 *
 * Rows of channels that are not a multiple of 8 elements are padded with zeros. For images of fewer than 8 channels, lines of pixels are packed,
 * each pixel to 1, 2, 4 or 8 elements, together with the padding around them, so that a row of a window is contiguous, and the next window's row
 * begins a multiple of 16 bytes later. The convolution then has R taps, whose channels are all elements of a window's row, over an image with one
 * pixel per window; these pixels overlap.
 *
 * The contiguous rows are multiples of 16 elements, and include the pixels between the taps of a dilated window. Weights of elements that belong to
 * no tap are 0, so a NaN or an infinity there, up to 15 pixels beyond the window, reaches the window's result. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_PACK_H
#define SDLF_CALCULATORS_CUDA_ENGINE_PACK_H

#include "calculators/cuda/engine/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* channels, rounded up to a multiple of 8. */
static inline int64_t engine_packed_channels(int64_t channels)
{
    return (channels + 7) / 8 * 8;
}

/* How lines of `pixels` pixels of `channels` channels are packed: each pixel to `width` elements, pixels `spread` apart, after `padding` packed
 * pixels, a line to `length` elements, a multiple of 8; an image's `height` lines after `above` packed ones, `rows` lines in total. Gaps are
 * filled with zeros. */
typedef struct engine_lines {
    int64_t lines; /* packed lines; 0: the operand is read without packing */
    int height, above, rows;
    int pixels, channels;
    int padding, spread, width, length;
} engine_lines;

/* Rows of channels that need no packing. */
static inline engine_lines engine_rows(int channels)
{
    const engine_lines rows = {0, 1, 0, 1, 1, channels, 0, 1, channels, channels};
    return rows;
}

engine_lines engine_packed_x(const engine_conv2d *conv);
/* For weights (K,R,S,C). All members but `lines` are valid whether they are packed or not. */
engine_lines engine_packed_weights(const engine_conv2d *conv);

/* The convolution on packed operands; its addresses are still those of conv. */
engine_conv2d engine_of_packed(const engine_conv2d *conv);

/* Size of the packed copy in bytes, a multiple of 64; 0: none is needed. */
int64_t engine_pack_bytes(const engine_conv2d *conv, engine_lines lines);
/* If a copy is needed, write it to `to` and set *data to it. */
sdlf_status engine_pack(const cuda_calculator *calculator, const engine_conv2d *conv, void **data, void *to,
                        engine_lines lines);

/* Transpose the weights to (C,R,S,K), float32. */
sdlf_status engine_transpose_filters(const cuda_calculator *calculator, const engine_conv2d *conv, float *to);

#ifdef __cplusplus
}
#endif
#endif
