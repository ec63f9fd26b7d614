/* The gradients of conv2d + ReLU + max-pool by weights and biases, and their update.
 *
 * Only marked positions count, one of four, at most: 2 N K P Q R R C FLOPs, 320 MFLOP for simple_cnn's layer at batch 1,024.
 * A block takes pieces of images (some rows of windows of one image) for one channel and up to 32 filters. It brings the
 * piece's rows of x, with zeros around them, and its dy and mask, transposed by lines of odd length, to shared memory. A lane
 * is a filter (with up to 16 filters half a warp looks at a window, with up to 8 a quarter, and so on): it takes window after window, finds its marked position and adds dy
 * times the R x R patch there to R R sums in registers. Lanes of a warp look at the same window, so that they read at most
 * four neighbouring addresses. The block's warps add up in shared memory, in order, and leave parts (blocks, K C R R + K) in
 * the workspace; a second kernel adds the blocks in order, and moves the weights where this is an update. No atomics: the
 * bits depend on the shapes and on the device's number of multiprocessors. */
#include "calculators/cuda/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool.h"
#include "calculators/cuda/sgd.cuh"

enum { THREADS = 256, WARP = 32, FILTERS = 32, PIECE_WINDOWS = 64, LINES = 16 };

template <typename T> struct pool_weights {
    const T *x, *dy;
    const uint8_t *mask;
    T *parts; /* (blocks, K C R R + K): dw, then db */
    pool_geometry g;
    int piece_rows, pieces; /* rows of windows in a piece; pieces of an image */
    int blocks, lanes;      /* that share the pieces of a channel; that share a window */
};

/* Shared memory, in elements of T: the piece's rows of x; dy; then, as bytes, mask. */
template <typename T, int R> struct piece_layout {
    int line, lines, window_line;
    __host__ __device__ piece_layout(const pool_weights<T> &p)
    {
        line = 2 * p.g.out_width + R - 1;
        while (line % 32 < 2 || line % 32 > 30) line++; /* four neighbours on four banks */
        lines = 2 * p.piece_rows + R - 1;
        window_line = (p.piece_rows * p.g.out_width) | 1;
    }
    __host__ __device__ int x_count() const
    {
        return line * lines;
    }
    __host__ __device__ size_t bytes() const
    {
        size_t pieces = (x_count() + FILTERS * window_line) * sizeof(T) + FILTERS * window_line;
        size_t sums = sizeof(T) * THREADS * (R * R + 2);
        return pieces > sums ? pieces : sums;
    }
};

/* Image n's rows of x, channel c, that windows of rows p0 ... touch; dy and mask of filters k0 .... A warp a line. */
template <typename T, int R>
static __device__ void load_piece(const pool_weights<T> &p, const piece_layout<T, R> &layout, T *x, T *dy,
                                  uint8_t *mask, int n, int c, int k0, int p0)
{
    const pool_geometry &g = p.g;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const T *plane = p.x + static_cast<int64_t>(n * g.channels + c) * g.height * g.width;
    for (int line = warp; line < layout.lines; line += THREADS / WARP) {
        int row = 2 * p0 - g.top + line;
        for (int column = lane; column < layout.line; column += WARP)
            x[line * layout.line + column] = pool_pixel(plane, g, row, column - g.left);
    }
    int windows = min(p.piece_rows, g.out_height - p0) * g.out_width, filters = min(FILTERS, g.filters - k0);
    int64_t first = (static_cast<int64_t>(n) * g.filters + k0) * g.out_height * g.out_width + p0 * g.out_width;
#pragma unroll 2
    for (int k = warp; k < filters; k += THREADS / WARP) {
        int64_t from = first + static_cast<int64_t>(k) * g.out_height * g.out_width;
#pragma unroll 2
        for (int window = lane; window < windows; window += WARP) {
            dy[k * layout.window_line + window] = p.dy[from + window];
            mask[k * layout.window_line + window] = p.mask[from + window];
        }
    }
}

/* Grid: x over blocks of pieces, y over groups of filters, z over channels. */
template <typename T, int R> static __global__ void __launch_bounds__(THREADS) conv2d_pool_weights(pool_weights<T> p)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const pool_geometry &g = p.g;
    const piece_layout<T, R> layout(p);
    T *x = reinterpret_cast<T *>(memory), *dy = x + layout.x_count();
    uint8_t *mask = reinterpret_cast<uint8_t *>(dy + FILTERS * layout.window_line);
    int k0 = blockIdx.y * FILTERS, c = blockIdx.z, k = threadIdx.x % p.lanes;
    T sums[R * R + 1] = {};
    for (int piece = blockIdx.x; piece < g.batch * p.pieces; piece += gridDim.x) {
        int p0 = piece % p.pieces * p.piece_rows;
        __syncthreads();
        load_piece(p, layout, x, dy, mask, piece / p.pieces, c, k0, p0);
        __syncthreads();
        int windows = min(p.piece_rows, g.out_height - p0) * g.out_width;
        int step = THREADS / p.lanes, row = threadIdx.x / p.lanes / g.out_width,
            column = threadIdx.x / p.lanes % g.out_width;
        for (int w = threadIdx.x / p.lanes; w < windows; w += step, column += step) {
            for (; column >= g.out_width; column -= g.out_width) row++;
            unsigned marks = k0 + k < g.filters ? mask[k * layout.window_line + w] : 0;
            if (marks == 0) continue;
            T gradient = dy[k * layout.window_line + w] / static_cast<T>(__popc(marks));
            const T *corner = x + 2 * row * layout.line + 2 * column;
            for (; marks != 0; marks &= marks - 1) {
                int at = __ffs(static_cast<int>(marks)) - 1;
                const T *patch = corner + (at / 2) * layout.line + at % 2;
#pragma unroll
                for (int r = 0; r < R; r++) {
#pragma unroll
                    for (int s = 0; s < R; s++) sums[r * R + s] += gradient * patch[r * layout.line + s];
                }
                sums[R * R] += gradient;
            }
        }
    }
    __syncthreads();
    T *shared = reinterpret_cast<T *>(memory); /* (THREADS, R R + 1), lines of odd length */
#pragma unroll
    for (int i = 0; i <= R * R; i++) shared[threadIdx.x * (R * R + 1 | 1) + i] = sums[i];
    __syncthreads();
    int64_t count = static_cast<int64_t>(g.filters) * g.channels * R * R;
    T *parts = p.parts + blockIdx.x * (count + g.filters);
    for (int e = threadIdx.x; e < p.lanes * (R * R + 1); e += THREADS) {
        int filter = e / (R * R + 1), i = e % (R * R + 1);
        if (k0 + filter >= g.filters) break;
        T sum = 0;
        for (int thread = filter; thread < THREADS; thread += p.lanes) sum += shared[thread * (R * R + 1 | 1) + i];
        if (i < R * R)
            parts[(static_cast<int64_t>(k0 + filter) * g.channels + c) * (R * R) + i] = sum;
        else if (c == 0)
            parts[count + k0 + filter] = sum;
    }
}

/* Where the sums of the blocks go: to gradients, or into weights. Absent ones are NULL. */
template <typename T> struct pool_finish {
    const T *parts, *rate;
    T *dw, *db, *w, *v, *b, *bv;
    int64_t weights, filters;
    int blocks;
    sdlf_sgd_rule rule;
};

/* A block 32 numbers; its lines of threads add every 16th block's part each, and their sums meet in order. */
template <typename T> static __global__ void __launch_bounds__(WARP *LINES) conv2d_pool_finish(pool_finish<T> f)
{
    __shared__ T lines[LINES][WARP];
    int64_t count = f.weights + f.filters, e = static_cast<int64_t>(blockIdx.x) * WARP + threadIdx.x;
    T sum = 0;
#pragma unroll 4
    for (int block = threadIdx.y; block < f.blocks; block += LINES)
        sum += e < count ? f.parts[block * count + e] : T(0);
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || e >= count) return;
    for (int line = 1; line < LINES; line++) sum += lines[line][threadIdx.x];
    if (e < f.weights) {
        if (f.dw != nullptr) f.dw[e] = sum;
        if (f.w != nullptr) move_at(f.w + e, f.v != nullptr ? f.v + e : nullptr, sum, *f.rate, f.rule, f.rule.decay);
    } else {
        int64_t k = e - f.weights;
        if (f.db != nullptr) f.db[k] = sum;
        if (f.b != nullptr)
            move_at(f.b + k, f.bv != nullptr ? f.bv + k : nullptr, sum, *f.rate, f.rule, f.rule.bias_decay);
    }
}

/* ---- launching ---- */

/* How the pieces are cut: as many rows of windows as make 64 windows, or fewer where that leaves multiprocessors without
 * work; and the blocks that share them, four a multiprocessor at most. */
template <typename T> static void cut(pool_weights<T> &p, const cuda_calculator *calculator)
{
    const pool_geometry &g = p.g;
    int64_t others = static_cast<int64_t>(g.channels) * ((g.filters + FILTERS - 1) / FILTERS);
    p.piece_rows = PIECE_WINDOWS / g.out_width;
    if (p.piece_rows > g.out_height) p.piece_rows = g.out_height;
    if (p.piece_rows < 1) p.piece_rows = 1;
    p.pieces = (g.out_height + p.piece_rows - 1) / p.piece_rows;
    while (p.piece_rows > 1 && g.batch * p.pieces * others < calculator->multiprocessors) {
        p.piece_rows /= 2;
        p.pieces = (g.out_height + p.piece_rows - 1) / p.piece_rows;
    }
    p.lanes = FILTERS;
    while (p.lanes / 2 >= g.filters) p.lanes /= 2;
    int64_t wanted = (4 * calculator->multiprocessors + others - 1) / others,
            all = static_cast<int64_t>(g.batch) * p.pieces;
    p.blocks = (int)(wanted < all ? wanted : all);
}

/* x, w and dy stand at different places in the kinds with and without update. */
struct pool_operands {
    sdlf_tensor x, w, dy, mask;
};

static pool_operands operands_of(const sdlf_operation *op)
{
    if (op->kind == SDLF_CONV2D_RELU_MAX_POOL_BACKWARD) return {op->in[0], op->in[1], op->in[2], op->in[3]};
    return {op->in[0], op->out[0], op->in[1], op->in[2]};
}

template <typename T> static pool_weights<T> weights_of(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const pool_operands operands = operands_of(op);
    pool_weights<T> p = {.x = data_of<T>(operands.x), .dy = data_of<T>(operands.dy)};
    p.mask = data_of<uint8_t>(operands.mask);
    p.parts = static_cast<T *>(op->workspace.data);
    p.g = pool_geometry_of(op, operands.x, operands.dy);
    cut(p, calculator);
    return p;
}

template <typename T> static pool_finish<T> finish_of(const pool_weights<T> &p, const sdlf_operation *op)
{
    const pool_operands operands = operands_of(op);
    pool_finish<T> f = {.parts = p.parts, .blocks = p.blocks};
    f.weights = sdlf_tensor_count(&operands.w);
    f.filters = p.g.filters;
    if (op->kind == SDLF_CONV2D_RELU_MAX_POOL_BACKWARD) {
        f.dw = optional<T>(op->out[0]);
        f.db = optional<T>(op->out[1]);
        return f;
    }
    f.rate = data_of<T>(op->in[3]);
    f.w = data_of<T>(op->out[0]);
    f.v = optional<T>(op->out[1]);
    f.b = optional<T>(op->out[2]);
    f.bv = optional<T>(op->out[3]);
    f.rule = op->conv2d_pool.sgd;
    return f;
}

template <typename T, int R>
static sdlf_status launch(const cuda_calculator *calculator, const pool_weights<T> &p, const pool_finish<T> &f)
{
    const int bytes = (int)piece_layout<T, R>(p).bytes();
    sdlf_status status = allow_shared(conv2d_pool_weights<T, R>, bytes);
    if (status != SDLF_OK) return status;
    dim3 grid((unsigned)p.blocks, (unsigned)((p.g.filters + FILTERS - 1) / FILTERS), (unsigned)p.g.channels);
    conv2d_pool_weights<T, R><<<grid, THREADS, bytes, calculator->stream>>>(p);
    int64_t count = f.weights + f.filters;
    conv2d_pool_finish<T><<<(unsigned)((count + WARP - 1) / WARP), dim3(WARP, LINES), 0, calculator->stream>>>(f);
    return cuda_check_launch("conv2d_relu_max_pool_backward");
}

extern "C" sdlf_status cuda_conv2d_pool_weights(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    sdlf_status status = SDLF_OK;
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        const pool_weights<T> p = weights_of<T>(calculator, op);
        with_side(op->conv2d_pool.window.size[0],
                  [&](auto side) { status = launch<T, side.value>(calculator, p, finish_of(p, op)); });
    });
    return status;
}

extern "C" int64_t cuda_conv2d_pool_weights_workspace(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const pool_operands operands = operands_of(op);
    int64_t numbers = sdlf_tensor_count(&operands.w) + operands.dy.shape.dim[1];
    return weights_of<float>(calculator, op).blocks * numbers * static_cast<int64_t>(sdlf_dtype_size(op->in[0].dtype));
}

extern "C" int64_t cuda_conv2d_pool_weights_memory(const cuda_calculator *calculator, const sdlf_operation *op)
{
    size_t bytes = 0;
    with_float(op->in[0].dtype, [&](auto zero) {
        bytes = piece_layout<decltype(zero), 5>(weights_of<decltype(zero)>(calculator, op)).bytes();
    });
    return static_cast<int64_t>(bytes);
}
