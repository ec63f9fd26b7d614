/* SPDX-License-Identifier: MIT */
/* Implicit GEMM with halo reuse: cutting a problem into the tiles of a number, and the shared memory that they need. */
#include "calculators/cuda/conv2d/halo.h"

/* Pixels of the patch along an axis for a tile of `pixels` pixels. */
static int64_t places(const cuda_halo *p, int axis, int pixels)
{
    return (int64_t)(pixels - 1) * p->pixel_step[axis] + (int64_t)(p->tap_sides[axis] - 1) * p->tap_step[axis] + 1;
}

/* Set the size and number of patches; a patch has `rows` pixels for each remainder by the strides. */
static void keep_patches(cuda_halo *p, const cuda_halo_tile *tile, int64_t rows)
{
    p->patch_pixels = p->pixel_step[0] * p->pixel_step[1] * cuda_ceil_div(rows, 8) * 8;
    p->patch_bytes = p->patch_pixels * HALO_CHANNELS * 4;
    p->patches = tile->patches < p->steps / p->taps ? tile->patches : p->steps / p->taps;
}

/* A tile of whole image lines, for windows of 3 columns. A line of the patch has one pixel more than the image: a zero
 * between a line's end and the beginning of the next, so that pixels are linearised. The patch has one line more than
 * the windows cover, which provides the zero after the last one. False: there is no such tile. */
static bool cut_lines(cuda_halo *p, int number)
{
    const cuda_halo_tile *tile = cuda_halo_tile_of(number);
    if (p->taps_across != 3 || p->padding[1] != 1 || p->out_width > p->width || p->out_width < 8) return false;
    for (int i = 0; i < 2; i++) {
        if (p->stride[i] != 1 || p->tap_step[i] != 1 || p->source_step[i] != 1) return false;
    }
    int line = p->width + 1, lines = (tile->pixels - p->out_width) / line + 1;
    if (lines > p->out_height) lines = p->out_height;
    int64_t rows = (int64_t)(lines + p->tap_sides[0]) * line;
    if (tile->pixels < p->out_width || lines < 2 || line > HALO_BOX) return false;
    if (rows < tile->pixels + (p->tap_sides[0] - 1) * line + 2) return false; /* the GEMM would read past the patch */
    p->tile_down = lines;
    p->tile_across = p->out_width;
    p->tiles_down = cuda_ceil_div(p->out_height, lines);
    p->tiles_across = 1;
    p->tiles_filters = cuda_ceil_div(p->filters, tile->filters);
    p->patch_down = lines + p->tap_sides[0];
    p->patch_across = line;
    keep_patches(p, tile, rows);
    return true;
}

/* Set the sides of a tile that is loaded as TMA boxes, and of its patch. False: a box would be too large. */
static bool cut_boxes(cuda_halo *p, int number)
{
    const cuda_halo_tile *tile = cuda_halo_tile_of(number);
    bool row = p->taps == 1 && p->height == 1 && p->stride[0] == 1 && p->stride[1] == 1 && p->padding[1] == 0;
    const int side[2] = {row ? 1 : tile->pixels / tile->across, row ? tile->pixels : tile->across};
    int64_t size[2], rows = 1;
    p->tile_down = side[0];
    p->tile_across = side[1];
    p->tiles_down = cuda_ceil_div(p->out_height, side[0]);
    p->tiles_across = cuda_ceil_div(p->out_width, side[1]);
    p->tiles_filters = cuda_ceil_div(p->filters, tile->filters);
    for (int i = 0; i < 2; i++) { /* the pixels of each remainder by the strides are contiguous */
        size[i] = cuda_ceil_div(places(p, i, side[i]), p->pixel_step[i]);
        int step = p->source_step[i] * p->pixel_step[i];
        if (!row && (step > HALO_BOX_STEP || size[i] * step > HALO_BOX)) return false;
        rows *= size[i];
    }
    p->patch_down = (int)size[0];
    p->patch_across = (int)size[1];
    keep_patches(p, tile, rows);
    int chunks = p->steps / p->taps;
    int64_t operands = (int64_t)tile->stages * tile->filters * HALO_CHANNELS * 4 + (p->patches + 1) * p->patch_bytes;
    if (p->taps == 1 && operands * tile->blocks < 192 << 10) p->patches++; /* every k-step needs another patch */
    if (p->patches > chunks) p->patches = chunks;
    return true;
}

/* Without TMA, the sides of a tile minimise the number of tiles times (4 x tile pixels + patch pixels). */
bool cuda_halo_cut(cuda_halo *p, int number, bool thin)
{
    const cuda_halo_tile *tile = cuda_halo_tile_of(number);
    if (tile->across == HALO_LINES) return cut_lines(p, number);
    if (tile->across > 0) return cut_boxes(p, number);
    int64_t least = -1;
    for (int log = 0; tile->pixels % (1 << log) == 0; log++) {
        int across = 1 << log, down = tile->pixels >> log;
        int64_t count = (int64_t)cuda_ceil_div(p->out_height, down) * cuda_ceil_div(p->out_width, across);
        int64_t cost = count * (4 * tile->pixels + places(p, 0, down) * places(p, 1, across));
        if (least >= 0 && cost >= least) continue;
        least = cost;
        p->tile_log = log;
    }
    int across = 1 << p->tile_log, down = tile->pixels >> p->tile_log;
    int64_t line = places(p, 1, across), pixels = places(p, 0, down) * line;
    p->tiles_down = cuda_ceil_div(p->out_height, down);
    p->tiles_across = cuda_ceil_div(p->out_width, across);
    p->tiles_filters = cuda_ceil_div(p->filters, tile->filters);
    if (pixels > HALO_MAX_PATCH_PIXELS) pixels = HALO_MAX_PATCH_PIXELS + 1; /* will not fit shared memory */
    p->patch_across = (int)line;
    p->patch_pixels = (int)pixels;
    int64_t bytes = thin ? (pixels + 1) * 4 * HALO_THIN : pixels * 4 * HALO_CHANNELS;
    int chunks = thin ? 1 : p->steps / p->taps;
    p->patches = (tile->stages - 1) / p->taps + ((tile->stages - 1) % p->taps > 0) + 1;
    if (p->patches > chunks) p->patches = chunks;
    p->patch_bytes = cuda_ceil_div(bytes, 128) * 128;
    return true;
}

int64_t cuda_halo_blocks(const cuda_halo *p)
{
    return (int64_t)p->images * p->tiles_down * p->tiles_across * p->tiles_filters * p->splits;
}

/* Bytes of shared memory: patches and weights, or sums in their place; tables; mbarriers; padding for alignment. */
int64_t cuda_halo_shared(const cuda_halo *p, int number, int weight_bytes)
{
    const cuda_halo_tile *tile = cuda_halo_tile_of(number);
    bool boxes = tile->across > 0;
    int stages = tile->stages;
    int64_t product =
        (int64_t)p->patches * p->patch_bytes + (int64_t)stages * tile->filters * HALO_CHANNELS * weight_bytes;
    int64_t results =
        p->direct ? 0 : (int64_t)tile->pixels * (tile->filters + 4) * 4 * (tile->shares > 1 ? tile->shares : 1);
    if (tile->stored) /* staging area: 64 filters of a group's pixels, after the epilogue */
        product +=
            (int64_t)HALO_STAGED(cuda_ceil_div(tile->pixels * tile->filters / 128, 8) * 8, tile->across == HALO_LINES) *
                64 * 4 +
            64;
    else if (boxes &&
             p->direct) /* two staging buffers of 8 pixels of so many lines, in rows of 68 floats for 64 filters */
        product += (int64_t)tile->filters / 64 * cuda_ceil_div(tile->across, 8) * 2 * 8 * tile->lines * 68 * 4;
    if (boxes)
        return (product > results ? product : results) + 8 * (4 * stages + 2 * HALO_PATCH_STAGES) + 256 + 4 * p->taps +
               1024;
    return (product > results ? product : results) + 4 * (int64_t)p->patch_pixels + 4 * HALO_TAPS + 128;
}
