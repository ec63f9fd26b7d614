/* SPDX-License-Identifier: MIT */
/* reduce: y[o,i] = sum | mean | max | sum of squares | min | product over j of x[o,j,i]. Reads x once.
 *
 * If there are fewer outputs than keep a device busy, the axis is split into parts: each writes its partial result to the
 * workspace, and a second kernel combines them in order. Columns (inner >= 32): a block of 32 x 8 threads computes 32 adjacent
 * outputs i of one o and a part, so that loads along i coalesce; its 8 rows of threads have every 8th j. Lines (otherwise): one
 * block per output and part, or one warp if lines are short. Sums and products are double, maxima are in their own type: the
 * bits depend only on the shape.
 *
 * Sums and means of x in 16-bit storage have the same kernels, or for the columns of a matrix, as a bias's gradient is, those of
 * nhwc/column_sums.cuh, whose threads add in float32. y is float32. */
#include <type_traits>

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/column_sums.cuh"

enum { COLUMNS = 32, ROWS = 8, THREADS = 256, WARP = 32, SHORT = 2048, BLOCKS = 2048, MANY = 128 };

/* ---- combining two values ---- */

/* The accumulator type; a maximum is one of the elements, and keeps their type. */
template <typename T, sdlf_reduction FUNCTION> using wide = std::conditional_t<FUNCTION == SDLF_REDUCE_MAX, T, double>;

/* The identity element of the reduction. A minimum is computed as the maximum of the negated values. */
template <sdlf_reduction FUNCTION> static __device__ __forceinline__ double start_of()
{
    if (FUNCTION == SDLF_REDUCE_PRODUCT) return 1;
    return FUNCTION == SDLF_REDUCE_MAX ? -INFINITY : 0;
}

template <sdlf_reduction FUNCTION, typename W> static __device__ __forceinline__ W merge(W a, W b)
{
    if (FUNCTION == SDLF_REDUCE_PRODUCT) return a * b;
    if (FUNCTION == SDLF_REDUCE_MAX) return b > a || b != b ? b : a;
    return a + b;
}

template <sdlf_reduction FUNCTION, typename W> static __device__ __forceinline__ W taken(W value, bool negated)
{
    if (FUNCTION == SDLF_REDUCE_SUM_SQUARES) return value * value;
    return FUNCTION == SDLF_REDUCE_MAX && negated ? -value : value;
}

/* ---- how x is split ---- */

struct reduction {
    int64_t outer, length, inner;
    int64_t each; /* of the axis, per part */
    int parts;
    bool negated; /* a minimum */
    double share; /* factor of the result: 1 / length for a mean */
};

static reduction reduction_of(const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    int axis = op->reduce.axis;
    reduction r = {};
    r.outer = sdlf_shape_span(x.shape, 0, axis);
    r.length = x.shape.dim[axis];
    r.inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    int64_t blocks = r.inner >= COLUMNS ? r.outer * ((r.inner + COLUMNS - 1) / COLUMNS) : r.outer * r.inner;
    int64_t parts = blocks > 0 ? BLOCKS / blocks : 1, least = r.inner >= COLUMNS ? 8 * ROWS : 8 * THREADS;
    if (parts > r.length / least) parts = r.length / least;
    if (parts < 1) parts = 1;
    r.each = (r.length + parts - 1) / parts;
    r.parts = r.each > 0 ? static_cast<int>((r.length + r.each - 1) / r.each) : 1;
    r.negated = op->reduce.function == SDLF_REDUCE_MIN;
    r.share = op->reduce.function == SDLF_REDUCE_MEAN ? 1.0 / static_cast<double>(r.length) : 1;
    return r;
}

/* ---- columns of a matrix in 16-bit storage ---- */

static bool is_stored(const sdlf_operation *op)
{
    return sdlf_operation_storage(op) != SDLF_NONE;
}

/* True if nhwc/column_sums.cuh takes them; a group of at least 8 columns has a ticket. */
static bool sums_columns(const sdlf_operation *op, const reduction &r)
{
    return is_stored(op) && r.outer == 1 && r.length > 0 && r.inner > 0 && r.inner % VECTOR == 0 &&
           r.inner / VECTOR <= CUDA_TICKETS;
}

template <typename T> struct column_values {
    static constexpr int UNROLL = 4;
    const T *x;
    struct channel_numbers {
    };
    __device__ __forceinline__ channel_numbers read(int) const
    {
        return {};
    }
    typedef bits8<T> loaded;
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return load_bits8(x, i);
    }
    __device__ __forceinline__ void add(const channel_numbers &, const loaded &in, float2 (&sums)[VECTOR]) const
    {
        const float8 values = unpack8<T>(in);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sums[v].x += values.at[v];
    }
};

struct column_result {
    float *y;
    double share;
    __device__ __forceinline__ void take(int64_t i, double2 sum) const
    {
        y[i] = static_cast<float>(share * sum.x);
    }
};

extern "C" bool reduce_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return !is_stored(op) || op->reduce.function == SDLF_REDUCE_SUM || op->reduce.function == SDLF_REDUCE_MEAN;
}

extern "C" int64_t reduce_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    const reduction r = reduction_of(op);
    if (sums_columns(op, r)) return sums_bytes(sums_cut_of(r.length, r.inner));
    return r.parts > 1 ? r.parts * r.outer * r.inner * static_cast<int64_t>(sizeof(double)) : 0;
}

/* Store a part's result in the workspace, or the only one in y. */
template <typename T>
static __device__ __forceinline__ void put(const reduction &r, T *y, double *sums, int part, int64_t e, double value)
{
    if (r.parts > 1)
        sums[part * r.outer * r.inner + e] = value;
    else
        y[e] = static_cast<T>(r.negated ? -value : r.share * value);
}

/* ---- kernels; S is the type of x, T that of y; grid: x over outputs, y over parts ---- */

/* Tiles of 32 outputs are linearised over all o: tile t is tile t % tiles of o = t / tiles. */
template <typename S, typename T, sdlf_reduction FUNCTION>
static __global__ void __launch_bounds__(THREADS) reduce_columns(const S *x, T *y, double *sums, reduction r)
{
    using W = wide<T, FUNCTION>;
    __shared__ W lines[ROWS][COLUMNS];
    int64_t tiles = (r.inner + COLUMNS - 1) / COLUMNS, first = blockIdx.y * r.each, end = min(first + r.each, r.length);
    for (int64_t tile = blockIdx.x; tile < r.outer * tiles; tile += gridDim.x) {
        int64_t o = tile / tiles, i = tile % tiles * COLUMNS + threadIdx.x;
        const S *from = x + o * r.length * r.inner + i;
        W mine = static_cast<W>(start_of<FUNCTION>());
        if (i < r.inner) {
#pragma unroll 8
            for (int64_t j = first + threadIdx.y; j < end; j += ROWS)
                mine = merge<FUNCTION>(mine,
                                       taken<FUNCTION>(static_cast<W>(static_cast<T>(from[j * r.inner])), r.negated));
        }
        lines[threadIdx.y][threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.y == 0 && i < r.inner) {
            for (int line = 1; line < ROWS; line++) mine = merge<FUNCTION>(mine, lines[line][threadIdx.x]);
            put(r, y, sums, static_cast<int>(blockIdx.y), o * r.inner + i, mine);
        }
        __syncthreads();
    }
}

/* LANES: threads per line, 32 or all of the block. */
template <typename S, typename T, sdlf_reduction FUNCTION, int LANES>
static __global__ void __launch_bounds__(THREADS) reduce_lines(const S *x, T *y, double *sums, reduction r)
{
    using W = wide<T, FUNCTION>;
    __shared__ W warps[THREADS / WARP];
    int lane = threadIdx.x % LANES;
    int64_t first = blockIdx.y * r.each, end = min(first + r.each, r.length), outputs = r.outer * r.inner;
    for (int64_t e = grid_first() / LANES; e < outputs; e += grid_step() / LANES) {
        const S *from = x + e / r.inner * r.length * r.inner + e % r.inner;
        W mine = static_cast<W>(start_of<FUNCTION>());
#pragma unroll 8
        for (int64_t j = first + lane; j < end; j += LANES)
            mine = merge<FUNCTION>(mine, taken<FUNCTION>(static_cast<W>(static_cast<T>(from[j * r.inner])), r.negated));
        for (int step = WARP / 2; step > 0; step /= 2)
            mine = merge<FUNCTION>(mine, __shfl_xor_sync(0xffffffffu, mine, step));
        if (LANES > WARP) {
            __syncthreads();
            if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = mine;
            __syncthreads();
            for (int warp = 1; lane == 0 && warp < THREADS / WARP; warp++) mine = merge<FUNCTION>(mine, warps[warp]);
        }
        if (lane == 0) put(r, y, sums, static_cast<int>(blockIdx.y), e, mine);
    }
}

template <typename T, sdlf_reduction FUNCTION>
static __global__ void finish_parts(const double *sums, T *y, reduction r)
{
    int64_t outputs = r.outer * r.inner;
    for (int64_t e = grid_first(); e < outputs; e += grid_step()) {
        double all = sums[e];
        for (int part = 1; part < r.parts; part++) all = merge<FUNCTION>(all, sums[part * outputs + e]);
        y[e] = static_cast<T>(r.negated ? -all : r.share * all);
    }
}

/* The same for many parts: one warp per output, whose lanes have every 32nd part. */
template <typename T, sdlf_reduction FUNCTION>
static __global__ void finish_many_parts(const double *sums, T *y, reduction r)
{
    int64_t outputs = r.outer * r.inner;
    for (int64_t e = grid_first() / WARP; e < outputs; e += grid_step() / WARP) {
        double all = start_of<FUNCTION>();
#pragma unroll 8
        for (int part = threadIdx.x % WARP; part < r.parts; part += WARP)
            all = merge<FUNCTION>(all, sums[part * outputs + e]);
        for (int step = WARP / 2; step > 0; step /= 2)
            all = merge<FUNCTION>(all, __shfl_xor_sync(0xffffffffu, all, step));
        if (threadIdx.x % WARP == 0) y[e] = static_cast<T>(r.negated ? -all : r.share * all);
    }
}

/* ---- launching ---- */

template <typename S, typename T, sdlf_reduction FUNCTION>
static void launch(const cuda_calculator *calculator, const sdlf_operation *op, const reduction &r)
{
    const S *x = data_of<S>(op->in[0]);
    T *y = data_of<T>(op->out[0]);
    double *sums = static_cast<double *>(op->workspace.data);
    cudaStream_t stream = calculator->stream;
    int64_t outputs = r.outer * r.inner;
    unsigned parts = static_cast<unsigned>(r.parts);
    if (r.inner >= COLUMNS) {
        int64_t tiles = r.outer * ((r.inner + COLUMNS - 1) / COLUMNS);
        dim3 grid(cuda_blocks(calculator, tiles * THREADS, THREADS), parts);
        reduce_columns<S, T, FUNCTION><<<grid, dim3(COLUMNS, ROWS), 0, stream>>>(x, y, sums, r);
    } else if (r.length <= SHORT) {
        dim3 grid(cuda_blocks(calculator, outputs * WARP, THREADS), parts);
        reduce_lines<S, T, FUNCTION, WARP><<<grid, THREADS, 0, stream>>>(x, y, sums, r);
    } else {
        dim3 grid(cuda_blocks(calculator, outputs * THREADS, THREADS), parts);
        reduce_lines<S, T, FUNCTION, THREADS><<<grid, THREADS, 0, stream>>>(x, y, sums, r);
    }
    if (r.parts >= MANY)
        finish_many_parts<T, FUNCTION>
            <<<cuda_blocks(calculator, outputs * WARP, THREADS), THREADS, 0, stream>>>(sums, y, r);
    else if (r.parts > 1)
        finish_parts<T, FUNCTION><<<cuda_blocks(calculator, outputs, THREADS), THREADS, 0, stream>>>(sums, y, r);
}

/* Sums and means. */
static void launch_stored(const cuda_calculator *calculator, const sdlf_operation *op, const reduction &r)
{
    with_storage(op->in[0].dtype, [&](auto zero) {
        using S = decltype(zero);
        if (sums_columns(op, r))
            launch_sums(calculator, sums_cut_of(r.length, r.inner), column_values<S>{data_of<S>(op->in[0])},
                        column_result{data_of<float>(op->out[0]), r.share}, op->workspace.data);
        else
            launch<S, float, SDLF_REDUCE_SUM>(calculator, op, r);
    });
}

extern "C" sdlf_status reduce_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const reduction r = reduction_of(op);
    if (r.outer * r.inner == 0) return SDLF_OK;
    if (is_stored(op)) {
        launch_stored(calculator, op, r);
        return cuda_check_launch("reduce");
    }
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        switch (op->reduce.function) {
        case SDLF_REDUCE_SUM_SQUARES: launch<T, T, SDLF_REDUCE_SUM_SQUARES>(calculator, op, r); break;
        case SDLF_REDUCE_PRODUCT: launch<T, T, SDLF_REDUCE_PRODUCT>(calculator, op, r); break;
        case SDLF_REDUCE_MAX:
        case SDLF_REDUCE_MIN: launch<T, T, SDLF_REDUCE_MAX>(calculator, op, r); break;
        default: launch<T, T, SDLF_REDUCE_SUM>(calculator, op, r); break;
        }
    });
    return cuda_check_launch("reduce");
}
