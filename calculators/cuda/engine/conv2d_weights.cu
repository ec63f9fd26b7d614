/* SPDX-License-Identifier: MIT */
/* wgrad: operands and splits of engine/conv2d_weights.cuh, and the split-K reduction. */
#include "calculators/cuda/engine/conv2d_weights.cuh"

#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/engine/conv2d_halo_weights.cuh"
#include "calculators/cuda/engine/groups.h"
#include "calculators/cuda/engine/pack.h"
#include "calculators/cuda/engine/splits.h"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { LEAST_STEPS = 8 };

/* How the GEMM is partitioned into blocks: two per multiprocessor if the reduction is long enough. */
typedef struct weights_cut {
    int k, chunk, chunk_bytes, rows; /* pixels of a k-step; channels of a column part; filters of a tile */
    int64_t channels, chunks;        /* of a tap, of a block of groups */
    int64_t row_tiles, column_tiles, steps, splits, steps_each;
    bool halo; /* computed by engine/conv2d_halo_weights.cu, which sets `splits` */
} weights_cut;

static weights_cut cut_of(const cuda_calculator *calculator, const engine_conv2d *conv)
{
    weights_cut cut = {};
    const engine_blocks blocks = engine_blocks_of(conv);
    cut.channels = engine_packed_channels(blocks.channels);
    const int size = static_cast<int>(sdlf_dtype_size(conv->dtype));
    cut.k = K_BYTES / size;
    cut.chunk_bytes = cut.channels * size <= 32 ? 32 : cut.channels * size <= 64 ? 64 : 128;
    cut.chunk = cut.chunk_bytes / size;
    cut.rows = conv->k <= 64 || engine_is_grouped(conv) ? 64 : 128;
    cut.chunks = cuda_ceil_div(cut.channels, cut.chunk);
    cut.row_tiles = cuda_ceil_div(blocks.filters, cut.rows) * blocks.count;
    cut.column_tiles = cuda_ceil_div(cut.chunks * conv->r * conv->s, 128 / cut.chunk);
    cut.steps = cuda_ceil_div(conv->n * conv->p * conv->q, cut.k);
    cut.splits = 2 * calculator->multiprocessors / (cut.row_tiles * cut.column_tiles);
    if (cut.splits > cut.steps / LEAST_STEPS) cut.splits = cut.steps / LEAST_STEPS;
    if (cut.splits < 1) cut.splits = 1;
    cut.steps_each = cuda_ceil_div(cut.steps, cut.splits);
    cut.splits = cuda_ceil_div(cut.steps, cut.steps_each);
    const int64_t halo = engine_halo_weights_splits(calculator, conv);
    cut.halo = halo > 0;
    if (cut.halo) cut.splits = halo;
    return cut;
}

static int64_t sum_bytes(const weights_cut &cut, const engine_conv2d *conv)
{
    return cut.splits * conv->k * conv->r * conv->s * cut.channels * static_cast<int64_t>(sizeof(float));
}

int64_t engine_backward_weights_workspace(const cuda_calculator *calculator, const engine_conv2d *given)
{
    const engine_conv2d conv = engine_of_packed(given);
    return sum_bytes(cut_of(calculator, &conv), &conv) + engine_pack_bytes(given, engine_packed_x(given));
}

template <typename T>
static sdlf_status launch(const cuda_calculator *calculator, const weights_cut &cut, const weights_params &params)
{
    sdlf_status status = SDLF_OK;
    const int64_t blocks = cut.row_tiles * cut.column_tiles * cut.splits;
    auto run = [&](auto rows, auto chunk) {
        using work = weights_product<T, rows.value, chunk.value>;
        status = engine_launch<work>(calculator, engine_product<work>, blocks, params, "conv2d_backward_weights");
    };
    auto by_chunk = [&](auto rows) {
        if (cut.chunk_bytes == 128)
            run(rows, std::integral_constant<int, 128>());
        else if (cut.chunk_bytes == 64)
            run(rows, std::integral_constant<int, 64>());
        else
            run(rows, std::integral_constant<int, 32>());
    };
    if (cut.rows == 64)
        by_chunk(std::integral_constant<int, 64>());
    else
        by_chunk(std::integral_constant<int, 128>());
    return status;
}

sdlf_status engine_backward_weights(const cuda_calculator *calculator, const engine_conv2d *given)
{
    const engine_conv2d seen = engine_of_packed(given), *conv = &seen;
    const weights_cut cut = cut_of(calculator, conv);
    void *x = given->x, *image_space = static_cast<char *>(conv->workspace) + sum_bytes(cut, conv);
    sdlf_status status = engine_pack(calculator, given, &x, image_space, engine_packed_x(given));
    if (status != SDLF_OK) return status;
    const int64_t in[2] = {conv->h, conv->w}, out[2] = {conv->p, conv->q},
                  taps = static_cast<int64_t>(conv->r) * conv->s;
    weights_params params = {};
    im2col_shape image = {x,  conv->n, conv->h, conv->w,          engine_packed_channels(conv->c),
                          {}, {},      {},      conv->pixel_step, conv->row_step};
    for (int i = 0; i < 2; i++) {
        params.dilation[i] = conv->dilation[i];
        params.lower[i] = image.lower[i] = -conv->padding[i];
        params.stride[i] = image.stride[i] = conv->stride[i];
        image.upper[i] = static_cast<int>((out[i] - 1) * conv->stride[i] - conv->padding[i] - (in[i] - 1));
        params.count[i] = divider<int32_t>(out[i]);
    }
    params.row_tiles = static_cast<int>(cut.row_tiles);
    params.column_tiles = static_cast<int>(cut.column_tiles);
    params.splits = static_cast<int>(cut.splits);
    params.steps_each = static_cast<int>(cut.steps_each);
    params.steps = static_cast<int>(cut.steps);
    params.filters = static_cast<int>(conv->k);
    params.channels = static_cast<int>(cut.channels);
    params.taps = static_cast<int>(taps);
    params.filter_width = conv->s;
    params.chunks = static_cast<int>(cut.chunks);
    const engine_blocks blocks = engine_blocks_of(conv);
    if (engine_is_grouped(conv)) {
        params.block_filters = static_cast<int>(blocks.filters);
        params.block_channels = static_cast<int>(blocks.channels);
        params.block_tiles = static_cast<int>(cut.row_tiles / blocks.count);
    }
    params.sums = static_cast<float *>(conv->workspace);
    const tiled_shape dy = {conv->y,
                            2,
                            {conv->k, conv->n * conv->p * conv->q, 1},
                            {128 / static_cast<int>(sdlf_dtype_size(conv->dtype)), cut.k, 1}};
    if (cut.halo) {
        status = engine_run_halo_weights(calculator, conv, x, params.sums);
    } else {
        if (!make_im2col_map(&params.x, conv->dtype, image, cut.chunk, cut.k) ||
            !make_tiled_map(&params.dy, conv->dtype, dy))
            return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d_backward_weights: the driver refuses a tensor map");
        with_storage(conv->dtype, [&](auto zero) { status = launch<decltype(zero)>(calculator, cut, params); });
    }
    if (status != SDLF_OK) return status;
    engine_splits sums = {};
    sums.from = params.sums;
    sums.dw = given->dw;
    sums.splits = params.splits;
    sums.filters = static_cast<int>(conv->k);
    sums.taps = params.taps;
    sums.packed = params.channels;
    sums.weights =
        engine_is_grouped(given) ? engine_rows(static_cast<int>(blocks.group_channels)) : engine_packed_weights(given);
    sums.group_filters = static_cast<int>(blocks.group_filters);
    sums.joined = static_cast<int>(blocks.joined);
    engine_add_splits(calculator, sums);
    return cuda_check_launch("conv2d_backward_weights");
}
