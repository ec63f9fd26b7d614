/* SPDX-License-Identifier: MIT */
/* Grouped convolutions as block-diagonal GEMMs: adjacent groups are joined into blocks of up to 64 filters and 64 channels, each a dense GEMM with
 * weights of 0 where filter and channel belong to different groups. A NaN or an infinity in a channel therefore reaches the other groups of its
 * block, and the groups of the previous block if that has fewer channels than one load covers. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_GROUPS_H
#define SDLF_CALCULATORS_CUDA_ENGINE_GROUPS_H

#include "calculators/cuda/engine/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ENGINE_BLOCK = 64 }; /* columns of a tile of such a GEMM */

/* How groups are joined; the last block may have fewer. */
typedef struct engine_blocks {
    int64_t group_filters, group_channels, joined; /* of a group; groups per block */
    int64_t filters, channels;                     /* of a block */
    int64_t count;
} engine_blocks;

static inline bool engine_is_grouped(const engine_conv2d *conv)
{
    return conv->groups > 1;
}

/* With one group: one block. */
engine_blocks engine_blocks_of(const engine_conv2d *conv);
/* True if the blocks' sizes suit the loads and vectors of four elements. */
bool engine_takes_groups(const engine_conv2d *conv);

/* The block-diagonal weights, in the convolution's type: for fprop (blocks x filters, taps, channels of a block); for dgrad in 16 bits (filters of a
 * block, taps, blocks x channels), in float32 (blocks x channels, taps, filters of a block). The columns of each block (its filters, or channels) are
 * padded to a multiple of ENGINE_BLOCK, the reduction dimension to a multiple of 8. */
typedef struct engine_block_weights {
    bool backward, inner; /* backward: for dgrad; inner: the blocks' columns are innermost */
    int64_t columns;      /* of a block, padded */
    int64_t depth;        /* reduction length of one tap, padded */
} engine_block_weights;

engine_block_weights engine_block_weights_of(const engine_conv2d *conv, bool backward);
int64_t engine_block_weights_bytes(const engine_conv2d *conv, bool backward);
/* from: if `stored`, weights in the convolution's type, (K,R,S,C/groups) unless conv->row_major; otherwise float32, row-major. */
sdlf_status engine_make_block_weights(const cuda_calculator *calculator, const engine_conv2d *conv, bool backward,
                                      bool stored, const void *from, void *to);

#ifdef __cplusplus
}
#endif
#endif
