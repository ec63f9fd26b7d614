/* SPDX-License-Identifier: MIT */
/* arg_reduce: y[o,i] = the index j of the largest (or smallest) of x[o,j,i]. Reads x once.
 *
 * As in reduce/reduce.cu, the axis is split into parts if outputs are few: each writes its first candidate to the workspace, and one warp per
 * output combines them. Columns (inner >= 32): a block of 32 x 8 threads computes 32 adjacent outputs i of one o and a part, so that loads along i
 * coalesce. Lines (otherwise): one warp per output and part, one block if lines are long, one thread if they are short. Ties are decided by index,
 * so the order of comparisons does not matter. */
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/reduce/candidates.cuh"

enum { COLUMNS = 32, ROWS = 8, THREADS = 256, WARP = 32, SHORT = 64, LONG = 2048, BLOCKS = 2048 };

struct cut {
    int64_t outer, length, inner;
    int64_t each; /* of the axis, per part */
    int parts;
};

static cut cut_of(const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    int axis = op->arg_reduce.axis;
    cut c = {};
    c.outer = sdlf_shape_span(x.shape, 0, axis);
    c.length = x.shape.dim[axis];
    c.inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    bool columns = c.inner >= COLUMNS;
    int64_t blocks = columns ? c.outer * ((c.inner + COLUMNS - 1) / COLUMNS) : c.outer * c.inner;
    int64_t parts = blocks > 0 ? BLOCKS / blocks : 1, least = columns ? 8 * ROWS : 8 * THREADS;
    if (parts > c.length / least) parts = c.length / least;
    if (parts < 1) parts = 1;
    c.each = (c.length + parts - 1) / parts;
    c.parts = c.each > 0 ? static_cast<int>((c.length + c.each - 1) / c.each) : 1;
    return c;
}

extern "C" int64_t arg_reduce_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    const cut c = cut_of(op);
    return c.parts > 1 ? c.parts * c.outer * c.inner * static_cast<int64_t>(sizeof(candidate<double>)) : 0;
}

/* The first candidate among the elements j = first, first + step, ... before `end` of a line. */
template <typename T, typename Index>
static __device__ __forceinline__ candidate<T, Index> first_of(const T *line, int64_t inner, Index first, Index end,
                                                               Index step, const sdlf_arg_reduce_options &options)
{
    candidate<T, Index> best = {T(0), -1};
#pragma unroll 8
    for (Index j = first; j < end; j += step) {
        candidate<T, Index> next = {line[j * inner], j};
        if (beats(next, best, options)) best = next;
    }
    return best;
}

/* Store a part's candidate in the workspace, or the result in y. */
template <typename T, typename Index>
static __device__ __forceinline__ void put(const cut &c, int64_t *y, candidate<T> *parts, int64_t e,
                                           const candidate<T, Index> &best)
{
    if (c.parts > 1)
        parts[blockIdx.y * c.outer * c.inner + e] = {best.value, best.index};
    else
        y[e] = best.index;
}

/* ---- kernels; grid: x over outputs, y over parts ---- */

/* Tiles of 32 outputs are linearised over all o: tile t is tile t % tiles of o = t / tiles. */
template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS)
    arg_columns(const T *x, int64_t *y, candidate<T> *parts, cut c, sdlf_arg_reduce_options options)
{
    __shared__ candidate<T, Index> lines[ROWS][COLUMNS];
    int64_t tiles = (c.inner + COLUMNS - 1) / COLUMNS, first = blockIdx.y * c.each, end = min(first + c.each, c.length);
    for (int64_t tile = blockIdx.x; tile < c.outer * tiles; tile += gridDim.x) {
        int64_t o = tile / tiles, i = tile % tiles * COLUMNS + threadIdx.x;
        candidate<T, Index> best = {T(0), -1};
        if (i < c.inner)
            best = first_of<T, Index>(x + o * c.length * c.inner + i, c.inner, static_cast<Index>(first + threadIdx.y),
                                      static_cast<Index>(end), ROWS, options);
        lines[threadIdx.y][threadIdx.x] = best;
        __syncthreads();
        if (threadIdx.y == 0 && i < c.inner) {
            for (int line = 1; line < ROWS; line++) {
                if (beats(lines[line][threadIdx.x], best, options)) best = lines[line][threadIdx.x];
            }
            put(c, y, parts, o * c.inner + i, best);
        }
        __syncthreads();
    }
}

/* LANES: threads per line, 32 or all of the block. */
template <typename T, typename Index, int LANES>
static __global__ void __launch_bounds__(THREADS)
    arg_lines(const T *x, int64_t *y, candidate<T> *parts, cut c, sdlf_arg_reduce_options options)
{
    __shared__ candidate<T, Index> warps[THREADS / WARP];
    int lane = threadIdx.x % LANES;
    int64_t first = blockIdx.y * c.each, end = min(first + c.each, c.length), outputs = c.outer * c.inner;
    for (int64_t e = grid_first() / LANES; e < outputs; e += grid_step() / LANES) {
        const T *line = x + e / c.inner * c.length * c.inner + e % c.inner;
        candidate<T, Index> best = first_of<T, Index>(line, c.inner, static_cast<Index>(first + lane),
                                                      static_cast<Index>(end), LANES, options);
        best = first_of_warp(best, options);
        if (LANES > WARP) {
            __syncthreads();
            if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = best;
            __syncthreads();
            for (int warp = 1; lane == 0 && warp < THREADS / WARP; warp++) {
                if (beats(warps[warp], best, options)) best = warps[warp];
            }
        }
        if (lane == 0) put(c, y, parts, e, best);
    }
}

template <typename T>
static __global__ void arg_threads(const T *x, int64_t *y, int64_t count, cut c, sdlf_arg_reduce_options options)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        const T *line = x + e / c.inner * c.length * c.inner + e % c.inner;
        y[e] = first_of<T, int64_t>(line, c.inner, 0, c.length, 1, options).index;
    }
}

/* One warp per output. */
template <typename T>
static __global__ void arg_finish(const candidate<T> *parts, int64_t *y, cut c, sdlf_arg_reduce_options options)
{
    int64_t outputs = c.outer * c.inner;
    for (int64_t e = grid_first() / WARP; e < outputs; e += grid_step() / WARP) {
        candidate<T> best = {T(0), -1};
        for (int part = threadIdx.x % WARP; part < c.parts; part += WARP) {
            const candidate<T> next = parts[part * outputs + e];
            if (beats(next, best, options)) best = next;
        }
        best = first_of_warp(best, options);
        if (threadIdx.x % WARP == 0) y[e] = best.index;
    }
}

/* ---- launching ---- */

template <typename T, typename Index>
static void launch(const cuda_calculator *calculator, const sdlf_operation *op, const cut &c)
{
    const T *x = data_of<T>(op->in[0]);
    int64_t *y = data_of<int64_t>(op->out[0]), outputs = c.outer * c.inner;
    candidate<T> *parts = static_cast<candidate<T> *>(op->workspace.data);
    cudaStream_t stream = calculator->stream;
    const unsigned count = static_cast<unsigned>(c.parts);
    if (c.inner >= COLUMNS) {
        int64_t tiles = c.outer * ((c.inner + COLUMNS - 1) / COLUMNS);
        dim3 grid(cuda_blocks(calculator, tiles * THREADS, THREADS), count);
        arg_columns<T, Index><<<grid, dim3(COLUMNS, ROWS), 0, stream>>>(x, y, parts, c, op->arg_reduce);
    } else if (c.length < SHORT) {
        arg_threads<T>
            <<<cuda_blocks(calculator, outputs, THREADS), THREADS, 0, stream>>>(x, y, outputs, c, op->arg_reduce);
    } else if (c.length <= LONG) {
        dim3 grid(cuda_blocks(calculator, outputs * WARP, THREADS), count);
        arg_lines<T, Index, WARP><<<grid, THREADS, 0, stream>>>(x, y, parts, c, op->arg_reduce);
    } else {
        dim3 grid(cuda_blocks(calculator, outputs * THREADS, THREADS), count);
        arg_lines<T, Index, THREADS><<<grid, THREADS, 0, stream>>>(x, y, parts, c, op->arg_reduce);
    }
    if (c.parts > 1)
        arg_finish<T>
            <<<cuda_blocks(calculator, outputs * WARP, THREADS), THREADS, 0, stream>>>(parts, y, c, op->arg_reduce);
}

extern "C" sdlf_status arg_reduce_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const cut c = cut_of(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        if (c.length <= INT32_MAX - 8 * THREADS) /* so that no index exceeds 32 bits */
            launch<T, int>(calculator, op, c);
        else
            launch<T, int64_t>(calculator, op, c);
    });
    return cuda_check_launch("arg_reduce");
}
