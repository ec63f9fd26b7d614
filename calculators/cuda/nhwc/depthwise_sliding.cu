/* SPDX-License-Identifier: MIT */
/* NHWC depthwise convolution of SIZE x SIZE taps (nhwc/depthwise.cuh): a window that slides down the image, in registers.
 *
 * A thread has CHANNELS adjacent channels of RUN adjacent output columns, and iterates down a strip of rows. It holds all weights of its channels,
 * and accumulators of those output rows that the next input row contributes to: each input row is loaded and converted once, AHEAD rows ahead.
 * Adjacent threads have adjacent channels, so that loads cover whole sectors. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/nhwc/depthwise.cuh"

#include <algorithm>
#include <cstdint>

enum { THREADS = 128 };

struct sliding_conv : depthwise_conv {
    int rows_each, count;             /* rows per strip; number of threads */
    piecewise_linear_activation line; /* the activation, if it is piecewise linear */
    divider<int32_t> by_vectors, by_columns, by_strips;
};

template <typename T, int COUNT> struct alignas(sizeof(T) * COUNT) channel_vector {
    T at[COUNT];
};

/* A thread's strip. SLOT: the accumulators of the output row that begins; the OPEN - 1 rows before it are in the preceding slots,
 * cyclically. */
template <typename T, int SIZE, int STRIDE, int CHANNELS, int RUN, int AHEAD> struct sliding_window {
    using vector_of = channel_vector<T, CHANNELS>;
    static constexpr int SEEN = (RUN - 1) * STRIDE + SIZE, OPEN = (SIZE + STRIDE - 1) / STRIDE;
    const sliding_conv &g;
    int n, c, column, first, top, left;
    float w[SIZE * SIZE][CHANNELS], bias[CHANNELS], sum[OPEN][RUN][CHANNELS];
    vector_of next[AHEAD][SEEN]; /* input rows, the part that the strip reads */

    __device__ __forceinline__ sliding_window(const sliding_conv &conv, int image, int channel, int run, int row)
        : g(conv), n(image), c(channel), column(run * RUN), first(row), top(row * STRIDE - conv.padding[0]),
          left(column * STRIDE - conv.padding[1]), sum()
    {
#pragma unroll
        for (int v = 0; v < CHANNELS; v++) {
            const T *from = static_cast<const T *>(g.w) + static_cast<int64_t>(c + v) * SIZE * SIZE;
            bias[v] = g.bias != nullptr ? g.bias[c + v] : 0.0f;
#pragma unroll
            for (int tap = 0; tap < SIZE * SIZE; tap++)
                w[tap][v] = static_cast<float>(from[g.flipped ? SIZE * SIZE - 1 - tap : tap]);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) fetch(top + a, next[a]);
    }

    /* Loads the pixels of input row h that the strip reads. */
    __device__ __forceinline__ void fetch(int h, vector_of (&seen)[SEEN]) const
    {
        const bool is_row = h >= 0 && h < g.height;
        const int from = is_row ? ((n * g.height + h) * g.width + left) * g.channels + c : 0;
#pragma unroll
        for (int i = 0; i < SEEN; i++) {
            const bool is_there = is_row && static_cast<unsigned>(left + i) < static_cast<unsigned>(g.width);
            seen[i] = is_there
                          ? *reinterpret_cast<const vector_of *>(static_cast<const T *>(g.x) + from + i * g.channels)
                          : vector_of{};
        }
    }

    /* Accumulate one input pixel, through the taps of filter row R, into a slot. */
    template <int SLOT, int R> __device__ __forceinline__ void add_row(const float (&x)[CHANNELS], int i)
    {
#pragma unroll
        for (int o = 0; o < RUN; o++) {
            const int s = i - o * STRIDE;
            if (s < 0 || s >= SIZE) continue;
#pragma unroll
            for (int v = 0; v < CHANNELS; v++) sum[SLOT][o][v] = fmaf(x[v], w[R * SIZE + s][v], sum[SLOT][o][v]);
        }
    }

    template <int SLOT, int R> __device__ __forceinline__ void add_rows(const float (&x)[CHANNELS], int i)
    {
        if constexpr (R < SIZE) {
            add_row<SLOT, R>(x, i);
            add_rows<(SLOT + OPEN - 1) % OPEN, R + STRIDE>(x, i);
        }
    }

    /* Process a loaded row, which is filter row STEP for the output row that begins; another is loaded meanwhile. */
    template <int SLOT, int STEP> __device__ __forceinline__ void take_rows(int h)
    {
        if constexpr (STEP < STRIDE) {
            vector_of seen[SEEN];
#pragma unroll
            for (int i = 0; i < SEEN; i++) {
                seen[i] = next[0][i];
#pragma unroll
                for (int a = 1; a < AHEAD; a++) next[a - 1][i] = next[a][i];
            }
            fetch(h + AHEAD, next[AHEAD - 1]);
#pragma unroll
            for (int i = 0; i < SEEN; i++) {
                float x[CHANNELS];
#pragma unroll
                for (int v = 0; v < CHANNELS; v++) x[v] = static_cast<float>(seen[i].at[v]);
                add_rows<SLOT, STEP>(x, i);
            }
            take_rows<SLOT, STEP + 1>(h + 1);
        }
    }

    __device__ __forceinline__ void finish(float (&all)[RUN][CHANNELS], int row)
    {
        const int to = ((n * g.rows + row) * g.columns + column) * g.channels + c;
#pragma unroll
        for (int o = 0; o < RUN; o++) {
            vector_of more = {};
            if (g.residual != nullptr && column + o < g.columns)
                more = *reinterpret_cast<const vector_of *>(static_cast<const T *>(g.residual) + to + o * g.channels);
#pragma unroll
            for (int v = 0; v < CHANNELS; v++) all[o][v] = all[o][v] + bias[v] + static_cast<float>(more.at[v]);
        }
        with_inline_activation<T>(g.activation.function, g.line, [&](auto f) {
#pragma unroll
            for (int o = 0; o < RUN; o++) {
#pragma unroll
                for (int v = 0; v < CHANNELS; v++) all[o][v] = f(all[o][v]);
            }
        });
#pragma unroll
        for (int o = 0; o < RUN; o++) {
            vector_of made;
#pragma unroll
            for (int v = 0; v < CHANNELS; v++) made.at[v] = static_cast<T>(all[o][v]);
            if (column + o < g.columns)
                *reinterpret_cast<vector_of *>(static_cast<T *>(g.y) + to + o * g.channels) = made;
#pragma unroll
            for (int v = 0; v < CHANNELS; v++) all[o][v] = 0;
        }
    }

    /* Process output rows from row `at` of the strip on, one per slot: each begins, and the one that began OPEN - 1 rows earlier is completed. */
    template <int SLOT> __device__ __forceinline__ void walk(int at, int steps)
    {
        if constexpr (SLOT < OPEN) {
            if (at >= steps) return;
            take_rows<SLOT, 0>(top + at * STRIDE);
            if (at >= OPEN - 1) {
                finish(sum[(SLOT + 1) % OPEN], first + at - (OPEN - 1));
            } else {
#pragma unroll
                for (int o = 0; o < RUN; o++) {
#pragma unroll
                    for (int v = 0; v < CHANNELS; v++) sum[(SLOT + 1) % OPEN][o][v] = 0;
                }
            }
            walk<SLOT + 1>(at + 1, steps);
        }
    }
};

template <typename T, int SIZE, int STRIDE, int CHANNELS, int RUN, int AHEAD, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS) depthwise_sliding(const __grid_constant__ sliding_conv g)
{
    using window = sliding_window<T, SIZE, STRIDE, CHANNELS, RUN, AHEAD>;
    const int index = static_cast<int>(blockIdx.x) * THREADS + static_cast<int>(threadIdx.x);
    if (index >= g.count) return;
    int vector, run, strip;
    const int n = divide(divide(divide(index, g.by_vectors, vector), g.by_columns, run), g.by_strips, strip);
    const int first = strip * g.rows_each, steps = min(g.rows_each, g.rows - first) + window::OPEN - 1;
    wait_and_launch_dependent_grids();
    window strip_of(g, n, vector * CHANNELS, run, first);
    for (int at = 0; at < steps; at += window::OPEN) strip_of.template walk<0>(at, steps);
}

/* Rows per strip, each of which costs `beside` extra rows: the number that minimises the time, which is proportional to the rows of all strips or, if
 * there are fewer strips than the `threads` that are resident at once, to those of one strip. lines: columns of strips. */
static int rows_of_strip(int64_t lines, int64_t threads, int rows, int beside)
{
    int best = rows;
    int64_t least = INT64_MAX;
    for (int each = rows; each > 0; each--) {
        const int64_t time = std::max(lines * cuda_ceil_div(rows, each), threads) * (each + beside);
        if (time >= least) continue;
        least = time;
        best = each;
    }
    return best;
}

template <typename T, int SIZE, int STRIDE, int CHANNELS, int RUN, int AHEAD, int BLOCKS>
static void launch(const cuda_calculator *calculator, const depthwise_conv &given)
{
    enum { BEGIN = 2 }; /* cost of the beginning of a strip, in rows */
    sliding_conv g = {};
    static_cast<depthwise_conv &>(g) = given;
    g.line = line_activation_of(given.activation);
    const int64_t vectors = g.channels / CHANNELS, columns = cuda_ceil_div(g.columns, RUN);
    const int64_t lines = vectors * columns * g.batch;
    g.rows_each = rows_of_strip(lines, static_cast<int64_t>(calculator->multiprocessors) * BLOCKS * THREADS, g.rows,
                                (SIZE - 1) / STRIDE + BEGIN);
    const int64_t strips = cuda_ceil_div(g.rows, g.rows_each);
    g.count = static_cast<int>(lines * strips);
    g.by_vectors = divider<int32_t>(vectors);
    g.by_columns = divider<int32_t>(columns);
    g.by_strips = divider<int32_t>(strips);
    launch_overlapped(calculator, depthwise_sliding<T, SIZE, STRIDE, CHANNELS, RUN, AHEAD, BLOCKS>,
                      dim3(static_cast<unsigned>(cuda_ceil_div(g.count, THREADS))), dim3(THREADS), 0, g);
}

template <typename T> bool depthwise_sliding_launch(const cuda_calculator *calculator, const depthwise_conv &g)
{
    enum { LEAST_COLUMNS = 12 };          /* with fewer, too many runs are incomplete */
    constexpr bool WIDE = sizeof(T) == 4; /* prefetched rows need twice as many registers */
    const int64_t pixels = std::max(static_cast<int64_t>(g.height) * g.width, static_cast<int64_t>(g.rows) * g.columns);
    if (g.stride[1] == 1 && g.columns < LEAST_COLUMNS) return false;
    if (!is_inline_activation(g.activation) || g.batch * pixels * g.vectors > INT32_MAX / VECTOR) return false;
    if (depthwise_conv_is_square(g, 3, 1))
        launch<T, 3, 1, 2, 4, 1, WIDE ? 3 : 5>(calculator, g);
    else if (depthwise_conv_is_square(g, 5, 1))
        launch<T, 5, 1, 2, 4, 2, WIDE ? 2 : 3>(calculator, g);
    else if (depthwise_conv_is_square(g, 5, 2))
        launch<T, 5, 2, 2, 4, 2, WIDE ? 2 : 3>(calculator, g);
    else
        return false;
    return true;
}

template bool depthwise_sliding_launch<float>(const cuda_calculator *calculator, const depthwise_conv &g);
template bool depthwise_sliding_launch<__half>(const cuda_calculator *calculator, const depthwise_conv &g);
template bool depthwise_sliding_launch<__nv_bfloat16>(const cuda_calculator *calculator, const depthwise_conv &g);
