/* SPDX-License-Identifier: MIT */
/* Convolution of channels-last (NHWC) activations on tensor cores: an implicit GEMM of pixels and filters whose operand
 * A is a patch of the image, halo included, in shared memory.
 *
 *   y[pixel, k] = act(sum over (c,r,s) of x[pixel shifted by (r,s), c] w[k, (c,r,s)] + bias[k] + residual[pixel, k])
 *
 * A block computes a rectangle of pixels of one image for some filters. For 32 channels at a time it holds the patch:
 * all that the rectangle's windows cover, so that each element is loaded from memory once, not once for each tap. A tap
 * is only an offset into the patch. Weights are prepacked once: rounded to the operand type, in the order of the
 * k-steps, filter by filter, and XOR-swizzled, so that reads of shared memory have no bank conflicts.
 *
 * A k-step is one tap of 32 channels. Images of up to 4 channels ("thin") have patches of 4 elements a pixel, and a
 * k-step is 8 taps of all channels.
 *
 * Where there are few tiles, K is split: each block of a cluster computes some of the k-steps of the same tile, and
 * they add their partial sums through distributed shared memory, always in the same order. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_H
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HALO_CHANNELS = 32,           /* of a k-step */
    HALO_THIN = 4,                /* channels stored for each pixel of images that have so many or fewer */
    HALO_TAPS = 128,              /* at most */
    HALO_FILTERS = 128,           /* prepacked weights are padded to a multiple of so many filters */
    HALO_SPLITS = 8,              /* split-K: blocks of a cluster, at most */
    HALO_MAX_PATCH_PIXELS = 4096, /* pixels of a patch, at most */
    HALO_PATCH_STAGES = 8,        /* patches loaded by TMA that are in shared memory at a time, at most */
    HALO_BOX = 256,               /* TMA limits along an axis: elements of a box, and the stride between the elements */
    HALO_BOX_STEP = 8,
    HALO_LINES = 1, /* cuda_halo_tile.across: tiles of whole lines, linearised */
    HALO_AHEAD_LEAST =
        16 << 20, /* bytes of `ahead` from which a part is prefetched into the L2 cache (less arrives in time), */
    HALO_AHEAD = 24 << 20, /* and how many are prefetched at most */
};

/* Pixels of the staging area of the TMA-store epilogue: linearised lines may end with one slot that is no pixel. */
#define HALO_STAGED(pixels, through) ((through) ? (pixels) + 8 : (pixels))

typedef struct cuda_halo {
    const float *x, *bias, *residual;
    const char *w; /* prepacked */
    float *y;
    /* What the next kernel reads, prefetched into the L2 cache by blocks that use TMA. That kernel then starts after
     * them: beside such a block, shared memory would not become the first-level cache again that it depends on. */
    const char *ahead;
    int64_t ahead_bytes;
    sdlf_activation activation;
    int images, height, width, channels; /* of x */
    int filters, filters_padded, out_height, out_width;
    int taps_across, taps; /* S, R S */
    int tap_sides[2], padding[2], stride[2];
    int tile_log; /* a tile is 2^tile_log pixels across; not used by conv2d/halo_tma.cuh */
    int tile_down, tile_across;
    int tiles_down, tiles_across, tiles_filters;
    int patch_down, patch_across,
        patch_pixels;   /* lines, and pixels of a line, for each remainder by the stride; pixels in all */
    int source_step[2]; /* pixels of x between neighbours in the patch */
    int pixel_step[2];  /* pixels of the patch between neighbouring pixels of y */
    int tap_step[2];    /* pixels of the patch between neighbouring taps */
    int chunks;         /* of HALO_CHANNELS channels each */
    int patches;        /* in shared memory at a time */
    int patch_bytes;
    int steps, splits;
    bool direct; /* results go from registers to y: one split, and a quick activation */
    bool fresh;  /* the weights were prepacked by the previous kernel */
    bool quads;  /* four neighbouring channels of x may be loaded at once */
    bool pairs;  /* two neighbouring filters of y may be stored at once */
    bool fours;  /* four filters of y, bias and residual may be accessed at once */
    bool quick;  /* the activation is identity, ReLU or clip */
    bool early;  /* x was complete when this kernel started, and nobody reads what y overwrites; mma.sync tiles */
    bool pools;  /* y is the 2x2 maximum of the results, with ReLU; TMA tiles in tf32 */
    int plane;   /* elements of a plane of y, where y is pooled and row-major; else 0 */
    int lead;    /* k-steps by which a block's first warpgroup leads the second; TMA tiles */
} cuda_halo;

/* A tile's size, and the number of pipeline stages of its weights. */
typedef struct cuda_halo_tile {
    int pixels, filters, stages;
    int blocks; /* resident blocks that a multiprocessor has registers for */
    /* Tiles loaded by TMA, in tf32: WGMMA with both operands in shared memory, on compute capability 9.0. */
    int patches; /* in shared memory at a time */
    int across;  /* 0: no TMA; pixels across, unless a tile is one row; or HALO_LINES */
    int lines;   /* of 8 pixels that the epilogue stores at a time */
    bool stored; /* results are stored by TMA, too */
    int shares;  /* 0, or the number of sets of warpgroups that take the k-steps in turn */
} cuda_halo_tile;

/* Tiles by number: TMA first, from HALO_STORE_TILE on with TMA stores; from HALO_WARP_TILE on mma.sync. */
enum { HALO_STORE_TILE = 12, HALO_WARP_TILE = 16, HALO_TILES = 24 };
const cuda_halo_tile *cuda_halo_tile_of(int number);
/* Cut the problem into the tile with the least estimated time, and return its number; -1: none fits. */
int cuda_halo_choose(const cuda_calculator *calculator, cuda_halo *problem, bool thin);
/* Cut the problem into tiles of that number. False: it cannot be. */
bool cuda_halo_cut(cuda_halo *problem, int tile, bool thin);
int64_t cuda_halo_blocks(const cuda_halo *problem);
/* Clusters of `size` blocks expected to run at a time: while blocks of another kernel end, they leave gaps. */
static inline int cuda_clusters_expected(const cuda_calculator *calculator, int size, int fit)
{
    int most = cuda_clusters_at_once(calculator, size, fit);
    return size > 2 && most > 15 ? most * 15 / 16 : most;
}
/* True if, in 16 bits, each block should have a multiprocessor to itself where possible (shared_alone): not in clusters
 * of more than two, which would leave gaps. tf32 with TMA always does (conv2d/halo_tma.cu): it is faster. */
static inline bool cuda_halo_is_alone(const cuda_halo *problem)
{
    return problem->splits <= 2;
}
/* Bytes of shared memory of a block; of one prepacked weight. */
int64_t cuda_halo_shared(const cuda_halo *problem, int tile, int weight_bytes);
int cuda_halo_weight_bytes(sdlf_math math);

/* The problem of an operation, not yet cut into tiles; cuda_halo_operands adds the addresses of a bound operation. */
cuda_halo cuda_halo_problem(const sdlf_operation *operation);
cuda_halo cuda_halo_operands(const sdlf_operation *operation);

/* True for forward in float32, one group, activations channels last, in a math mode with tensor cores. */
bool cuda_halo_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* The same with ReLU and a 2x2 max-pool fused into the epilogue, whose results are in y: in tf32, with TMA. plane:
 * elements of a plane of y if that is row-major, or 0. */
bool cuda_halo_pools(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status cuda_halo_pool(sdlf_calculator *calculator, const sdlf_operation *operation, int plane);
/* Bytes of prepacked weights; and of the workspace, which holds them where they are not prepacked. */
int64_t cuda_halo_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_halo_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_halo_cuda, conv2d_halo_prepare_cuda;

/* Launch the convolution with the tile of that number. */
typedef struct cuda_halo_launch {
    int tile;
    unsigned blocks;
    int64_t shared; /* bytes */
    bool thin;      /* up to HALO_THIN channels */
} cuda_halo_launch;
sdlf_status cuda_halo_warps(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how);
/* The same for tiles of TMA (conv2d/halo_tma.cu, built only for 9.0a). */
sdlf_status cuda_halo_box(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how);
sdlf_status cuda_halo_box_store(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how);
/* Launch the prepacking of w. */
sdlf_status cuda_halo_prepare(sdlf_calculator *calculator, const cuda_halo *problem, const float *w, void *prepared,
                              bool thin);

#ifdef __cplusplus
}
#endif
#endif
