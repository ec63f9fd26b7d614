/* SPDX-License-Identifier: MIT */
/* Stem convolutions with many filters: windows are small, so that a GEMM would spend its time gathering them.
 *
 * A block computes 32 x 4 pixels of up to 64 filters, and, where there are many, the rectangles below, too, with the weights loaded
 * once. It copies the rectangle of the image that these need, halo and padding included, and the weights into shared memory by
 * cp.async. A thread computes 4 neighbouring pixels of OWN filters: lanes are 8 x 4 groups of pixels, warps are filters, so that all
 * lanes read the same weights. For each row of a window it reads 3 stride + SIDE pixels and OWN SIDE weights for 4 OWN SIDE
 * multiply-adds. OWN is 8, or 4 where blocks are few, for twice as many warps. Loads x about once for every 64 filters, stores y
 * once. */
#include "calculators/cuda/conv2d/stem.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

#include <type_traits>

enum { ACROSS = 32, DOWN = 4, OWN_PIXELS = 4, OWN_MOST = 8, MOST_FILTERS = 64 };
enum {
    MOST_TURNS = 8,
    ENOUGH = 8
}; /* rectangles of a block, at most; blocks for each multiprocessor that must remain */

template <typename T> struct alignas(4 * sizeof(T)) stem_quad {
    T at[4];
};

template <int SIDE, int STEP> struct stem_sizes {
    static constexpr int ROWS = (DOWN - 1) * STEP + SIDE, COLUMNS = (ACROSS - 1) * STEP + SIDE;
    static constexpr int ROW = (COLUMNS + 3) / 4 * 4, OWN = (OWN_PIXELS - 1) * STEP + SIDE;
    /* Elements of shared memory. */
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
static __device__ __forceinline__ void store_pixels(const stem_problem<T> &p, const T *sum, int64_t to, int column,
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
        *reinterpret_cast<stem_quad<T> *>(p.y + to) = {{value[0], value[1], value[2], value[3]}};
        return;
    }
#pragma unroll
    for (int j = 0; j < OWN_PIXELS; j++)
        if (column + j < p.out_width) p.y[to + j] = value[j];
}

template <typename T, int SIDE, int STEP, int OWN>
static __global__ void __launch_bounds__(MOST_FILTERS / OWN * WARP)
    stem_channels(const __grid_constant__ stem_problem<T> p)
{
    using sizes = stem_sizes<SIDE, STEP>;
    extern __shared__ __align__(16) unsigned char memory[];
    const int block_filters = static_cast<int>(blockDim.x) / WARP * OWN, weight_row = block_filters + 4;
    T *weights = reinterpret_cast<T *>(memory), *image = weights + p.channels * SIDE * SIDE * weight_row;
    unsigned block = blockIdx.x;
    const int first_filter = static_cast<int>(block % p.filter_blocks) * block_filters;
    block /= p.filter_blocks;
    const int first_column = static_cast<int>(block % p.blocks_across) * ACROSS;
    block /= p.blocks_across;
    const int first = static_cast<int>(block % p.blocks_down) * DOWN * p.turns,
              n = static_cast<int>(block / p.blocks_down);

    wait_and_launch_dependent_grids();
    const int depth = p.channels * SIDE * SIDE;
#pragma unroll 4
    for (int e = threadIdx.x; e < depth * block_filters; e += blockDim.x) {
        int filter = e / depth, tap = e - filter * depth;
        bool exists = first_filter + filter < p.filters;
        copy_async_number(weights + tap * weight_row + filter,
                          exists ? p.w + static_cast<int64_t>(first_filter) * depth + e : p.w, exists);
    }
    const T *x = p.x + static_cast<int64_t>(n) * p.channels * p.height * p.width;
    const int left = first_column * STEP - p.padding[1];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, across = lane % 8 * OWN_PIXELS, down = lane / 8;
    for (int turn = 0, first_row = first; turn < p.turns && first_row < p.out_height; turn++, first_row += DOWN) {
        const int top = first_row * STEP - p.padding[0];
        if (turn > 0) __syncthreads(); /* all threads have read the previous rectangle */
#pragma unroll 4
        for (int e = threadIdx.x; e < p.channels * sizes::ROWS * sizes::ROW; e += blockDim.x) {
            int column = e % sizes::ROW, rest = e / sizes::ROW, row = rest % sizes::ROWS, c = rest / sizes::ROWS;
            bool inside = static_cast<unsigned>(top + row) < static_cast<unsigned>(p.height) &&
                          static_cast<unsigned>(left + column) < static_cast<unsigned>(p.width);
            copy_async_number(
                image + e, inside ? x + (static_cast<int64_t>(c) * p.height + top + row) * p.width + left + column : x,
                inside);
        }
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();

        const T *from = image + down * STEP * sizes::ROW + across * STEP, *own = weights + warp * OWN;
        T sum[OWN][OWN_PIXELS] = {};
#pragma unroll 1
        for (int c = 0; c < p.channels; c++, from += sizes::ROWS * sizes::ROW) {
#pragma unroll(SIDE < 5 ? SIDE : 1)
            for (int r = 0; r < SIDE; r++) {
                T pixel[(sizes::OWN + 3) / 4 * 4];
#pragma unroll
                for (int j = 0; j < (sizes::OWN + 3) / 4; j++)
                    *reinterpret_cast<stem_quad<T> *>(pixel + 4 * j) =
                        *reinterpret_cast<const stem_quad<T> *>(from + r * sizes::ROW + 4 * j);
#pragma unroll
                for (int s = 0; s < SIDE; s++, own += weight_row) {
                    stem_quad<T> operand[OWN / 4];
#pragma unroll
                    for (int i = 0; i < OWN / 4; i++) operand[i] = *reinterpret_cast<const stem_quad<T> *>(own + 4 * i);
#pragma unroll
                    for (int i = 0; i < OWN; i++) {
#pragma unroll
                        for (int j = 0; j < OWN_PIXELS; j++)
                            sum[i][j] += operand[i / 4].at[i % 4] * pixel[j * STEP + s];
                    }
                }
            }
        }
        const int row = first_row + down, column = first_column + across;
        if (row >= p.out_height || column >= p.out_width) continue;
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
    return stem_sizes<SIDE, STEP>::image(channels) + stem_sizes<SIDE, STEP>::weights(channels, filters_of(g));
}

/* Call `function` with window and stride as constants; return `otherwise` where there is no kernel for them. */
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

extern "C" bool cuda_stem_channels_fit(const sdlf_calculator *base, const cuda_conv2d *g, sdlf_dtype dtype)
{
    int64_t most = reinterpret_cast<const cuda_calculator *>(base)->shared_most;
    int64_t size = static_cast<int64_t>(sdlf_dtype_size(dtype));
    return with_window(g->window.size[0], g->window.stride[0], false, [&](auto side, auto step) {
        return shared_numbers<decltype(side)::value, decltype(step)::value>(*g) * size <= most;
    });
}

template <typename T, int SIDE, int STEP>
static sdlf_status launch(const cuda_calculator *calculator, stem_problem<T> p, const cuda_conv2d &g)
{
    int filters = filters_of(g);
    p.blocks_across = (p.out_width + ACROSS - 1) / ACROSS;
    p.blocks_down = (p.out_height + DOWN - 1) / DOWN;
    p.filter_blocks = (p.filters + filters - 1) / filters;
    int64_t blocks = g.batch * p.blocks_across * p.blocks_down * p.filter_blocks;
    int64_t bytes = shared_numbers<SIDE, STEP>(g) * static_cast<int64_t>(sizeof(T));
    bool many = blocks > 2 * calculator->multiprocessors;
    p.turns = 1;
    while (p.turns < MOST_TURNS && blocks / (2 * p.turns) > ENOUGH * calculator->multiprocessors) p.turns *= 2;
    p.blocks_down = (p.blocks_down + p.turns - 1) / p.turns;
    blocks = g.batch * p.blocks_across * p.blocks_down * p.filter_blocks;
    auto kernel = many ? stem_channels<T, SIDE, STEP, 8> : stem_channels<T, SIDE, STEP, 4>;
    sdlf_status status = allow_shared(kernel, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(blocks)),
                      dim3(static_cast<unsigned>(filters / (many ? 8 : 4) * WARP)), static_cast<int>(bytes), p);
    return cuda_check_launch("conv2d, few channels");
}

template <typename T> static sdlf_status run(const cuda_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    stem_problem<T> p = stem_problem_of<T>(op, g);
    return with_window(g.window.size[0], g.window.stride[0], SDLF_OK, [&](auto size, auto step) {
        return launch<T, decltype(size)::value, decltype(step)::value>(calculator, p, g);
    });
}

extern "C" sdlf_status conv2d_stem_channels_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return op->out[0].dtype == SDLF_FLOAT32 ? run<float>(calculator, op) : run<double>(calculator, op);
}
