/* SPDX-License-Identifier: MIT */
/* Convolution over channels that lie last, on tensor cores: a product of pixels and filters whose operand A is a patch of the
 * image in shared memory.
 *
 *   y[pixel, k] = act(sum over (c,r,s) of x[pixel shifted by (r,s), c] w[k, (c,r,s)] + bias[k] + residual[pixel, k])
 *
 * A block makes a rectangle of pixels of one image, by some filters. For 32 channels at a time it holds all of the image that the
 * rectangle's windows cover, so that each number comes from memory once and not once for each tap; a tap is then
 * another offset into the patch. Weights are prepacked once: rounded to what the tensor cores take, filter by filter in the order
 * of the steps, in the places of shared memory that no two lanes of a read share a bank of.
 *
 * A step of the sum is one tap of 32 channels. Images of up to 4 channels have patches of 4 numbers a pixel, and a step is 8 taps
 * of all channels.
 *
 * Where blocks are few, several share the sum of one tile: a cluster of blocks, each with a part of the steps; they add
 * their parts through each other's shared memory, always in the same order. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_H
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HALO_CHANNELS = 32, /* of a step */
    HALO_THIN = 4,      /* channels of a pixel in images of that many or fewer */
    HALO_TAPS = 128,    /* at most */
    HALO_FILTERS = 128, /* prepared weights are for a multiple of these */
    HALO_SPLITS = 8,    /* blocks of a cluster, at most */
    HALO_PLACES = 4096, /* of a patch, at most */
    HALO_SLOTS = 8,     /* patches of boxes in shared memory at a time, at most */
    HALO_BOX = 256,     /* pixels of a box along an axis, at most, and of a step between those that are copied */
    HALO_BOX_STEP = 8,
    HALO_LINES = 1, /* tiles of whole lines, one behind the other */
    HALO_AHEAD_LEAST =
        16
        << 20, /* bytes of what others read, of which a part is prefetched into the L2 cache: less arrives in time, */
    HALO_AHEAD = 24 << 20, /* and of more so many */
};

/* Places in shared memory for the results of so many pixels, where they leave as boxes: linearised lines may end with one place more. */
#define HALO_STAGED(pixels, through) ((through) ? (pixels) + 8 : (pixels))

typedef struct cuda_halo {
    const float *x, *bias, *residual;
    const char *w; /* prepared */
    float *y;
    /* What a kernel behind this one reads, loaded into the L2 cache by blocks of boxes. It begins when these have ended: on a multiprocessor that
     * it shares with one, shared memory would not become first-level cache again, which such kernels live on. */
    const char *ahead;
    int64_t ahead_bytes;
    sdlf_activation activation;
    int images, height, width, channels; /* of x */
    int filters, filters_padded, out_height, out_width;
    int taps_across, taps; /* S, R S */
    int tap_sides[2], padding[2], stride[2];
    int tile_log; /* a tile is 2^tile_log pixels across; not of boxes */
    int tile_down, tile_across;
    int tiles_down, tiles_across, tiles_filters;
    int patch_down, patch_across,
        patch_pixels;   /* lines and places of a line, of each remainder of the strides; places in all */
    int source_step[2]; /* pixels of x between neighbours in the patch */
    int pixel_step[2];  /* places in the patch between neighbouring pixels of y */
    int tap_step[2];    /* places in the patch between neighbouring taps */
    int chunks;         /* of HALO_CHANNELS channels */
    int patches;        /* in shared memory at a time */
    int patch_bytes;
    int steps, splits;
    bool direct; /* results go from registers to y: no splits, and an activation that is quickly made */
    bool fresh;  /* the weights were prepacked by the kernel before this one */
    bool quads;  /* four neighbouring channels of x may be read at once */
    bool pairs;  /* two neighbouring filters of y may be written at once */
    bool fours;  /* four of them, and of bias and residual */
    bool quick;  /* the activation is quickly made */
    bool early;  /* x was there when this kernel started, and nobody needs what y replaces; of tiles of single warps */
    bool pools;  /* y is the largest of each 2x2 results, with ReLU; of boxes in tf32 */
    int plane;   /* where y has pooled results and is row-major: numbers of one of its planes; else 0 */
    int lead;    /* steps that a block's first group is ahead of the second, of boxes */
} cuda_halo;

/* A tile's size, and how many steps' weights are in shared memory at a time. */
typedef struct cuda_halo_tile {
    int pixels, filters, stages;
    int blocks; /* that a multiprocessor has registers for */
    /* Of boxes, in tf32: products of warpgroups whose two operands lie in shared memory, on compute capability 9.0. */
    int patches; /* in shared memory */
    int across;  /* 0: no boxes; pixels across, but of a row; or HALO_LINES */
    int lines;   /* of 8 pixels that leave together */
    bool stored; /* results leave as boxes, too */
    int shares;  /* 0, or: so many groups of warps take a step each in turn */
} cuda_halo_tile;

/* Tiles by their number: those of boxes first, from HALO_STORE_TILE on stored as boxes, too; from HALO_WARP_TILE on those of single warps. */
enum { HALO_STORE_TILE = 12, HALO_WARP_TILE = 16, HALO_TILES = 24 };
const cuda_halo_tile *cuda_halo_tile_of(int number);
/* The number of the tile that seems fastest, and the problem cut into it; -1: none fits. */
int cuda_halo_choose(const cuda_calculator *calculator, cuda_halo *problem, bool thin);
/* Cut the problem into tiles of that number. False: there are none. */
bool cuda_halo_cut(cuda_halo *problem, int tile, bool thin);
int64_t cuda_halo_blocks(const cuda_halo *problem);
/* Clusters of `size` blocks that may be counted on to run at a time: beside blocks of another kernel that end they fill gaps badly. */
static inline int cuda_clusters_expected(const cuda_calculator *calculator, int size, int fit)
{
    int most = cuda_clusters_at_once(calculator, size, fit);
    return size > 2 && most > 15 ? most * 15 / 16 : most;
}
/* In 16 bits, blocks that may have a multiprocessor each do (shared_alone), but not in clusters of more than two, which would leave gaps. Boxes in
 * tf32 do in all clusters (conv2d/halo_tma.cu): that is faster there. */
static inline bool cuda_halo_is_alone(const cuda_halo *problem)
{
    return problem->splits <= 2;
}
/* Bytes of shared memory of a block; of a weight. */
int64_t cuda_halo_shared(const cuda_halo *problem, int tile, int weight_bytes);
int cuda_halo_weight_bytes(sdlf_math math);

/* The problem of an operation, not cut into tiles; with addresses where it is bound. */
cuda_halo cuda_halo_problem(const sdlf_operation *operation);
cuda_halo cuda_halo_operands(const sdlf_operation *operation);

/* Forward in float32, one group, activations channels last, in a mode with tensor cores. */
bool cuda_halo_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* The same with ReLU and a 2x2 max-pool behind it, of which y has the results: in tf32, as boxes. y is row-major if it has planes of so many
 * numbers. */
bool cuda_halo_pools(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cuda_halo_pool(sdlf_calculator *calculator, const sdlf_operation *operation, int plane);
/* Bytes of prepacked weights; and, where they are not, of the workspace. */
int64_t cuda_halo_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_halo_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_halo_cuda, conv2d_halo_prepare_cuda;

/* Queue the product in the tile of that number. */
typedef struct cuda_halo_launch {
    int tile;
    unsigned blocks;
    int64_t shared; /* bytes */
    bool thin;      /* up to HALO_THIN channels */
} cuda_halo_launch;
sdlf_status cuda_halo_warps(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how);
/* The same for tiles of boxes (conv2d/halo_tma.cu, which is built for 9.0 alone). */
sdlf_status cuda_halo_box(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how);
sdlf_status cuda_halo_box_store(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how);
/* Queue the preparation of w. */
sdlf_status cuda_halo_prepare(sdlf_calculator *calculator, const cuda_halo *problem, const float *w, void *prepared,
                              bool thin);

#ifdef __cplusplus
}
#endif
#endif
