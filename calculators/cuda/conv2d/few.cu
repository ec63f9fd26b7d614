/* Convolutions of few channels: the windows are small, so that a product would spend its time with gathering them.
 *
 * Many filters: a block makes 32 x 4 pixels of up to 64 filters. It brings the rectangle of the image that these need, halo and
 * padding included, and the weights into shared memory, once, all of it asynchronously. A thread makes 4 neighbouring pixels of
 * OWN filters: lanes are 8 x 4 groups of pixels, warps are filters, so that weights are read by all lanes at once. For each row of a
 * window it reads 3 stride + SIDE pixels and OWN SIDE weights for 4 OWN SIDE products. OWN is 8, or 4 where blocks are few, so that there
 * are twice as many warps. Moves x about once for every 64 filters, y once.
 *
 * Few filters: memory alone decides. A thread makes a strip of STRIP pixels down a column of one filter, lanes are neighbours
 * in q; a row of pixels serves all windows of the strip that it lies in. Where there are few pixels the strip is one, and all reads of a
 * thread are under way at the same time. Moves x once for every filter (from the second-level cache after the first), y once. */
#include "calculators/cuda/conv2d/few.h"
#include "calculators/cuda/conv2d/implicit.h"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

#include <type_traits>

enum { ACROSS = 32, DOWN = 4, OWN_PIXELS = 4, OWN_MOST = 8, MOST_FILTERS = 64, WARP = 32 };

template <typename T> struct few_problem {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
    int channels, height, width, filters, out_height, out_width, padding[2];
    int blocks_across, blocks_down, filter_blocks;
    bool wide; /* rows of y begin at multiples of four numbers */
};

template <typename T> struct alignas(4 * sizeof(T)) few_quad {
    T at[4];
};

/* ---- many filters ---- */

template <int SIDE, int STEP> struct few_sizes {
    static constexpr int ROWS = (DOWN - 1) * STEP + SIDE, COLUMNS = (ACROSS - 1) * STEP + SIDE;
    static constexpr int ROW = (COLUMNS + 3) / 4 * 4, OWN = (OWN_PIXELS - 1) * STEP + SIDE;
    /* numbers of shared memory */
    static int64_t image(int channels)
    {
        return static_cast<int64_t>(channels) * ROWS * ROW;
    }
    static int64_t weights(int channels, int filters)
    {
        return static_cast<int64_t>(channels) * SIDE * SIDE * (filters + 4);
    }
};

template <typename T>
static __device__ __forceinline__ void store_pixels(const few_problem<T> &p, const T *sum, int64_t to, int column,
                                                    T bias)
{
    T value[OWN_PIXELS];
#pragma unroll
    for (int j = 0; j < OWN_PIXELS; j++) {
        value[j] = sum[j] + bias;
        if (p.residual != nullptr && column + j < p.out_width) value[j] += p.residual[to + j];
        value[j] = activate_often(p.activation, value[j]);
    }
    if (p.wide) {
        *reinterpret_cast<few_quad<T> *>(p.y + to) = {{value[0], value[1], value[2], value[3]}};
        return;
    }
#pragma unroll
    for (int j = 0; j < OWN_PIXELS; j++)
        if (column + j < p.out_width) p.y[to + j] = value[j];
}

template <typename T, int SIDE, int STEP, int OWN>
static __global__ void __launch_bounds__(MOST_FILTERS / OWN * WARP)
    few_channels(const __grid_constant__ few_problem<T> p)
{
    using sizes = few_sizes<SIDE, STEP>;
    extern __shared__ __align__(16) unsigned char memory[];
    const int block_filters = static_cast<int>(blockDim.x) / WARP * OWN, weight_row = block_filters + 4;
    T *weights = reinterpret_cast<T *>(memory), *image = weights + p.channels * SIDE * SIDE * weight_row;
    unsigned block = blockIdx.x;
    const int first_filter = static_cast<int>(block % p.filter_blocks) * block_filters;
    block /= p.filter_blocks;
    const int first_column = static_cast<int>(block % p.blocks_across) * ACROSS;
    block /= p.blocks_across;
    const int first_row = static_cast<int>(block % p.blocks_down) * DOWN, n = static_cast<int>(block / p.blocks_down);

    await_kernels();
    const int depth = p.channels * SIDE * SIDE;
#pragma unroll 4
    for (int e = threadIdx.x; e < depth * block_filters; e += blockDim.x) {
        int filter = e / depth, tap = e - filter * depth;
        bool exists = first_filter + filter < p.filters;
        copy_async_number(weights + tap * weight_row + filter,
                          exists ? p.w + static_cast<int64_t>(first_filter) * depth + e : p.w, exists);
    }
    const T *x = p.x + static_cast<int64_t>(n) * p.channels * p.height * p.width;
    const int top = first_row * STEP - p.padding[0], left = first_column * STEP - p.padding[1];
#pragma unroll 4
    for (int e = threadIdx.x; e < p.channels * sizes::ROWS * sizes::ROW; e += blockDim.x) {
        int column = e % sizes::ROW, rest = e / sizes::ROW, row = rest % sizes::ROWS, c = rest / sizes::ROWS;
        bool inside = static_cast<unsigned>(top + row) < static_cast<unsigned>(p.height) &&
                      static_cast<unsigned>(left + column) < static_cast<unsigned>(p.width);
        copy_async_number(image + e,
                          inside ? x + (static_cast<int64_t>(c) * p.height + top + row) * p.width + left + column : x,
                          inside);
    }
    close_copies();
    await_copies<0>();
    __syncthreads();

    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, across = lane % 8 * OWN_PIXELS, down = lane / 8;
    const T *from = image + down * STEP * sizes::ROW + across * STEP, *own = weights + warp * OWN;
    T sum[OWN][OWN_PIXELS] = {};
#pragma unroll 1
    for (int c = 0; c < p.channels; c++, from += sizes::ROWS * sizes::ROW) {
#pragma unroll(SIDE < 5 ? SIDE : 1)
        for (int r = 0; r < SIDE; r++) {
            T pixel[(sizes::OWN + 3) / 4 * 4];
#pragma unroll
            for (int j = 0; j < (sizes::OWN + 3) / 4; j++)
                *reinterpret_cast<few_quad<T> *>(pixel + 4 * j) =
                    *reinterpret_cast<const few_quad<T> *>(from + r * sizes::ROW + 4 * j);
#pragma unroll
            for (int s = 0; s < SIDE; s++, own += weight_row) {
                few_quad<T> factor[OWN / 4];
#pragma unroll
                for (int i = 0; i < OWN / 4; i++) factor[i] = *reinterpret_cast<const few_quad<T> *>(own + 4 * i);
#pragma unroll
                for (int i = 0; i < OWN; i++) {
#pragma unroll
                    for (int j = 0; j < OWN_PIXELS; j++) sum[i][j] += factor[i / 4].at[i % 4] * pixel[j * STEP + s];
                }
            }
        }
    }
    const int row = first_row + down, column = first_column + across;
    if (row >= p.out_height || column >= p.out_width) return;
    int filter = first_filter + warp * OWN;
    const int64_t area = static_cast<int64_t>(p.out_height) * p.out_width;
    int64_t to =
        (static_cast<int64_t>(n) * p.filters + filter) * area + static_cast<int64_t>(row) * p.out_width + column;
#pragma unroll
    for (int i = 0; i < OWN; i++, filter++, to += area) {
        if (filter >= p.filters) break;
        store_pixels(p, sum[i], to, column, p.bias != nullptr ? p.bias[filter] : T(0));
    }
}

/* ---- few filters ---- */

/* Add one channel's window to each pixel of a strip. CHECKED: some of it may lie outside of the image. */
template <typename T, int SIDE, int STEP, int STRIP, bool CHECKED>
static __device__ __forceinline__ void add_channel(T *sum, const T *image, const T *w, int top, int left, int height,
                                                   int width)
{
    constexpr int ROWS = (STRIP - 1) * STEP + SIDE;
    T own[SIDE * SIDE];
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; i++) own[i] = __ldg(w + i);
    const T *from = image + static_cast<int64_t>(top) * width + left;
#pragma unroll
    for (int row = 0; row < ROWS; row++, from += width) {
        if (STRIP > 1 && STEP > SIDE && row % STEP >= SIDE) continue;
        T value[SIDE];
#pragma unroll
        for (int c = 0; c < SIDE; c++) {
            bool inside = !CHECKED || (static_cast<unsigned>(top + row) < static_cast<unsigned>(height) &&
                                       static_cast<unsigned>(left + c) < static_cast<unsigned>(width));
            value[c] = inside ? __ldg(from + c) : T(0);
        }
#pragma unroll
        for (int i = 0; i < STRIP; i++) {
            int r = row - i * STEP;
            if (r < 0 || r >= SIDE) continue;
#pragma unroll
            for (int c = 0; c < SIDE; c++) sum[i] += value[c] * own[r * SIDE + c];
        }
    }
}

enum { STRIPS = 8 }; /* of a block, below each other */

template <typename T, int SIDE, int STEP, int STRIP>
static __global__ void __launch_bounds__(WARP *STRIPS) few_filters(const __grid_constant__ few_problem<T> p)
{
    const int column = static_cast<int>(blockIdx.x % p.blocks_across) * WARP + static_cast<int>(threadIdx.x);
    const int row = (static_cast<int>(blockIdx.x / p.blocks_across) * STRIPS + static_cast<int>(threadIdx.y)) * STRIP;
    const int filter = static_cast<int>(blockIdx.y), n = static_cast<int>(blockIdx.z);
    await_kernels();
    if (column >= p.out_width || row >= p.out_height) return;
    const int top = row * STEP - p.padding[0], left = column * STEP - p.padding[1];
    const int64_t plane = static_cast<int64_t>(p.height) * p.width;
    const T *image = p.x + static_cast<int64_t>(n) * p.channels * plane;
    const T *w = p.w + static_cast<int64_t>(filter) * p.channels * SIDE * SIDE;
    const bool inner =
        STRIP > 1 && top >= 0 && left >= 0 && top + (STRIP - 1) * STEP + SIDE <= p.height && left + SIDE <= p.width;
    T sum[STRIP] = {};
    if (inner) {
#pragma unroll 1
        for (int c = 0; c < p.channels; c++, image += plane, w += SIDE * SIDE)
            add_channel<T, SIDE, STEP, STRIP, false>(sum, image, w, top, left, p.height, p.width);
    } else {
#pragma unroll(STRIP == 1 && SIDE == 3 ? 3 : 1)
        for (int c = 0; c < p.channels; c++)
            add_channel<T, SIDE, STEP, STRIP, true>(sum, image + c * plane, w + c * SIDE * SIDE, top, left, p.height,
                                                    p.width);
    }
    const T bias = p.bias != nullptr ? p.bias[filter] : T(0);
    int64_t to = ((static_cast<int64_t>(n) * p.filters + filter) * p.out_height + row) * p.out_width + column;
#pragma unroll
    for (int i = 0; i < STRIP; i++, to += p.out_width) {
        if (row + i >= p.out_height) break;
        T value = sum[i] + bias;
        if (p.residual != nullptr) value += p.residual[to];
        p.y[to] = activate_often(p.activation, value);
    }
}

/* ---- launching ---- */

/* Filters of a block. */
static int filters_of(const cuda_conv2d &g)
{
    int64_t filters = g.filters < MOST_FILTERS ? g.filters : static_cast<int64_t>(MOST_FILTERS);
    return static_cast<int>((filters + OWN_MOST - 1) / OWN_MOST * OWN_MOST);
}

template <int SIDE, int STEP> static int64_t shared_numbers(const cuda_conv2d &g)
{
    int channels = static_cast<int>(g.channels);
    return few_sizes<SIDE, STEP>::image(channels) + few_sizes<SIDE, STEP>::weights(channels, filters_of(g));
}

/* Call `function` with window and stride as constants; `otherwise` where there is no kernel for them. */
template <typename Result, typename Function>
static Result with_window(int side, int stride, Result otherwise, Function function)
{
    using std::integral_constant;
    auto with_step = [&](auto size) {
        if (stride == 1) return function(size, integral_constant<int, 1>());
        return stride == 2 ? function(size, integral_constant<int, 2>()) : otherwise;
    };
    if (side == 3) return with_step(integral_constant<int, 3>());
    if (side == 5) return with_step(integral_constant<int, 5>());
    return side == 7 ? with_step(integral_constant<int, 7>()) : otherwise;
}

static bool is_few(const cuda_conv2d &g)
{
    return g.filters <= FEW_FILTERS && g.window.size[0] < 7 && g.window.stride[0] <= 3;
}

extern "C" bool cuda_few_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_FORWARD || op->conv2d.groups != 1) return false;
    if (sdlf_operation_is_channels_last(op) || !cuda_implicit_counts(op)) return false;
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    const sdlf_window2d &window = g.window;
    bool square = window.size[0] == window.size[1] && window.stride[0] == window.stride[1] && window.dilation[0] == 1 &&
                  window.dilation[1] == 1;
    if (!square || g.channels > FEW_CHANNELS) return false;
    if (is_few(g)) return (window.size[0] == 3 || window.size[0] == 5) && g.batch <= 65535;
    int64_t most = reinterpret_cast<const cuda_calculator *>(base)->shared_most;
    int64_t size = static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype));
    return with_window(window.size[0], window.stride[0], false, [&](auto side, auto step) {
        return shared_numbers<decltype(side)::value, decltype(step)::value>(g) * size <= most;
    });
}

template <typename T, int SIDE, int STEP>
static sdlf_status launch_many(const cuda_calculator *calculator, few_problem<T> p, const cuda_conv2d &g)
{
    int filters = filters_of(g);
    p.blocks_across = (p.out_width + ACROSS - 1) / ACROSS;
    p.blocks_down = (p.out_height + DOWN - 1) / DOWN;
    p.filter_blocks = (p.filters + filters - 1) / filters;
    int64_t blocks = g.batch * p.blocks_across * p.blocks_down * p.filter_blocks;
    int64_t bytes = shared_numbers<SIDE, STEP>(g) * static_cast<int64_t>(sizeof(T));
    bool many = blocks > 2 * calculator->multiprocessors;
    auto kernel = many ? few_channels<T, SIDE, STEP, 8> : few_channels<T, SIDE, STEP, 4>;
    sdlf_status status = allow_shared(kernel, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(blocks)),
                      dim3(static_cast<unsigned>(filters / (many ? 8 : 4) * WARP)), static_cast<int>(bytes), p);
    return cuda_check_launch("conv2d, few channels");
}

template <typename T, int SIDE, int STEP>
static sdlf_status launch_few(const cuda_calculator *calculator, few_problem<T> p, const cuda_conv2d &g)
{
    bool strips = g.batch * g.filters * g.out_height * g.out_width > calculator->multiprocessors * INT64_C(2048);
    int strip = strips ? 4 : 1;
    p.blocks_across = (p.out_width + WARP - 1) / WARP;
    p.blocks_down = (p.out_height + STRIPS * strip - 1) / (STRIPS * strip);
    dim3 blocks(static_cast<unsigned>(p.blocks_across) * static_cast<unsigned>(p.blocks_down),
                static_cast<unsigned>(p.filters), static_cast<unsigned>(g.batch));
    launch_overlapped(calculator, strips ? few_filters<T, SIDE, STEP, 4> : few_filters<T, SIDE, STEP, 1>, blocks,
                      dim3(WARP, STRIPS), 0, p);
    return cuda_check_launch("conv2d, few filters");
}

template <typename T> static sdlf_status run(const cuda_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    few_problem<T> p = {};
    p.x = data_of<T>(op->in[0]);
    p.w = data_of<T>(op->in[1]);
    p.bias = optional<T>(op->in[2]);
    p.residual = optional<T>(op->in[3]);
    p.y = data_of<T>(op->out[0]);
    p.activation = op->conv2d.activation;
    p.channels = static_cast<int>(g.channels);
    p.height = static_cast<int>(g.height);
    p.width = static_cast<int>(g.width);
    p.filters = static_cast<int>(g.filters);
    p.out_height = static_cast<int>(g.out_height);
    p.out_width = static_cast<int>(g.out_width);
    for (int i = 0; i < 2; i++) p.padding[i] = g.window.padding_before[i];
    p.wide = p.out_width % 4 == 0 && (reinterpret_cast<uintptr_t>(p.y) & (4 * sizeof(T) - 1)) == 0;
    int side = g.window.size[0], stride = g.window.stride[0];
    if (is_few(g)) {
        if (side == 3)
            return stride == 1   ? launch_few<T, 3, 1>(calculator, p, g)
                   : stride == 2 ? launch_few<T, 3, 2>(calculator, p, g)
                                 : launch_few<T, 3, 3>(calculator, p, g);
        return stride == 1   ? launch_few<T, 5, 1>(calculator, p, g)
               : stride == 2 ? launch_few<T, 5, 2>(calculator, p, g)
                             : launch_few<T, 5, 3>(calculator, p, g);
    }
    return with_window(side, stride, SDLF_OK, [&](auto size, auto step) {
        return launch_many<T, decltype(size)::value, decltype(step)::value>(calculator, p, g);
    });
}

extern "C" sdlf_status conv2d_few_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    return op->out[0].dtype == SDLF_FLOAT32 ? run<float>(calculator, op) : run<double>(calculator, op);
}
