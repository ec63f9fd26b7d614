/* SPDX-License-Identifier: MIT */
/* Packing, transposing and unfolding (engine/pack.h). A thread 8 elements of the copy; the copy is written once, and what is read stays in caches. */
#include "calculators/cuda/engine/pack.h"

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { THREADS = 256 };

template <typename T> static __global__ void pack_rows(const T *from, T *to, int64_t count, int channels, int across)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int64_t row = i / across;
        const int first = static_cast<int>(i - row * across) * 8;
        float8 values;
        for (int v = 0; v < 8; v++)
            values.at[v] = first + v < channels ? static_cast<float>(from[row * channels + first + v]) : 0.0f;
        store8(to, i, values);
    }
}

sdlf_status engine_pack(const cuda_calculator *calculator, const engine_conv2d *conv, void **data, void *to,
                        int64_t rows)
{
    if (conv->c % 8 == 0) return SDLF_OK;
    const int across = static_cast<int>(engine_packed_channels(conv->c) / 8);
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, pack_rows<T>, cuda_blocks(calculator, rows * across, THREADS), THREADS, 0,
                          static_cast<const T *>(*data), static_cast<T *>(to), rows * across, static_cast<int>(conv->c),
                          across);
    });
    *data = to;
    return cuda_check_launch("packing of channels");
}

/* ---- transposing ---- */

enum { TILE = 32, TILE_ROWS = THREADS / TILE };

/* A block TILE x TILE of the filters and channels of a tap, through shared memory. */
static __global__ void transpose_filters(const float *from, float *to, int filters, int taps, int channels)
{
    __shared__ float tile[TILE][TILE + 1];
    const int across = static_cast<int>(threadIdx.x) % TILE, down = static_cast<int>(threadIdx.x) / TILE;
    const int channel = static_cast<int>(blockIdx.x) * TILE, filter = static_cast<int>(blockIdx.y) * TILE;
    const int64_t tap = blockIdx.z;
    await_kernels();
    for (int i = down; i < TILE; i += TILE_ROWS) {
        if (filter + i < filters && channel + across < channels)
            tile[i][across] = from[((filter + i) * static_cast<int64_t>(taps) + tap) * channels + channel + across];
    }
    __syncthreads();
    for (int i = down; i < TILE; i += TILE_ROWS) {
        if (channel + i < channels && filter + across < filters)
            to[((channel + i) * static_cast<int64_t>(taps) + tap) * filters + filter + across] = tile[across][i];
    }
}

sdlf_status engine_transpose_filters(const cuda_calculator *calculator, const engine_conv2d *conv, float *to)
{
    const dim3 blocks(static_cast<unsigned>((conv->c + TILE - 1) / TILE),
                      static_cast<unsigned>((conv->k + TILE - 1) / TILE), static_cast<unsigned>(conv->r * conv->s));
    launch_overlapped(calculator, transpose_filters, blocks, dim3(THREADS), 0,
                      static_cast<const float *>(conv->weights), to, static_cast<int>(conv->k), conv->r * conv->s,
                      static_cast<int>(conv->c));
    return cuda_check_launch("transposing of filters");
}

/* ---- weights made ready ---- */

/* Where a weight lies: elements from one filter and channel to the next; taps follow each other. */
struct weight_strides {
    int64_t filter, channel;
};

/* An element of the filters that are made a thread: lines of (tap, channel), `group` a tap, zeros behind the last channel and tap. */
template <typename T>
static __global__ void prepare_filters(const float *from, T *to, int64_t count, int line, int group, int taps,
                                       int channels, weight_strides step)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int64_t filter = i / line;
        const int at = static_cast<int>(i - filter * line), tap = at / group, channel = at - tap * group;
        const bool is_there = tap < taps && channel < channels;
        to[i] = static_cast<T>(is_there ? from[filter * step.filter + channel * step.channel + tap] : 0.0f);
    }
}

static int64_t prepared_line(const engine_conv2d *conv)
{
    const int64_t taps = static_cast<int64_t>(conv->r) * conv->s;
    return engine_unfolds(conv) ? engine_packed_channels(conv->c * taps) : engine_packed_channels(conv->c) * taps;
}

int64_t engine_prepared(const engine_conv2d *conv)
{
    return conv->k * prepared_line(conv) * static_cast<int64_t>(sdlf_dtype_size(conv->dtype));
}

sdlf_status engine_prepare(const cuda_calculator *calculator, const engine_conv2d *conv, const float *weights, void *to)
{
    const int64_t line = prepared_line(conv), count = conv->k * line;
    const int64_t group = engine_unfolds(conv) ? conv->c : engine_packed_channels(conv->c);
    const int64_t taps = static_cast<int64_t>(conv->r) * conv->s;
    const weight_strides step = conv->by_channels ? weight_strides{1, conv->k} : weight_strides{conv->c * taps, taps};
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, prepare_filters<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0, weights,
                          static_cast<T *>(to), count, static_cast<int>(line), static_cast<int>(group),
                          conv->r * conv->s, static_cast<int>(conv->c), step);
    });
    return cuda_check_launch("weights of conv2d made ready");
}

/* ---- unfolding ---- */

struct unfolding {
    int height, width, channels, taps; /* of x; R S */
    int stride[2], padding[2], dilation[2];
    divider<int32_t> rows, columns, filter_width, by_channels; /* P, Q, S, C */
};

template <typename T>
static __global__ void unfold_pixels(const T *x, T *to, int64_t count, divider<int32_t> across, const unfolding g)
{
    await_kernels();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int vector, p, q, s, c;
        const int n = divide(divide(divide(static_cast<int32_t>(i), across, vector), g.columns, q), g.rows, p);
        float8 values;
#pragma unroll
        for (int v = 0; v < 8; v++) {
            const int tap = divide(vector * 8 + v, g.by_channels, c), r = divide(tap, g.filter_width, s);
            const int h = p * g.stride[0] + r * g.dilation[0] - g.padding[0];
            const int w = q * g.stride[1] + s * g.dilation[1] - g.padding[1];
            const bool inside = tap < g.taps && h >= 0 && h < g.height && w >= 0 && w < g.width;
            values.at[v] =
                inside
                    ? static_cast<float>(x[((static_cast<int64_t>(n) * g.height + h) * g.width + w) * g.channels + c])
                    : 0.0f;
        }
        store8(to, i, values);
    }
}

engine_conv2d engine_unfolded(const engine_conv2d *conv)
{
    engine_conv2d made = *conv;
    made.h = conv->p;
    made.w = conv->q;
    made.c = conv->c * conv->r * conv->s;
    made.r = made.s = made.stride[0] = made.stride[1] = made.dilation[0] = made.dilation[1] = 1;
    made.padding[0] = made.padding[1] = 0;
    return made;
}

int64_t engine_unfold_bytes(const engine_conv2d *conv)
{
    const int64_t row = engine_packed_channels(conv->c * conv->r * conv->s);
    return (conv->n * conv->p * conv->q * row * static_cast<int64_t>(sdlf_dtype_size(conv->dtype)) + 63) / 64 * 64;
}

sdlf_status engine_unfold(const cuda_calculator *calculator, const engine_conv2d *conv, void *to)
{
    const int64_t across = engine_packed_channels(conv->c * conv->r * conv->s) / 8;
    const int64_t count = conv->n * conv->p * conv->q * across;
    unfolding g = {};
    g.height = static_cast<int>(conv->h);
    g.width = static_cast<int>(conv->w);
    g.channels = static_cast<int>(conv->c);
    g.taps = conv->r * conv->s;
    for (int i = 0; i < 2; i++) {
        g.stride[i] = conv->stride[i];
        g.padding[i] = conv->padding[i];
        g.dilation[i] = conv->dilation[i];
    }
    g.rows = divider<int32_t>(conv->p);
    g.columns = divider<int32_t>(conv->q);
    g.filter_width = divider<int32_t>(conv->s);
    g.by_channels = divider<int32_t>(conv->c);
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, unfold_pixels<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          static_cast<const T *>(conv->x), static_cast<T *>(to), count, divider<int32_t>(across), g);
    });
    return cuda_check_launch("unfolding of an image");
}
