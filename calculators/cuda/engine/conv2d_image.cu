/* SPDX-License-Identifier: MIT */
/* fprop and dgrad: operands and tile configurations of engine/conv2d_image.cuh. */
#include "calculators/cuda/engine/conv2d_image.cuh"

#include <algorithm>
#include <utility>

#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/engine/groups.h"
#include "calculators/cuda/engine/pack.h"

/* Bytes of the reduction per row of a load: the smallest of 32, 64 and 128 that covers the channels, or 128. */
static int chunk_bytes_of(const engine_conv2d *conv, int64_t channels)
{
    const int64_t bytes = channels * static_cast<int64_t>(sdlf_dtype_size(conv->dtype));
    return bytes <= 32 ? 32 : bytes <= 64 ? 64 : 128;
}

/* ---- launches ---- */

/* True if the residual is loaded through the ring: a tile's pixels are contiguous in memory, a block has all of its columns, and the activation is
 * piecewise linear. (Rows of the reduction must be 128 bytes: there are no such kernels for shorter ones.) */
static bool is_staged(const image_params &p)
{
    const dgrad_phase &of = p.of[0];
    return p.residual != nullptr && p.parts == nullptr && p.classes == 1 && of.spread[0] == 1 && of.spread[1] == 1 &&
           p.cluster == 1 && is_line_activation(p.activation) && is_aligned16(p.residual);
}

static bool make_residual_map(sdlf_dtype dtype, image_params *p)
{
    tiled_shape all = {
        p->residual, 2, {p->channels, p->of[0].pixels}, {128 / static_cast<int>(sdlf_dtype_size(dtype)), 128}};
    all.exact = dtype == SDLF_FLOAT32;
    return make_tiled_map(&p->residual_tiles, dtype, all);
}

void engine_set_activation(image_params *params, const sdlf_activation &activation, sdlf_dtype dtype)
{
    params->activation = activation;
    params->line = line_activation_of(activation);
    const float bounds[2] = {params->line.low, params->line.high};
    with_storage(dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int i = 0; sizeof(T) == 2 && i < 2; i++) {
            const T pair[2] = {static_cast<T>(bounds[i]), static_cast<T>(bounds[i])};
            memcpy(&params->clip_pair[i], pair, sizeof params->clip_pair[i]);
        }
    });
}

/* The kernel whose epilogue the parameters require. */
template <typename Work, int DGRAD> static auto kernel_of(const image_params &p, bool staged) -> void (*)(image_params)
{
    if constexpr (Work::PARTS == 1) {
        if (staged) return image_kernel<Work, STAGED_RESIDUAL>;
    }
    const image_mode mode = image_mode_of(p); /* dgrad has at most a residual */
    if constexpr (!DGRAD) {
        if (mode == SUM_VALUES) return image_kernel<Work, SUM_VALUES>;
        if (mode == ANY_ACTIVATION) return image_kernel<Work, ANY_ACTIVATION>;
    }
    return mode == LINE_ACTIVATION ? image_kernel<Work, LINE_ACTIVATION> : image_kernel<Work, CLIP_VALUES>;
}

template <typename T, int DGRAD>
static sdlf_status launch(const cuda_calculator *calculator, const engine_conv2d *conv, image_params *params,
                          int chunk_bytes, int64_t tiles)
{
    const char *what = DGRAD ? "conv2d_backward_input" : "conv2d_forward";
    const bool grouped = engine_is_grouped(conv);
    sdlf_status status = SDLF_OK;
    auto run = [&](auto columns, auto width) {
        using work = image_product<T, columns.value, width.value, DGRAD>;
        params->column_tiles = static_cast<int>(cuda_ceil_div(params->channels, work::BN));
        if (grouped) params->column_tiles = static_cast<int>(engine_blocks_of(conv).count * params->block_tiles);
        int64_t steps = 0;
        for (int i = 0; i < params->classes; i++)
            steps =
                std::max<int64_t>(steps, params->of[i].taps[0] * params->of[i].taps[1] * params->chunks / work::PARTS);
        params->cluster = engine_cluster_of(calculator, tiles * params->column_tiles, steps, work::BN);
        params->row_tiles = static_cast<int>(tiles);
        const bool single =
            params->cluster > 1 ||
            (conv->moments == nullptr && engine_prefers_single_tiles(calculator, tiles * params->column_tiles));
        params->slots = single ? params->row_tiles : engine_slots(calculator, tiles, params->column_tiles);
        if (conv->moments != nullptr) conv->moments->count = params->slots;
        const bool staged = work::PARTS == 1 && is_staged(*params);
        const int64_t filters = conv->k, taps = static_cast<int64_t>(conv->r) * conv->s;
        const int64_t channels = DGRAD ? conv->c : engine_packed_channels(conv->c);
        tiled_shape weights = {
            conv->weights, 3, {channels, taps, filters}, {work::CHUNK_B, 1, work::MN_B ? work::CHUNK : work::BN}};
        if (DGRAD && !work::MN_B) std::swap(weights.dim[0], weights.dim[2]);
        if (grouped) {
            const engine_block_weights blocks = engine_block_weights_of(conv, DGRAD);
            weights.dim[0] = blocks.depth;
            weights.dim[2] = static_cast<int64_t>(params->column_tiles) * work::BN;
            if (work::MN_B) std::swap(weights.dim[0], weights.dim[2]);
        }
        if (!make_tiled_map(&params->weights, conv->dtype, weights) ||
            (staged && !make_residual_map(conv->dtype, params)))
            status = sdlf_fail(SDLF_ERROR_DEVICE, "%s: the driver refuses a tensor map", what);
        else
            status = engine_launch<work>(calculator, kernel_of<work, DGRAD>(*params, staged),
                                         static_cast<int64_t>(params->slots) * params->column_tiles * params->cluster,
                                         *params, what, params->cluster);
    };
    auto by_width = [&](auto columns) {
        if (chunk_bytes == 128)
            run(columns, std::integral_constant<int, 128>());
        else if (chunk_bytes == 64)
            run(columns, std::integral_constant<int, 64>());
        else
            run(columns, std::integral_constant<int, 32>());
    };
    if (params->channels > 64 && !grouped && !engine_prefers_narrow(calculator, params->channels, tiles))
        by_width(std::integral_constant<int, 128>());
    else
        by_width(std::integral_constant<int, 64>());
    return status;
}

template <int DGRAD>
static sdlf_status launch_typed(const cuda_calculator *calculator, const engine_conv2d *conv, image_params *params,
                                int chunk_bytes)
{
    int64_t tiles = 0;
    for (int i = 0; i < params->classes; i++) {
        params->of[i].tiles = static_cast<int>(cuda_ceil_div(params->of[i].pixels, 128));
        tiles += params->of[i].tiles;
    }
    sdlf_status status = SDLF_OK;
    with_storage(conv->dtype, [&](auto zero) {
        status = launch<decltype(zero), DGRAD>(calculator, conv, params, chunk_bytes, tiles);
    });
    return status;
}

static sdlf_status refused(const char *what)
{
    return sdlf_fail(SDLF_ERROR_DEVICE, "%s: the driver refuses a tensor map", what);
}

/* Make the weights block-diagonal, unless they are prepacked. */
static sdlf_status make_blocks(const cuda_calculator *calculator, const engine_conv2d *given, engine_conv2d *conv,
                               bool backward)
{
    conv->weights = given->prepared != nullptr ? const_cast<void *>(given->prepared) : given->workspace;
    if (given->prepared != nullptr) return SDLF_OK;
    return engine_make_block_weights(calculator, given, backward, true, given->weights, given->workspace);
}

static void set_blocks(const engine_conv2d *conv, image_params *params, bool backward)
{
    if (!engine_is_grouped(conv)) return;
    const engine_blocks blocks = engine_blocks_of(conv);
    params->block_columns = static_cast<int>(backward ? blocks.channels : blocks.filters);
    params->block_reads = static_cast<int>(backward ? blocks.filters : blocks.channels);
    params->block_tiles = static_cast<int>(cuda_ceil_div(params->block_columns, ENGINE_BLOCK));
}

/* Pack x and the weights so that TMA can read them. */
static sdlf_status pack_operands(const cuda_calculator *calculator, const engine_conv2d *given, engine_conv2d *conv)
{
    char *space = static_cast<char *>(given->workspace);
    const engine_lines x = engine_packed_x(given);
    *conv = engine_of_packed(given);
    if (engine_is_grouped(given)) return make_blocks(calculator, given, conv, false);
    sdlf_status status = engine_pack(calculator, given, &conv->x, space, x);
    if (status != SDLF_OK) return status;
    if (conv->prepared != nullptr) {
        conv->weights = const_cast<void *>(conv->prepared);
        return SDLF_OK;
    }
    return engine_pack(calculator, given, &conv->weights, space + engine_pack_bytes(given, x),
                       engine_packed_weights(given));
}

bool engine_pools(const cuda_calculator *calculator, const engine_conv2d *given)
{
    if (sdlf_dtype_size(given->dtype) != 2 || given->residual != nullptr || given->moments != nullptr) return false;
    if (!is_clip_activation(given->activation) || !engine_takes_forward(calculator, given)) return false;
    const engine_conv2d conv = engine_of_packed(given);
    image_params params = {};
    params.classes = 1;
    params.channels = static_cast<int>(conv.k);
    engine_forward_phase(&conv, &params.of[0]);
    return engine_runs_halo(calculator, &conv, engine_packed_channels(conv.c), &params);
}

sdlf_status engine_forward(const cuda_calculator *calculator, const engine_conv2d *given)
{
    engine_conv2d conv;
    sdlf_status status = pack_operands(calculator, given, &conv);
    if (status != SDLF_OK) return status;
    const int64_t channels = engine_packed_channels(conv.c);
    const int64_t deep = engine_packed_channels(engine_blocks_of(&conv).channels); /* the reduction of a tap */
    const int chunk_bytes = chunk_bytes_of(&conv, deep);
    const int chunk = chunk_bytes / static_cast<int>(sdlf_dtype_size(conv.dtype));
    image_params params = {};
    params.classes = 1;
    params.chunks = static_cast<int>(cuda_ceil_div(deep, chunk));
    params.filter_width = conv.s;
    params.channels = static_cast<int>(conv.k);
    set_blocks(&conv, &params, false);
    params.pools = conv.pools;
    params.height = static_cast<int>(conv.pools ? conv.p / 2 : conv.p);
    params.width = static_cast<int>(conv.pools ? conv.q / 2 : conv.q);
    params.bias = static_cast<const float *>(conv.bias);
    params.residual = conv.residual;
    params.result = conv.y;
    engine_set_activation(&params, conv.activation, conv.dtype);
    if (conv.moments != nullptr) {
        params.parts = reinterpret_cast<float2 *>(conv.moments->parts);
        params.rows = conv.moments->rows;
    }
    engine_forward_phase(&conv, &params.of[0]);
    if (engine_runs_halo(calculator, &conv, channels, &params))
        return engine_run_halo(calculator, &conv, channels, false, &params);
    if (conv.pools)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d_forward: max-pooling needs tiles of whole windows");
    if (!engine_map_windows(&conv, false, channels, chunk, &params.of[0])) return refused("conv2d_forward");
    return launch_typed<0>(calculator, &conv, &params, chunk_bytes);
}

sdlf_status engine_backward_input(const cuda_calculator *calculator, const engine_conv2d *given)
{
    engine_conv2d made = *given;
    const engine_conv2d *conv = &made;
    if (engine_is_grouped(conv)) {
        sdlf_status status = make_blocks(calculator, given, &made, true);
        if (status != SDLF_OK) return status;
    } else if (conv->dtype == SDLF_FLOAT32) { /* tf32 operands must be K-major */
        sdlf_status status = engine_transpose_filters(calculator, given, static_cast<float *>(given->workspace));
        if (status != SDLF_OK) return status;
        made.weights = given->workspace;
    }
    const int64_t deep = engine_blocks_of(conv).filters;
    const int chunk_bytes = chunk_bytes_of(conv, deep);
    const int chunk = chunk_bytes / static_cast<int>(sdlf_dtype_size(conv->dtype));
    image_params params = {};
    params.chunks = static_cast<int>(cuda_ceil_div(deep, chunk));
    params.filter_width = conv->s;
    params.channels = static_cast<int>(conv->c);
    set_blocks(conv, &params, true);
    params.height = static_cast<int>(conv->h);
    params.width = static_cast<int>(conv->w);
    params.residual = conv->residual;
    params.result = conv->x;
    engine_set_activation(&params, {}, conv->dtype);
    for (int i = 0; i < conv->stride[0]; i++) {
        for (int j = 0; j < conv->stride[1]; j++) {
            const int at[2] = {i, j};
            if (i >= conv->h || j >= conv->w) continue;
            engine_backward_phase(conv, at, &params.of[params.classes++]);
        }
    }
    if (engine_runs_halo(calculator, conv, conv->k, &params))
        return engine_run_halo(calculator, conv, conv->k, true, &params);
    for (int i = 0; i < params.classes; i++) {
        if (!engine_map_windows(conv, true, conv->k, chunk, &params.of[i])) return refused("conv2d_backward_input");
    }
    return launch_typed<1>(calculator, conv, &params, chunk_bytes);
}
