/* SPDX-License-Identifier: MIT */
/* Which convolutions engine/conv2d_halo.cuh computes, the partition of its shared memory, and its launch. */
#include "calculators/cuda/engine/conv2d_halo.cuh"

#include <algorithm>
#include <type_traits>

#include "calculators/cuda/engine/groups.h"

/* The kernel whose epilogue the parameters require; dgrad has at most a residual. */
template <typename T, int BN, bool COLUMNS_INNER> static auto kernel_of(const image_params &p) -> void (*)(halo_params)
{
    const image_mode mode = image_mode_of(p);
    if constexpr (!COLUMNS_INNER) {
        if constexpr (sizeof(T) == 2) {
            if (mode == POOL_VALUES) return halo_kernel<T, BN, false, POOL_VALUES>;
        }
        if (mode == SUM_VALUES) return halo_kernel<T, BN, false, SUM_VALUES>;
        if (mode == ANY_ACTIVATION) return halo_kernel<T, BN, false, ANY_ACTIVATION>;
    }
    return mode == LINE_ACTIVATION ? halo_kernel<T, BN, COLUMNS_INNER, LINE_ACTIVATION>
                                   : halo_kernel<T, BN, COLUMNS_INNER, CLIP_VALUES>;
}

/* ---- which convolutions, and the partition of shared memory ---- */

/* Columns of a tile. */
static int columns_of(int64_t channels)
{
    return channels <= 32 ? 32 : channels <= 64 ? 64 : 128;
}

/* Sizes of the rings of stages for two blocks per multiprocessor. False if shared memory is too small. */
static bool share_out(const cuda_calculator *calculator, int columns, int size, int64_t depth, halo_params *p)
{
    const dgrad_phase &of = p->image.of[0];
    const int64_t bytes = depth * size, taps = static_cast<int64_t>(of.taps[0]) * of.taps[1];
    const int fixed = static_cast<int>(sizeof(halo_barriers)) + (columns * 72 + 16) + 1024 + 1024;
    const int64_t room = (calculator->shared_most + 1024) / 2 - fixed;
    p->row_bytes = bytes <= 32 ? 32 : bytes <= 64 ? 64 : 128;
    p->image.chunks = static_cast<int>(cuda_ceil_div(bytes, p->row_bytes));
    for (int i = 0; i < 2; i++) p->box[i] = (HALO_TILE - 1) * of.stride[i] + (of.taps[i] - 1) * of.tap_offset[i] + 1;
    p->box_bytes = (p->box[0] * p->box[1] * p->row_bytes + 1023) / 1024 * 1024;
    p->weight_bytes = columns * p->row_bytes;
    const int64_t pair = static_cast<int64_t>(HALO_PAIR) * p->box_bytes, all = taps * p->image.chunks;
    p->resident = all * p->weight_bytes + pair <= room;
    if (p->resident) {
        p->weight_stages = static_cast<int>(all);
        p->box_stages = static_cast<int>(std::min<int64_t>((room - all * p->weight_bytes) / pair, 4));
        return true;
    }
    p->box_stages = 2 * pair + 3 * p->weight_bytes <= room ? 2 : 1;
    p->weight_stages =
        static_cast<int>(std::min<int64_t>((room - p->box_stages * pair) / p->weight_bytes, HALO_STAGES));
    return p->weight_stages >= 2;
}

static void cut_into_tiles(halo_params *p)
{
    const int64_t down = cuda_ceil_div(p->image.of[0].count[0].number, HALO_TILE);
    const int64_t across = cuda_ceil_div(p->image.of[0].count[1].number, HALO_TILE);
    const int64_t pixels = static_cast<int64_t>(p->image.of[0].count[0].number) * p->image.of[0].count[1].number;
    p->down = divider<int32_t>(down);
    p->across = divider<int32_t>(across);
    p->tiles = static_cast<int>(p->image.of[0].pixels / pixels * down * across);
    p->image.row_tiles = static_cast<int>(cuda_ceil_div(p->tiles, HALO_PAIR));
}

bool engine_runs_halo(const cuda_calculator *calculator, const engine_conv2d *conv, int64_t depth,
                      const image_params *params)
{
    const dgrad_phase &of = params->of[0];
    if (params->classes != 1 || engine_is_grouped(conv) || of.stride[1] != 1 || of.taps[0] * of.taps[1] < 2)
        return false;
    halo_params p = {};
    p.image = *params;
    cut_into_tiles(&p);
    const int64_t pixels = static_cast<int64_t>(HALO_TILE) * HALO_TILE * p.tiles;
    const int columns = columns_of(params->channels);
    const int64_t blocks = p.image.row_tiles * cuda_ceil_div(params->channels, columns);
    return 2 * pixels <= 3 * static_cast<int64_t>(of.pixels) &&
           (conv->pixel_step > 0 || blocks >= calculator->multiprocessors) && of.taps[0] <= 32 && of.taps[1] <= 32 &&
           share_out(calculator, columns, static_cast<int>(sdlf_dtype_size(conv->dtype)), depth, &p) &&
           p.box[0] <= 64 && p.box[1] <= 64;
}

sdlf_status engine_run_halo(const cuda_calculator *calculator, const engine_conv2d *conv, int64_t depth, bool backward,
                            const image_params *params)
{
    const char *what = backward ? "conv2d_backward_input" : "conv2d_forward";
    const int size = static_cast<int>(sdlf_dtype_size(conv->dtype)), columns = columns_of(params->channels);
    const bool inner = backward && size == 2; /* the weights' columns are innermost */
    halo_params p = {};
    p.image = *params;
    cut_into_tiles(&p);
    share_out(calculator, columns, size, depth, &p);
    p.image.cluster = 1;
    p.image.column_tiles = static_cast<int>(cuda_ceil_div(p.image.channels, columns));
    p.image.slots = engine_slots(calculator, p.image.row_tiles, p.image.column_tiles);
    if (conv->moments != nullptr) conv->moments->count = p.image.slots;
    const int64_t h = backward ? conv->p : conv->h, w = backward ? conv->q : conv->w;
    const int chunk = p.row_bytes / size;
    tiled_shape boxes = {backward ? conv->y : conv->x, 4, {depth, w, h, conv->n}, {chunk, p.box[1], p.box[0], 1}};
    if (!backward) {
        boxes.stride[0] = conv->pixel_step;
        boxes.stride[1] = conv->row_step;
    }
    const int64_t taps = static_cast<int64_t>(conv->r) * conv->s;
    const tiled_shape weights =
        inner ? tiled_shape{conv->weights, 3, {params->channels, taps, depth}, {std::min(columns, 64), 1, chunk}}
              : tiled_shape{conv->weights, 3, {depth, taps, params->channels}, {chunk, 1, columns}};
    if (!make_tiled_map(&p.image.of[0].read, conv->dtype, boxes) ||
        !make_tiled_map(&p.image.weights, conv->dtype, weights))
        return sdlf_fail(SDLF_ERROR_DEVICE, "%s: the driver refuses a tensor map", what);
    const int shared = p.box_stages * HALO_PAIR * p.box_bytes + p.weight_stages * p.weight_bytes + 1024;
    sdlf_status status = SDLF_OK;
    auto run = [&](auto kernel) {
        /* always requested: static shared memory counts towards the 48 KB, too */
        status = allow_shared(kernel, std::max(shared, 48 << 10 | 1));
        if (status == SDLF_OK)
            launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(p.image.slots * p.image.column_tiles)),
                              dim3(HALO_THREADS), shared, p);
    };
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        auto by_columns = [&](auto number) {
            if constexpr (sizeof(T) == 2) {
                if (inner) return run(kernel_of<T, number.value, true>(p.image));
            }
            run(kernel_of<T, number.value, false>(p.image));
        };
        if (columns == 32)
            by_columns(std::integral_constant<int, 32>());
        else if (columns == 64)
            by_columns(std::integral_constant<int, 64>());
        else
            by_columns(std::integral_constant<int, 128>());
    });
    return status == SDLF_OK ? cuda_check_launch(what) : status;
}
