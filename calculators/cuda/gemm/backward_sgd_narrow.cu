/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd for a last layer: U up to 16 units, any batch, float32 in every math mode (the GEMMs are small).
 *
 * A block owns 16 columns i; a thread has one of them and every 32nd row n. It holds w's column (U elements) in registers, and
 * for each of its rows adds x dy to its partial sum of g's column and computes dx. The partial sums of g are added in shared
 * memory, in order. dy is staged through shared memory in pieces of 128 rows, which are loaded, with their x, while the
 * previous piece is processed. Reads x, writes dx: 8 N I bytes, and all of dy for every block. */
#include "calculators/cuda/gemm/backward_sgd.cuh"

enum { COLUMNS = 16, LINES = 32, THREADS = COLUMNS * LINES, PARTS = LINES / 2, PIECE = 128 };

template <int UNITS> struct narrow_memory {
    float dy[PIECE][UNITS];
    float parts[PARTS][UNITS][COLUMNS + 1]; /* a warp's two rows of threads are one part */
    float bias_parts[LINES][UNITS];
};

/* What a thread loads of a piece: elements of dy's rows, UNITS a row, and its own rows of x; zeros past the end. */
template <int UNITS> struct narrow_piece {
    float dy[(PIECE * UNITS + THREADS - 1) / THREADS], x[PIECE / LINES];
};

template <int UNITS>
static __device__ __forceinline__ void read_piece(narrow_piece<UNITS> &piece, const backward_sgd &s, int64_t n0,
                                                  int64_t i)
{
#pragma unroll
    for (int k = 0; k < (PIECE * UNITS + THREADS - 1) / THREADS; k++) {
        int e = threadIdx.y * COLUMNS + threadIdx.x + k * THREADS, u = e % UNITS;
        int64_t n = n0 + e / UNITS;
        piece.dy[k] = n < s.rows && u < s.units ? s.dy[n * s.units + u] : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < PIECE / LINES; k++) {
        int64_t n = n0 + threadIdx.y + k * LINES;
        piece.x[k] = n < s.rows && i < s.inputs ? s.x[n * s.inputs + i] : 0.0f;
    }
}

template <int UNITS>
static __device__ __forceinline__ void write_piece(float (&to)[PIECE][UNITS], const narrow_piece<UNITS> &piece)
{
#pragma unroll
    for (int k = 0; k < (PIECE * UNITS + THREADS - 1) / THREADS; k++) {
        int e = threadIdx.y * COLUMNS + threadIdx.x + k * THREADS;
        if (e < PIECE * UNITS) to[e / UNITS][e % UNITS] = piece.dy[k];
    }
}

/* The sum of `count` parts, added in order. */
static __device__ float reduce_splits(const float *parts, int count, int step)
{
    float sum = 0;
    for (int part = 0; part < count; part++) sum += parts[part * step];
    return sum;
}

template <int UNITS> static __global__ void __launch_bounds__(THREADS) backward_sgd_narrow(backward_sgd s)
{
    __shared__ narrow_memory<UNITS> shared;
    int64_t i = static_cast<int64_t>(blockIdx.x) * COLUMNS + threadIdx.x;
    int line = threadIdx.y;
    bool moves = line < s.units && i < s.inputs; /* this thread updates a weight */
    int64_t at = static_cast<int64_t>(line) * s.inputs + i;
    if (moves) {
        prefetch_line(s.w + at);
        if (s.v != nullptr) prefetch_line(s.v + at);
    }
    wait_and_launch_dependent_grids();
    float w[UNITS] = {}, g[UNITS] = {}, bias = 0, rate = *s.rate, mine = 0, speed = 0;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        if (u < s.units && i < s.inputs) w[u] = s.w[static_cast<int64_t>(u) * s.inputs + i];
    }
    if (moves) {
        mine = s.w[at];
        if (s.v != nullptr) speed = s.v[at];
    }
    narrow_piece<UNITS> piece;
    read_piece<UNITS>(piece, s, 0, i);
    for (int64_t n0 = 0; n0 < s.rows; n0 += PIECE) {
        float x[PIECE / LINES];
        __syncthreads();
        write_piece<UNITS>(shared.dy, piece);
#pragma unroll
        for (int k = 0; k < PIECE / LINES; k++) x[k] = piece.x[k];
        __syncthreads();
        if (n0 + PIECE < s.rows) read_piece<UNITS>(piece, s, n0 + PIECE, i);
#pragma unroll
        for (int k = 0; k < PIECE / LINES; k++) {
            int r = line + k * LINES;
            int64_t n = n0 + r;
            if (n >= s.rows) break;
            float dx = 0;
#pragma unroll
            for (int u = 0; u < UNITS; u++) {
                g[u] += shared.dy[r][u] * x[k];
                dx += shared.dy[r][u] * w[u];
            }
            if (threadIdx.x < UNITS) bias += shared.dy[r][threadIdx.x];
            if (i < s.inputs && s.dx != nullptr) s.dx[n * s.inputs + i] = dx * activation_slope(s.activation, x[k]);
        }
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        float sum = g[u] + __shfl_xor_sync(0xffffffffu, g[u], COLUMNS);
        if (line % 2 == 0) shared.parts[line / 2][u][threadIdx.x] = sum;
    }
    if (threadIdx.x < UNITS) shared.bias_parts[line][threadIdx.x] = bias;
    __syncthreads();
    if (moves) {
        float sum = reduce_splits(&shared.parts[0][line][threadIdx.x], PARTS, UNITS * (COLUMNS + 1));
        move_at(&mine, s.v != nullptr ? &speed : nullptr, sum, rate, s.rule, s.rule.decay);
        s.w[at] = mine;
        if (s.v != nullptr) s.v[at] = speed;
    }
    if (s.b != nullptr && blockIdx.x == 0 && line == LINES - 1 && threadIdx.x < s.units)
        move_bias(s, threadIdx.x, reduce_splits(&shared.bias_parts[0][threadIdx.x], LINES, UNITS), rate);
}

extern "C" sdlf_status cuda_backward_sgd_narrow(sdlf_calculator *base, const sdlf_operation *op)
{
    const backward_sgd s = backward_sgd_of(op);
    const unsigned blocks = (unsigned)((s.inputs + COLUMNS - 1) / COLUMNS);
    const dim3 threads(COLUMNS, LINES);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (s.units <= 4)
        launch_overlapped(calculator, backward_sgd_narrow<4>, blocks, threads, 0, s);
    else if (s.units <= 10)
        launch_overlapped(calculator, backward_sgd_narrow<10>, blocks, threads, 0, s);
    else
        launch_overlapped(calculator, backward_sgd_narrow<NARROW_MOST_UNITS>, blocks, threads, 0, s);
    return cuda_check_launch("gemm_backward_sgd");
}
