/* SPDX-License-Identifier: MIT */
/* The rest of gemm_backward_sgd after cuBLAS has computed the GEMMs, including v = momentum v + g.
 *
 * Weights: a grid-stride loop over vectors of N elements: v += decay w; w -= rate v. Reads w and v, writes w, and v if there is decay.
 * Biases: a block sums 32 N columns of dy, N to a thread; each of its LINES warps adds every LINES-th row, and their sums are added in order.
 * The rows of large batches are split into parts, one to a block, so that dy is read at the memory's rate: each block stores its sums, and the
 * last one of a group of columns adds them the same way. dy may be in 16-bit storage; sums are in the biases' type. Parts and orders depend only
 * on the shapes, the types and the device. */
#include "calculators/cuda/gemm/backward_sgd.h"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/sgd.cuh"
#include "calculators/cuda/vectorized.cuh"

/* Batches of MANY_ROWS are split into parts of at least LEAST_ROWS, as long as FIT blocks to a multiprocessor hold them all. */
enum { THREADS = 256, COLUMNS = 32, WIDE = 4, MANY_ROWS = 1024, LEAST_ROWS = 64, FIT = 4 };

/* The number of loads that a thread has in flight: of half the size, twice as many. */
template <typename S> constexpr int AHEAD = sizeof(S) == 2 ? 8 : 4;

template <int N, typename T>
static __global__ void follow_velocity(const T *rate, T *w, T *v, int64_t vectors, float decay)
{
    T r = *rate;
    for (int64_t i = grid_first(); i < vectors; i += grid_step()) {
        vec<T, N> weight = read_vec<N>(w, i), velocity = read_vec<N>(v, i);
#pragma unroll
        for (int j = 0; j < N; j++) follow_at(&weight.at[j], &velocity.at[j], r, decay);
        write_vec(w, i, weight);
        if (decay != 0) write_vec(v, i, velocity);
    }
}

/* Returns, in the block's first COLUMNS N threads, the sum of this thread's column of x (rows from `first` to `end`, units). All threads call
 * it; __syncthreads() separates two calls. */
template <int N, int LINES, typename T, typename S>
static __device__ __forceinline__ T sum_column(const S *x, int64_t first, int64_t end, int64_t units)
{
    __shared__ alignas(16) T sums[LINES][COLUMNS * N];
    const int lane = static_cast<int>(threadIdx.x) % COLUMNS, line = static_cast<int>(threadIdx.x) / COLUMNS;
    const int64_t vectors = units / N, u = static_cast<int64_t>(blockIdx.x) * COLUMNS + lane;
    vec<T, N> sum = {};
    const int64_t count = u < vectors ? (end - first - line + LINES - 1) / LINES : 0;
    const S *from = x + ((first + line) * vectors + u) * N;
    constexpr int UNROLL = AHEAD<S>;
#pragma unroll UNROLL
    for (int i = 0; i < count; i++) {
        const vec<S, N> more = read_vec<N>(from, i * LINES * vectors);
#pragma unroll
        for (int j = 0; j < N; j++) sum.at[j] += static_cast<T>(more.at[j]);
    }
    write_vec(sums[line], lane, sum);
    __syncthreads();
    const int column = static_cast<int>(threadIdx.x);
    if (column >= COLUMNS * N) return 0;
    T all = sums[0][column];
    for (int l = 1; l < LINES; l++) all += sums[l][column];
    return all;
}

/* Grid: groups of COLUMNS N columns, parts. `sums` (parts, units) is not used if there is one part. */
template <int N, int LINES, typename S, typename T>
static __global__ void __launch_bounds__(COLUMNS *LINES, LINES == 32 ? 1 : FIT)
    move_biases(const S *dy, const T *rate, T *b, T *v, int64_t rows, int64_t units, sdlf_sgd_rule rule, T *sums,
                unsigned *tickets)
{
    constexpr int STEP = AHEAD<S> * LINES; /* rows of a part are a multiple of it, except the last one's */
    const int64_t parts = gridDim.y, part = blockIdx.y, steps = (rows + STEP - 1) / STEP;
    const int64_t first = steps * part / parts * STEP, end = min(steps * (part + 1) / parts * STEP, rows);
    const int64_t u = static_cast<int64_t>(blockIdx.x) * COLUMNS * N + threadIdx.x;
    const bool mine = threadIdx.x < COLUMNS * N && u < units;
    T sum = sum_column<N, LINES, T>(dy, first, end, units);
    if (parts > 1) {
        if (mine) sums[part * units + u] = sum;
        if (!is_last_block(tickets + blockIdx.x, static_cast<int>(parts))) return;
        sum = sum_column<N, LINES, T>(sums, 0, parts, units);
    }
    if (mine) move(b[u], v[u], sum, *rate, rule, rule.bias_decay);
}

/* Does not decrease as the batch grows, so that the workspace of a full batch is enough for a smaller one. */
static int64_t parts_of(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const int64_t rows = op->in[1].shape.dim[0], units = op->in[1].shape.dim[1];
    if (rows < MANY_ROWS || units > static_cast<int64_t>(CUDA_TICKETS) * COLUMNS) return 1;
    const int64_t most = FIT * calculator->multiprocessors / cuda_ceil_div(units, COLUMNS * WIDE);
    const int64_t parts = rows / LEAST_ROWS < most ? rows / LEAST_ROWS : most;
    return parts > 1 ? parts : 1;
}

extern "C" int64_t cuda_move_biases_workspace(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const int64_t parts = sdlf_tensor_present(&op->out[3]) ? parts_of(calculator, op) : 1;
    return parts > 1 ? parts * sdlf_tensor_bytes(&op->out[3]) : 0;
}

extern "C" sdlf_status cuda_follow_velocity(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        T *w = data_of<T>(op->out[0]), *v = data_of<T>(op->out[1]);
        const int64_t count = sdlf_tensor_count(&op->out[0]);
        const auto follow = [&](auto n) {
            follow_velocity<n.value>
                <<<cuda_blocks(calculator, count / n.value, THREADS), THREADS, 0, calculator->stream>>>(
                    data_of<T>(op->in[2]), w, v, count / n.value, gemm_backward_sgd_options_of(op)->sgd.decay);
        };
        with_vec_width(count, follow, w, v);
    });
    return cuda_check_launch("gemm_backward_sgd");
}

template <int N, int LINES, typename S, typename T>
static void launch_move_biases(const cuda_calculator *calculator, const sdlf_operation *op, T *sums, int64_t parts)
{
    const int64_t rows = op->in[1].shape.dim[0], units = op->in[1].shape.dim[1];
    const dim3 blocks(static_cast<unsigned>(cuda_ceil_div(units, COLUMNS * N)), static_cast<unsigned>(parts));
    move_biases<N, LINES><<<blocks, COLUMNS * LINES, 0, calculator->stream>>>(
        data_of<S>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->out[3]), data_of<T>(op->out[4]), rows, units,
        gemm_backward_sgd_options_of(op)->sgd, sums, calculator->tickets);
}

/* S is the type of dy, T that of everything else. */
template <typename S, typename T>
static void move_biases_from(const cuda_calculator *calculator, const sdlf_operation *op, void *workspace)
{
    const int64_t parts = workspace != nullptr ? parts_of(calculator, op) : 1;
    S *dy = data_of<S>(op->in[1]);
    T *sums = static_cast<T *>(workspace);
    const auto split = [&](auto n) { launch_move_biases<n.value, 8, S>(calculator, op, sums, parts); };
    if (parts > 1)
        with_vec_width(op->in[1].shape.dim[1], split, dy, sums);
    else
        launch_move_biases<1, 32, S>(calculator, op, sums, 1);
}

extern "C" sdlf_status cuda_move_biases(sdlf_calculator *base, const sdlf_operation *op, void *workspace)
{
    if (!sdlf_tensor_present(&op->out[3])) return SDLF_OK;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (op->in[1].dtype == SDLF_FLOAT64)
        move_biases_from<double, double>(calculator, op, workspace);
    else
        with_storage(op->in[1].dtype,
                     [&](auto zero) { move_biases_from<decltype(zero), float>(calculator, op, workspace); });
    return cuda_check_launch("gemm_backward_sgd");
}
