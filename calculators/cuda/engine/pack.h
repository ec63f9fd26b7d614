/* SPDX-License-Identifier: MIT */
/* Operands that TMA cannot read, because their rows of channels are no multiple of 8 elements, or that tensor cores cannot multiply: copies of
 * them that these can.
 *
 * Packed: rows with zeros behind each. Unfolded (im2col), for images of fewer than 8 channels: a row a pixel of the result, of all elements
 * that its window sees, (R,S,C), so that the convolution is one of 1x1 on R S C channels and wastes nothing on channels of zeros. */
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

/* Bytes of the copy of `rows` rows of conv's channels, a multiple of 64; 0: none is needed. */
static inline int64_t engine_pack_bytes(const engine_conv2d *conv, int64_t rows)
{
    const int64_t size = (int64_t)sdlf_dtype_size(conv->dtype);
    return conv->c % 8 == 0 ? 0 : (rows * engine_packed_channels(conv->c) * size + 63) / 64 * 64;
}

/* Where a copy is needed, make it at `to` and let *data point to it. */
sdlf_status engine_pack(const cuda_calculator *calculator, const engine_conv2d *conv, void **data, void *to,
                        int64_t rows);

/* Weights (K,R,S,C) as (C,R,S,K), float32. */
sdlf_status engine_transpose_filters(const cuda_calculator *calculator, const engine_conv2d *conv, float *to);

/* Is the image of this convolution unfolded? */
static inline bool engine_unfolds(const engine_conv2d *conv)
{
    return conv->c < 8;
}

/* The convolution of 1x1 over the unfolded image, whose operands are still conv's; and the bytes of that image. */
engine_conv2d engine_unfolded(const engine_conv2d *conv);
int64_t engine_unfold_bytes(const engine_conv2d *conv);
/* Make it at `to`. */
sdlf_status engine_unfold(const cuda_calculator *calculator, const engine_conv2d *conv, void *to);

#ifdef __cplusplus
}
#endif
#endif
