/* SPDX-License-Identifier: MIT */
/* Packing and transposing (engine/pack.h). One thread per 8 elements of the copy; the copy is written once, and reads are served from cache. */
#include "calculators/cuda/engine/pack.cuh"

#include "calculators/cuda/mma.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { THREADS = 256 };

/* ---- what is packed, and how ---- */

static bool has_few_channels(const engine_conv2d *conv)
{
    return conv->c < 8;
}

/* Pixels of a window's row, including those between its taps. */
static int64_t window_width(const engine_conv2d *conv)
{
    return (conv->s - 1) * static_cast<int64_t>(conv->dilation[1]) + 1;
}

/* Packed elements per pixel if there are few channels: such that the next window begins a multiple of 16 bytes later at the convolution's stride. */
static int pixel_width(const engine_conv2d *conv)
{
    const int together = 16 / static_cast<int>(sdlf_dtype_size(conv->dtype));
    int width = 1;
    while (width < conv->c || conv->stride[1] * width % together != 0) width *= 2;
    return width;
}

/* Elements of a window's row, padded to a multiple of 16. */
static int64_t row_length(const engine_conv2d *conv)
{
    return cuda_ceil_div(window_width(conv) * pixel_width(conv), 16) * 16;
}

/* Rows of channels, padded with zeros. */
static engine_lines padded_rows(const engine_conv2d *conv, int64_t rows)
{
    engine_lines made = engine_rows(static_cast<int>(conv->c));
    made.width = made.length = static_cast<int>(engine_packed_channels(conv->c));
    made.lines = conv->c % 8 == 0 ? 0 : rows;
    return made;
}

engine_lines engine_packed_x(const engine_conv2d *conv)
{
    if (!has_few_channels(conv)) return padded_rows(conv, conv->n * conv->h * conv->w);
    const int64_t step = static_cast<int64_t>(conv->stride[1]) * pixel_width(conv);
    const int64_t length = cuda_ceil_div((conv->q - 1) * step + row_length(conv), 8 * step) * 8 * step;
    const int64_t rows = (conv->p - 1) * conv->stride[0] + static_cast<int64_t>(conv->r - 1) * conv->dilation[0] + 1;
    const bool fits =
        length > 0 && rows > 0 && length <= INT32_MAX && rows <= INT32_MAX && conv->n <= INT64_MAX / 8 / length / rows;
    engine_lines made = {};
    made.lines = fits ? conv->n * rows : 0;
    made.height = static_cast<int>(conv->h);
    made.above = conv->padding[0];
    made.rows = static_cast<int>(rows);
    made.pixels = static_cast<int>(conv->w);
    made.channels = static_cast<int>(conv->c);
    made.padding = conv->padding[1];
    made.spread = 1;
    made.width = pixel_width(conv);
    made.length = static_cast<int>(length);
    return made;
}

engine_lines engine_packed_weights(const engine_conv2d *conv)
{
    if (!has_few_channels(conv)) return padded_rows(conv, conv->k * conv->r * conv->s);
    engine_lines made = engine_rows(static_cast<int>(conv->c));
    made.lines = conv->k * conv->r;
    made.pixels = conv->s;
    made.spread = conv->dilation[1];
    made.width = pixel_width(conv);
    made.length = static_cast<int>(row_length(conv));
    return made;
}

engine_conv2d engine_of_packed(const engine_conv2d *conv)
{
    engine_conv2d made = *conv;
    if (!has_few_channels(conv)) return made;
    const engine_lines x = engine_packed_x(conv);
    made.c = row_length(conv);
    made.h = x.rows;
    made.w = conv->q;
    made.s = made.stride[1] = made.dilation[1] = 1;
    made.padding[0] = made.padding[1] = 0;
    made.pixel_step = static_cast<int64_t>(conv->stride[1]) * x.width;
    made.row_step = x.length;
    return made;
}

/* ---- packing ---- */

/* float32 is rounded to tf32, with the last 13 bits 0: loads other than TMA's do not round, and TMA leaves such values unchanged. */
template <typename T> static __device__ __forceinline__ float rounded(T x)
{
    if constexpr (sizeof(T) == 4) return __uint_as_float(operand_bits<SDLF_MATH_TF32>(x) & 0xffffe000u);
    return static_cast<float>(x);
}

template <typename T, typename Index>
static __global__ void pack_lines(const T *from, T *to, int64_t count, const divider<Index> across,
                                  const divider<Index> rows, const packed_lines of)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        Index vector, line;
        const int64_t image = divide(divide(static_cast<Index>(i), across, vector), rows, line);
        const int first = static_cast<int>(vector) * 8, row = static_cast<int>(line) - of.above;
        const bool is_row = row >= 0 && row < of.height;
        const T *pixels = from + (image * of.height + row) * of.pixels * of.channels;
        float8 values;
#pragma unroll
        for (int v = 0; v < 8; v++) {
            int channel;
            const int pixel = is_row ? of.pixel_of(first + v, channel) : -1;
            values.at[v] = pixel >= 0 ? rounded<T>(pixels[pixel * of.channels + channel]) : 0.0f;
        }
        store8(to, i, values);
    }
}

/* The same for adjacent pixels of a few channels, each packed to WIDTH elements. */
template <int WIDTH, typename T>
static __global__ void pack_pixels(const T *from, T *to, int64_t count, const divider<int32_t> across,
                                   const divider<int32_t> rows, const engine_lines of)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int vector, line;
        const int image = divide(divide(static_cast<int>(i), across, vector), rows, line);
        const int first = vector * (VECTOR / WIDTH) - of.padding, row = line - of.above;
        const bool is_row = row >= 0 && row < of.height;
        const T *pixels = from + ((static_cast<int64_t>(image) * of.height + row) * of.pixels + first) * of.channels;
        float8 values;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            const int pixel = v / WIDTH, channel = v % WIDTH;
            const bool is_there = is_row && channel < of.channels && first + pixel >= 0 && first + pixel < of.pixels;
            values.at[v] = is_there ? rounded<T>(pixels[pixel * of.channels + channel]) : 0.0f;
        }
        store8(to, i, values);
    }
}

template <int WIDTH, typename T>
static bool launch_pixels(const cuda_calculator *calculator, const T *from, T *to, int64_t count,
                          const engine_lines &lines)
{
    if (lines.width != WIDTH || lines.spread != 1 || count > INT32_MAX) return false;
    launch_overlapped(calculator, pack_pixels<WIDTH, T>, cuda_blocks(calculator, count, THREADS), THREADS, 0, from, to,
                      count, divider<int32_t>(lines.length / VECTOR), divider<int32_t>(lines.rows), lines);
    return true;
}

int64_t engine_pack_bytes(const engine_conv2d *conv, engine_lines lines)
{
    return (lines.lines * lines.length * static_cast<int64_t>(sdlf_dtype_size(conv->dtype)) + 63) / 64 * 64;
}

sdlf_status engine_pack(const cuda_calculator *calculator, const engine_conv2d *conv, void **data, void *to,
                        engine_lines lines)
{
    if (lines.lines == 0) return SDLF_OK;
    const int64_t count = lines.lines * (lines.length / 8);
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *from = static_cast<const T *>(*data);
        T *packed = static_cast<T *>(to);
        if (launch_pixels<2>(calculator, from, packed, count, lines) ||
            launch_pixels<4>(calculator, from, packed, count, lines) ||
            launch_pixels<8>(calculator, from, packed, count, lines))
            return;
        with_narrow_index(count, [&](auto index) {
            using Index = decltype(index);
            launch_overlapped(calculator, pack_lines<T, Index>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                              from, packed, count, divider<Index>(lines.length / 8), divider<Index>(lines.rows),
                              packed_lines(lines));
        });
    });
    *data = to;
    return cuda_check_launch("packing of channels");
}

/* ---- transposing ---- */

enum { TILE = 32, TILE_ROWS = THREADS / TILE };

/* Strides of weights in elements: between filters, channels and taps. */
struct weight_strides {
    int64_t filter, channel, tap;
};

/* A block transposes TILE x TILE filters and channels of a tap through shared memory. */
static __global__ void transpose_filters(const float *from, float *to, int filters, int taps, int channels,
                                         weight_strides step)
{
    __shared__ float tile[TILE][TILE + 1];
    const int across = static_cast<int>(threadIdx.x) % TILE, down = static_cast<int>(threadIdx.x) / TILE;
    const int channel = static_cast<int>(blockIdx.x) * TILE, filter = static_cast<int>(blockIdx.y) * TILE;
    const int64_t tap = blockIdx.z;
    wait_and_launch_dependent_grids();
    for (int i = down; i < TILE; i += TILE_ROWS) {
        if (filter + i < filters && channel + across < channels)
            tile[i][across] = from[(filter + i) * step.filter + (channel + across) * step.channel + tap * step.tap];
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
    const int64_t taps = static_cast<int64_t>(conv->r) * conv->s;
    const weight_strides step =
        conv->row_major ? weight_strides{conv->c * taps, taps, 1} : weight_strides{conv->c * taps, 1, conv->c};
    launch_overlapped(calculator, transpose_filters, blocks, dim3(THREADS), 0,
                      static_cast<const float *>(conv->weights), to, static_cast<int>(conv->k), static_cast<int>(taps),
                      static_cast<int>(conv->c), step);
    return cuda_check_launch("transposing of filters");
}

/* ---- prepacked weights ---- */

/* One thread per element of the output: lines of a filter and a tap, packed as `of` specifies. */
template <typename T>
static __global__ void prepare_filters(const float *from, T *to, int64_t count, int taps, const packed_lines of,
                                       weight_strides step)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int64_t line = i / of.length, filter = line / taps, tap = line - filter * taps;
        int channel;
        const int pixel = of.pixel_of(static_cast<int>(i - line * of.length), channel);
        const int64_t at = filter * step.filter + channel * step.channel + (tap * of.pixels + pixel) * step.tap;
        to[i] = static_cast<T>(pixel >= 0 ? from[at] : 0.0f);
    }
}

/* The same where nothing is moved, as in a 1x1 convolution: eight elements of a thread. */
template <typename T> static __global__ void convert_filters(const float *from, T *to, int64_t count)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count / VECTOR; i += grid_step()) store8(to, i, load8(from, i));
}

int64_t engine_prepared(const engine_conv2d *conv)
{
    const engine_conv2d packed = engine_of_packed(conv);
    return conv->k * packed.r * packed.s * engine_packed_channels(packed.c) *
           static_cast<int64_t>(sdlf_dtype_size(conv->dtype));
}

sdlf_status engine_prepare(const cuda_calculator *calculator, const engine_conv2d *conv, const float *weights, void *to)
{
    const engine_conv2d packed = engine_of_packed(conv);
    const engine_lines lines = engine_packed_weights(conv);
    const int64_t taps = static_cast<int64_t>(conv->r) * conv->s, count = conv->k * packed.r * packed.s * lines.length;
    const weight_strides step =
        conv->by_channels ? weight_strides{1, conv->k, 1} : weight_strides{conv->c * taps, taps, 1};
    const bool stay = taps == 1 && packed.r * packed.s == 1 && lines.length == conv->c && conv->c % VECTOR == 0 &&
                      !conv->by_channels && is_aligned16(weights);
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (stay)
            launch_overlapped(calculator, convert_filters<T>, cuda_blocks(calculator, count / VECTOR, THREADS), THREADS,
                              0, weights, static_cast<T *>(to), count);
        else
            launch_overlapped(calculator, prepare_filters<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                              weights, static_cast<T *>(to), count, packed.r * packed.s, packed_lines(lines), step);
    });
    return cuda_check_launch("weights of conv2d made ready");
}
