/* SPDX-License-Identifier: MIT */
/* The weight and bias gradients of conv2d + ReLU + max-pool, and the update by them, in the tensors' own precision.
 *
 * Only marked positions count, at most one of four: 2 N K P Q R R C FLOPs, 320 MFLOP for simple_cnn's layer at batch 1,024. A block
 * processes tiles of images (some rows of windows of one image) for one channel and up to 32 filters. It loads the tile's rows of x,
 * padded with zeros, and its dy and mask to shared memory. A lane is a filter (with up to 16 filters half a warp shares a window, with
 * up to 8 a quarter, and so on): it loads four windows at a time, finds their marked positions and adds dy times the R x R patch there
 * to R R sums in registers. Lanes of a warp process the same window, so that they read at most four neighbouring addresses; each
 * multiply-add reads an element from shared memory, which bounds the kernel: 21 us for the layer above. A window with four marks, as
 * in a blank part of an image, costs no more than one with a single mark: the sums of the four patches are stored beside x. The
 * block's warps are added in shared memory, in order; the partial sums (blocks, K C R R + K) go to the workspace, and a second kernel
 * (conv2d_pool/epilogue.cu) adds them. No atomics: the bits depend only on the shapes and on the device's number of
 * multiprocessors. */
#include "calculators/cuda/conv2d_pool/weights.cuh"
#include "calculators/cuda/launch.cuh"

enum {
    THREADS = 256,
    BLOCKS = 4 /* resident on a multiprocessor; half as many in float64 */,
    WARP = 32,
    FILTERS = 32,
    MOST_WINDOWS = 256
};

template <typename T> struct pool_weights {
    const T *x, *dy;
    const uint8_t *mask;
    T *parts; /* partial sums (blocks, K C R R + K): dw, then db */
    pool_geometry g;
    int tile_rows, tiles; /* rows of windows in a tile; tiles of an image */
    int blocks, lanes;    /* blocks that share the tiles of a channel; lanes that share a window */
    bool quads;           /* dy and mask can be loaded four elements at a time */
};

template <typename T> struct __align__(16) four_of
{
    T at[4];
};

/* Shared memory, in elements of T: the tile's rows of x; for each element of x the sum of it, its neighbours to the
 * right and below, and the one between these; R lines of zeros; dy, with four windows of 8 lanes on different banks;
 * then, as int, the windows' corners in x; and, as bytes, mask. */
template <typename T, int R> struct tile_layout {
    int line, lines, sums_at, zeros_at, x_count, window_line;
    __host__ __device__ tile_layout(const pool_weights<T> &p)
    {
        line = 2 * p.g.out_width + R - 1;
        while (line % 32 < 2 || line % 32 > 30) line++; /* four neighbours on four banks */
        lines = 2 * p.tile_rows + R - 1;
        sums_at = lines * line;
        while (sums_at % 32 != 8) sums_at++; /* other banks than x's four */
        zeros_at = sums_at + lines * line;
        x_count = (zeros_at + (R - 1) * line + R + 3) / 4 * 4;
        window_line = (p.tile_rows * p.g.out_width + 3) / 4 * 4;
        if (window_line / 4 % 2 == 0) window_line += 4;
    }
    __host__ __device__ size_t bytes(int lanes) const
    {
        size_t tiles = (x_count + lanes * window_line) * sizeof(T) + window_line * (sizeof(int) + lanes);
        size_t sums = sizeof(T) * THREADS * (R * R + 2);
        return tiles > sums ? tiles : sums;
    }
};

/* Load image n's dy and mask for filters k0 ... and windows p0 ..., rounded up to a multiple of four; zeros where there are none. */
template <typename T, int R>
static __device__ void load_windows(const pool_weights<T> &p, const tile_layout<T, R> &layout, T *dy, uint8_t *mask,
                                    int n, int k0, int p0, int windows)
{
    const pool_geometry &g = p.g;
    int area = g.out_height * g.out_width, quads = (windows + 3) / 4, filters = min(p.lanes, g.filters - k0);
    int64_t first = (static_cast<int64_t>(n) * g.filters + k0) * area + p0 * g.out_width;
#pragma unroll 4
    for (int e = threadIdx.x; e < p.lanes * quads; e += THREADS) {
        int k = e / quads, w = e % quads * 4;
        int64_t from = first + static_cast<int64_t>(k) * area + w;
        four_of<T> values = {};
        unsigned marks = 0;
        if (p.quads && k < filters) {
            values = *reinterpret_cast<const four_of<T> *>(p.dy + from);
            marks = *reinterpret_cast<const unsigned *>(p.mask + from);
        } else if (k < filters) {
            for (int i = 0; i < 4 && w + i < windows; i++) {
                values.at[i] = p.dy[from + i];
                marks |= static_cast<unsigned>(p.mask[from + i]) << 8 * i;
            }
        }
        *reinterpret_cast<four_of<T> *>(dy + k * layout.window_line + w) = values;
        *reinterpret_cast<unsigned *>(mask + k * layout.window_line + w) = marks;
    }
}

/* Load the rows of channel c of image n that windows of rows p0 ... overlap. One warp a line. */
template <typename T, int R>
static __device__ void load_image(const pool_weights<T> &p, const tile_layout<T, R> &layout, T *x, int n, int c, int p0)
{
    const pool_geometry &g = p.g;
    const T *plane = p.x + static_cast<int64_t>(n * g.channels + c) * g.height * g.width;
#pragma unroll 4
    for (int line = threadIdx.x / WARP; line < layout.lines; line += THREADS / WARP) {
        int row = 2 * p0 - g.top + line;
        for (int column = threadIdx.x % WARP; column < layout.line; column += WARP)
            x[line * layout.line + column] = pool_pixel(plane, g, row, column - g.left);
    }
}

template <typename T, int R>
static __device__ __forceinline__ void add_patch(T (&sums)[R * R + 1], T gradient, const T *patch, int line)
{
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int s = 0; s < R; s++) sums[r * R + s] += gradient * patch[r * line + s];
    }
}

/* Offset of the position of a single mark from its window's corner. */
static __device__ __forceinline__ int position_of(unsigned mark, int line)
{
    return ((mark & 10) != 0 ? 1 : 0) + ((mark & 12) != 0 ? line : 0);
}

/* Grid: x over blocks of tiles, y over groups of filters, z over channels. */
template <typename T, int R>
static __global__ void __launch_bounds__(THREADS, BLOCKS * 4 / sizeof(T)) conv2d_pool_weights(pool_weights<T> p)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const pool_geometry &g = p.g;
    const tile_layout<T, R> layout(p);
    T *x = reinterpret_cast<T *>(memory), *dy = x + layout.x_count;
    int *corner = reinterpret_cast<int *>(dy + p.lanes * layout.window_line);
    uint8_t *mask = reinterpret_cast<uint8_t *>(corner + layout.window_line);
    int k0 = blockIdx.y * FILTERS, c = blockIdx.z, k = threadIdx.x % p.lanes;
    for (int e = layout.zeros_at + threadIdx.x; e < layout.x_count; e += THREADS) x[e] = T(0);
    for (int w = threadIdx.x; w < layout.window_line; w += THREADS) {
        int row = w / g.out_width;
        corner[w] = row < p.tile_rows ? 2 * row * layout.line + 2 * (w % g.out_width) : 0;
    }
    T sums[R * R + 1] = {};
    wait_and_launch_dependent_grids();
    for (int tile = blockIdx.x; tile < g.batch * p.tiles; tile += gridDim.x) {
        int p0 = tile % p.tiles * p.tile_rows, windows = min(p.tile_rows, g.out_height - p0) * g.out_width;
        __syncthreads();
        load_windows(p, layout, dy, mask, tile / p.tiles, k0, p0, windows);
        load_image(p, layout, x, tile / p.tiles, c, p0);
        __syncthreads();
        for (int e = threadIdx.x; e < (layout.lines - 1) * layout.line - 1; e += THREADS)
            x[layout.sums_at + e] = (x[e] + x[e + 1]) + (x[e + layout.line] + x[e + layout.line + 1]);
        __syncthreads();
        for (int w = threadIdx.x / p.lanes * 4; w < windows; w += THREADS / p.lanes * 4) {
            const four_of<T> gradients = *reinterpret_cast<const four_of<T> *>(dy + k * layout.window_line + w);
            unsigned all = *reinterpret_cast<const unsigned *>(mask + k * layout.window_line + w);
            const int4 corners = *reinterpret_cast<const int4 *>(corner + w);
            const int at[4] = {corners.x, corners.y, corners.z, corners.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                unsigned marks = all >> 8 * i & 15, others = marks & (marks - 1);
                T gradient = marks != 0 ? gradients.at[i] : T(0);
                sums[R * R] += gradient;
                int from = marks != 0 ? at[i] + position_of(marks & (0u - marks), layout.line) : layout.zeros_at;
                if (marks == 15) {
                    gradient *= T(0.25);
                    from = at[i] + layout.sums_at;
                    others = 0;
                } else if (others != 0) {
                    gradient /= static_cast<T>(__popc(marks));
                }
                add_patch<T, R>(sums, gradient, x + from, layout.line);
                for (; others != 0; others &= others - 1)
                    add_patch<T, R>(sums, gradient, x + at[i] + position_of(others & (0u - others), layout.line),
                                    layout.line);
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
#pragma unroll 8
        for (int thread = filter; thread < THREADS; thread += p.lanes) sum += shared[thread * (R * R + 1 | 1) + i];
        if (i < R * R)
            parts[(static_cast<int64_t>(k0 + filter) * g.channels + c) * (R * R) + i] = sum;
        else if (c == 0)
            parts[count + k0 + filter] = sum;
    }
}

/* ---- launching ---- */

/* Choose tiles and blocks, so that the numbers of tiles of any two blocks differ by one at most. */
template <typename T> static void cut(pool_weights<T> &p, const cuda_calculator *calculator)
{
    const pool_geometry &g = p.g;
    int64_t others = static_cast<int64_t>(g.channels) * ((g.filters + FILTERS - 1) / FILTERS);
    p.tile_rows = pool_tile_rows(g, others, 16, MOST_WINDOWS * 4 / (int)sizeof(T), calculator->multiprocessors);
    p.tiles = (g.out_height + p.tile_rows - 1) / p.tile_rows;
    p.lanes = FILTERS;
    while (p.lanes / 2 >= g.filters) p.lanes /= 2;
    int64_t most = (BLOCKS * calculator->multiprocessors + others - 1) / others,
            all = static_cast<int64_t>(g.batch) * p.tiles, each = (all + most - 1) / most;
    p.blocks = (int)((all + each - 1) / each);
}

template <typename T> static pool_weights<T> weights_of(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    pool_weights<T> p = {.x = data_of<T>(*operands.x), .dy = data_of<T>(*operands.dy)};
    p.mask = data_of<uint8_t>(*operands.mask);
    p.parts = static_cast<T *>(op->workspace.data);
    p.g = pool_backward_geometry_of(op);
    cut(p, calculator);
    uintptr_t addresses = reinterpret_cast<uintptr_t>(p.dy) | reinterpret_cast<uintptr_t>(p.mask) * 4;
    p.quads = p.g.out_height * p.g.out_width % 4 == 0 && p.tile_rows * p.g.out_width % 4 == 0 && addresses % 16 == 0;
    return p;
}

template <typename T, int R>
static sdlf_status launch(const cuda_calculator *calculator, const sdlf_operation *op, const pool_weights<T> &p)
{
    dim3 grid((unsigned)p.blocks, (unsigned)((p.g.filters + FILTERS - 1) / FILTERS), (unsigned)p.g.channels);
    const int64_t bytes = shared_alone(calculator, static_cast<int64_t>(grid.x) * grid.y * grid.z,
                                       (int64_t)tile_layout<T, R>(p).bytes(p.lanes));
    sdlf_status status = allow_shared(conv2d_pool_weights<T, R>, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, conv2d_pool_weights<T, R>, grid, THREADS, (int)bytes, p);
    status = cuda_check_launch("conv2d_relu_max_pool_backward");
    return status == SDLF_OK ? cuda_conv2d_pool_epilogue(calculator, op, p.blocks) : status;
}

extern "C" sdlf_status cuda_conv2d_pool_weights(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    sdlf_status status = SDLF_OK;
    with_float(op->in[0].dtype, [&](auto zero) {
        const auto p = weights_of<decltype(zero)>(calculator, op);
        with_side(conv2d_pool_options_of(op)->window.size[0],
                  [&](auto side) { status = launch<decltype(zero), side.value>(calculator, op, p); });
    });
    return status;
}

extern "C" int64_t cuda_conv2d_pool_weights_workspace(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    int64_t numbers = sdlf_tensor_count(operands.w) + operands.dy->shape.dim[1], blocks = 0;
    with_float(operands.dy->dtype, [&](auto zero) { blocks = weights_of<decltype(zero)>(calculator, op).blocks; });
    return blocks * numbers * static_cast<int64_t>(sdlf_dtype_size(operands.dy->dtype));
}

extern "C" int64_t cuda_conv2d_pool_weights_memory(const cuda_calculator *calculator, const sdlf_operation *op)
{
    size_t bytes = 0;
    with_float(conv2d_pool_operands_of(op).dy->dtype, [&](auto zero) {
        const auto p = weights_of<decltype(zero)>(calculator, op);
        bytes = tile_layout<decltype(zero), 5>(p).bytes(p.lanes);
    });
    return static_cast<int64_t>(bytes);
}
