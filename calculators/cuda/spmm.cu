/* spmm_csr: y = f(a x + bias), a in compressed rows; no atomics, so that sums have one order.
 *
 * Bytes: offsets, columns and values once (8 R + (4 + T) E), y once, and for each of the E elements a row of x: T E F, which
 * at width 16 in double is 128 bytes an element, ten times everything else. x lies in the second-level cache where it
 * fits (36 MB for 281,903 rows), so its bandwidth is the floor, and the kernel's business is to have many rows of x under way.
 *
 * A group of G lanes has one row of a; a lane holds a vector of 16 bytes of columns (or one column), so that a row of x is
 * read in whole sectors. Four elements' columns, values and rows of x are asked for before the first is used.
 * Rows that are long would keep one group busy while all others are done:
 * - up to MEDIUM elements: the row's group alone;
 * - up to LONG: the whole warp, group h taking elements h, h + groups, ...; sums are added across groups in pairs;
 * - longer: the row is cut at multiples of LONG, where every piece of LONG elements has a warp of its own in the same launch.
 *   Their sums go to the workspace, and a second, small kernel adds those of a row in order. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, WARP = 32, MEDIUM = 64, LONG = 512, FINISH_PIECES = 32, AHEAD = 4 };

template <typename T> struct spmm {
    const int64_t *offsets;
    const int32_t *columns;
    const T *values, *x, *bias; /* bias may be null */
    T *y;
    int64_t rows, stored;
    int width;
    int64_t pieces, piece_blocks;
    int64_t *starts; /* of each piece: the long row that begins in it; -1 */
    T *parts;        /* of each piece two sums: of the long row that comes in, and of the one that begins */
    bool log_softmax;
    sdlf_activation activation;
};

/* VECTOR neighbouring elements, read and written at once. */
template <typename T, int VECTOR> struct alignas(sizeof(T) * VECTOR) pack {
    T at[VECTOR];
};

/* sum += elements 0, step, 2 step, ... below count of those that begin at `columns` and `values`, times a lane's columns of
 * x, which begin at `x`. (32 bits count them: a row that is longer has been cut.) */
template <typename T, int VECTOR>
static __device__ __forceinline__ void add_elements(pack<T, VECTOR> &sum, const int32_t *columns, const T *values,
                                                    const T *x, int width, int count, int step)
{
    for (int e = 0; e < count; e += AHEAD * step) {
        pack<T, VECTOR> row[AHEAD];
        T value[AHEAD];
        int32_t column[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int at = e + i * step < count ? e + i * step : e;
            column[i] = __ldg(columns + at);
            value[i] = __ldg(values + at);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (i == 0 || e + i * step < count)
                row[i] = *reinterpret_cast<const pack<T, VECTOR> *>(x + static_cast<int64_t>(column[i]) * width);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (i > 0 && e + i * step >= count) break;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.at[v] += value[i] * row[i].at[v];
        }
    }
}

/* The sums of a warp's groups together, in every group. */
template <typename T, int VECTOR, int G> static __device__ __forceinline__ void add_groups(pack<T, VECTOR> &sum)
{
#pragma unroll
    for (int step = G; step < WARP; step *= 2) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += __shfl_xor_sync(0xffffffffu, sum.at[v], step);
    }
}

template <typename T, int G> static __device__ __forceinline__ T sum_of_group(T value)
{
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <typename T, int G> static __device__ __forceinline__ T max_of_group(T value)
{
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(0xffffffffu, value, step);
        value = other > value ? other : value;
    }
    return value;
}

/* Bias, then the activation where there is one, of columns [j, j + VECTOR) of a row. */
template <typename T, int VECTOR, bool ACTIVATE>
static __device__ __forceinline__ void finish_columns(pack<T, VECTOR> &sum, const spmm<T> &s, int j)
{
#pragma unroll
    for (int v = 0; v < VECTOR; v++) {
        if (s.bias != nullptr) sum.at[v] += s.bias[j + v];
        if (ACTIVATE) sum.at[v] = activate(s.activation, sum.at[v]);
    }
}

/* log_softmax of a row whose columns are all at hand; every lane of the warp takes part, `there` says whether with columns. */
template <typename T, int VECTOR, int G>
static __device__ __forceinline__ void log_softmax_at_hand(pack<T, VECTOR> &row, bool there)
{
    T largest = -INFINITY, sum = 0;
#pragma unroll
    for (int v = 0; v < VECTOR; v++) largest = there && row.at[v] > largest ? row.at[v] : largest;
    largest = max_of_group<T, G>(largest);
#pragma unroll
    for (int v = 0; v < VECTOR; v++) sum += there ? exp(row.at[v] - largest) : T(0);
    T logarithm = log(sum_of_group<T, G>(sum));
#pragma unroll
    for (int v = 0; v < VECTOR; v++) row.at[v] = (row.at[v] - largest) - logarithm;
}

/* log_softmax of a row of y that its group has written; each lane reads what it wrote itself. */
template <typename T, int VECTOR, int G>
static __device__ __forceinline__ void log_softmax_written(T *y, int width, int lane, bool there)
{
    T largest = -INFINITY, sum = 0;
    for (int j = lane * VECTOR; there && j < width; j += G * VECTOR)
        for (int v = 0; v < VECTOR; v++) largest = y[j + v] > largest ? y[j + v] : largest;
    largest = max_of_group<T, G>(largest);
    for (int j = lane * VECTOR; there && j < width; j += G * VECTOR)
        for (int v = 0; v < VECTOR; v++) sum += exp(y[j + v] - largest);
    T logarithm = log(sum_of_group<T, G>(sum));
    for (int j = lane * VECTOR; there && j < width; j += G * VECTOR)
        for (int v = 0; v < VECTOR; v++) y[j + v] = (y[j + v] - largest) - logarithm;
}

/* ---- rows ---- */

/* ACTIVATE: with an activation. A kernel without one has no use for the registers that the functions take. */
template <typename T, int VECTOR, int G, bool ACTIVATE>
static __device__ __forceinline__ void compute_rows(const spmm<T> &s, int64_t block)
{
    const int lane = threadIdx.x % G, group = threadIdx.x % WARP / G;
    int64_t row = (block * THREADS + threadIdx.x) / G, first = 0, last = 0;
    if (row < s.rows) {
        first = s.offsets[row];
        last = s.offsets[row + 1];
    }
    bool mine = row < s.rows && last - first <= LONG, one_pass = s.width <= G * VECTOR;
    int count = mine ? static_cast<int>(last - first) : 0;
    unsigned shared = __ballot_sync(0xffffffffu, count > MEDIUM);
    for (int j = lane * VECTOR; j - lane * VECTOR < s.width; j += G * VECTOR) {
        bool there = j < s.width;
        pack<T, VECTOR> sum = {};
        if (count <= MEDIUM && there)
            add_elements<T, VECTOR>(sum, s.columns + first, s.values + first, s.x + j, s.width, count, 1);
        for (unsigned left = shared; left != 0;) { /* the warp's medium rows, one after the other */
            int owner = (__ffs(left) - 1) / G;
            left &= ~(((G == WARP ? 0u : 1u << G % WARP) - 1u) << owner * G);
            int64_t from = __shfl_sync(0xffffffffu, first, owner * G) + group;
            int to = __shfl_sync(0xffffffffu, count, owner * G) - group;
            pack<T, VECTOR> part = {};
            if (there) add_elements<T, VECTOR>(part, s.columns + from, s.values + from, s.x + j, s.width, to, WARP / G);
            add_groups<T, VECTOR, G>(part);
            if (group == owner) sum = part;
        }
        if (there) finish_columns<T, VECTOR, ACTIVATE>(sum, s, j);
        if (s.log_softmax && one_pass) log_softmax_at_hand<T, VECTOR, G>(sum, there);
        if (mine && there) *reinterpret_cast<pack<T, VECTOR> *>(s.y + row * s.width + j) = sum;
    }
    if (s.log_softmax && !one_pass) log_softmax_written<T, VECTOR, G>(s.y + row * s.width, s.width, lane, mine);
}

/* ---- pieces of long rows ---- */

/* The row that element e belongs to: the last whose offset is at most e (and that is not empty). */
template <typename T> static __device__ int64_t row_of(const spmm<T> &s, int64_t e)
{
    int64_t low = 0, high = s.rows; /* offsets[low] <= e < offsets[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (__ldg(s.offsets + middle) <= e)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The sum of elements [first, last), by a warp, to `to`. */
template <typename T, int VECTOR, int G>
static __device__ void sum_piece(const spmm<T> &s, int64_t first, int64_t last, T *to)
{
    const int lane = threadIdx.x % G, group = threadIdx.x % WARP / G;
    first += group;
    for (int j = lane * VECTOR; j - lane * VECTOR < s.width; j += G * VECTOR) {
        pack<T, VECTOR> sum = {};
        if (j < s.width)
            add_elements<T, VECTOR>(sum, s.columns + first, s.values + first, s.x + j, s.width,
                                    static_cast<int>(last - first), WARP / G);
        add_groups<T, VECTOR, G>(sum);
        if (group == 0 && j < s.width) *reinterpret_cast<pack<T, VECTOR> *>(to + j) = sum;
    }
}

template <typename T, int VECTOR, int G>
static __device__ __forceinline__ void compute_piece(const spmm<T> &s, int64_t piece)
{
    if (piece >= s.pieces) return;
    int64_t begin = piece * LONG, end = begin + LONG < s.stored ? begin + LONG : s.stored, started = -1;
    int64_t entering = row_of(s, begin), leaving = row_of(s, end - 1);
    int64_t first = s.offsets[entering], last = s.offsets[entering + 1];
    T *parts = s.parts + 2 * piece * s.width;
    if (last - first > LONG) {
        bool starts_here = first == begin;
        if (starts_here) started = entering;
        sum_piece<T, VECTOR, G>(s, begin, last < end ? last : end, starts_here ? parts + s.width : parts);
    }
    if (leaving != entering) {
        first = s.offsets[leaving];
        if (s.offsets[leaving + 1] - first > LONG) {
            started = leaving;
            sum_piece<T, VECTOR, G>(s, first, end, parts + s.width);
        }
    }
    if (threadIdx.x % WARP == 0) s.starts[piece] = started;
}

/* Blocks [0, piece_blocks) take pieces, a warp each; the others take rows. */
template <typename T, int VECTOR, int G, bool ACTIVATE>
static __global__ void __launch_bounds__(THREADS, 4) spmm_rows(const __grid_constant__ spmm<T> s)
{
    if (blockIdx.x < s.piece_blocks)
        compute_piece<T, VECTOR, G>(s, static_cast<int64_t>(blockIdx.x) * (THREADS / WARP) + threadIdx.x / WARP);
    else
        compute_rows<T, VECTOR, G, ACTIVATE>(s, blockIdx.x - s.piece_blocks);
}

/* Add up the parts of the long row that begins in a piece. The block's warps take parts w, w + warps, ... and lay their sums
 * in shared memory; the first warp adds those. Columns go by threads of a warp. */
template <typename T> static __device__ void finish_row(const spmm<T> &s, int64_t piece, int64_t row, T *shared)
{
    enum { WARPS = THREADS / WARP };
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t last = (s.offsets[row + 1] - 1) / LONG; /* the piece that the row ends in */
    T *y = s.y + row * s.width;
    for (int j0 = 0; j0 < s.width; j0 += WARP) {
        int j = j0 + lane;
        T sum = 0;
        if (j < s.width) {
#pragma unroll 4
            for (int64_t p = piece + warp; p <= last; p += WARPS) sum += s.parts[(2 * p + (p == piece)) * s.width + j];
        }
        shared[warp * WARP + lane] = sum;
        __syncthreads();
        if (warp == 0 && j < s.width) {
            pack<T, 1> all = {};
            for (int w = 0; w < WARPS; w++) all.at[0] += shared[w * WARP + lane];
            finish_columns<T, 1, true>(all, s, j); /* identity where there is none */
            y[j] = all.at[0];
        }
        __syncthreads();
    }
    if (s.log_softmax && warp == 0) log_softmax_written<T, 1, WARP>(y, s.width, lane, true);
}

template <typename T> static __global__ void spmm_finish(const __grid_constant__ spmm<T> s)
{
    __shared__ T shared[THREADS];
    for (int i = 0; i < FINISH_PIECES; i++) {
        int64_t piece = static_cast<int64_t>(blockIdx.x) * FINISH_PIECES + i;
        if (piece >= s.pieces) return;
        int64_t row = s.starts[piece]; /* the same for all threads */
        if (row >= 0) finish_row(s, piece, row, shared);
    }
}

/* ---- launching ---- */

static int64_t piece_count(const sdlf_operation *op)
{
    int64_t stored = op->in[0].stored;
    return stored > LONG ? (stored + LONG - 1) / LONG : 0; /* fewer make no long row */
}

static int64_t starts_bytes(int64_t pieces)
{
    return (pieces * static_cast<int64_t>(sizeof(int64_t)) + 63) / 64 * 64;
}

extern "C" int64_t spmm_csr_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    int64_t pieces = piece_count(op), width = op->out[0].shape.dim[1];
    return starts_bytes(pieces) + 2 * pieces * width * static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype));
}

template <typename T, int VECTOR, int G> static void launch(const cuda_calculator *calculator, spmm<T> s)
{
    int64_t blocks = s.piece_blocks + (s.rows * G + THREADS - 1) / THREADS;
    if (s.activation.function == SDLF_IDENTITY)
        spmm_rows<T, VECTOR, G, false><<<static_cast<unsigned>(blocks), THREADS, 0, calculator->stream>>>(s);
    else
        spmm_rows<T, VECTOR, G, true><<<static_cast<unsigned>(blocks), THREADS, 0, calculator->stream>>>(s);
    if (s.pieces > 0)
        spmm_finish<T>
            <<<static_cast<unsigned>((s.pieces + FINISH_PIECES - 1) / FINISH_PIECES), THREADS, 0, calculator->stream>>>(
                s);
}

static bool is_aligned(const void *address)
{
    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

template <typename T> static void launch_for_width(const cuda_calculator *calculator, const spmm<T> &s)
{
    enum { VECTOR = 16 / sizeof(T) };
    bool vectors = s.width % VECTOR == 0 && is_aligned(s.x) && is_aligned(s.y) && is_aligned(s.parts);
    if (vectors && s.width <= 16)
        launch<T, VECTOR, 16 / VECTOR>(calculator, s);
    else if (vectors)
        launch<T, VECTOR, WARP>(calculator, s);
    else if (s.width <= 8)
        launch<T, 1, 8>(calculator, s);
    else
        launch<T, 1, WARP>(calculator, s);
}

extern "C" bool spmm_csr_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return op->out[0].shape.dim[1] <= INT32_MAX - 1024;
}

extern "C" sdlf_status spmm_csr_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &a = op->in[0], &y = op->out[0];
    int64_t pieces = piece_count(op);
    if (sdlf_tensor_count(&y) == 0) return SDLF_OK;
    with_float(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        spmm<T> s = {};
        s.offsets = sdlf_csr_offsets(&a);
        s.columns = sdlf_csr_columns(&a);
        s.values = static_cast<const T *>(sdlf_csr_values(&a));
        s.x = data_of<T>(op->in[1]);
        s.bias = data_of<T>(op->in[2]);
        s.y = data_of<T>(y);
        s.rows = a.shape.dim[0];
        s.stored = a.stored;
        s.width = static_cast<int>(y.shape.dim[1]);
        s.pieces = pieces;
        s.piece_blocks = (pieces + THREADS / WARP - 1) / (THREADS / WARP);
        s.starts = data_of<int64_t>(op->workspace);
        s.parts = reinterpret_cast<T *>(data_of<char>(op->workspace) + starts_bytes(pieces));
        s.log_softmax = op->spmm.log_softmax;
        s.activation = op->spmm.activation;
        launch_for_width(calculator, s);
    });
    return cuda_check_launch("spmm_csr");
}
