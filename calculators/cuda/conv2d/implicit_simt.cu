/* SPDX-License-Identifier: MIT */
/* Implicit GEMM on the ordinary cores: float32 and float64, IEEE arithmetic throughout.
 *
 * A block computes ROWS x COLUMNS results, a thread DOWN x ACROSS of them in registers, so that each element read from shared memory is
 * used in DOWN or ACROSS multiplications. k-steps of 16 are in STAGES buffers; where the hardware has cp.async (8.0) they are copied
 * there without passing through registers, while earlier ones are multiplied. Every copy is one element a lane: lanes are neighbours
 * in q (forward, backward input) or along K (a; backward weights). */
#include "calculators/cuda/conv2d/implicit.cuh"
#include "calculators/cuda/mma.cuh"

template <typename T, int ROWS, int COLUMNS, int DOWN, int ACROSS, int STAGES, bool WEIGHTS> struct implicit_simt {
    static constexpr int THREADS = ROWS / DOWN * (COLUMNS / ACROSS);
    static constexpr int STEP = IMPLICIT_DEPTH, A_STRIDE = ROWS + 4, B_STRIDE = COLUMNS + 4;
    static constexpr int A_NUMBERS = ROWS * STEP / THREADS, B_NUMBERS = COLUMNS * STEP / THREADS;

    using position_kind = typename implicit_kinds<WEIGHTS>::position;
    using column_kind = typename implicit_kinds<WEIGHTS>::column;

    struct shared {
        T a[STAGES][STEP * A_STRIDE]; /* transposed: [k position][row] */
        T b[STAGES][STEP * B_STRIDE];
        position_kind position[2][STEP];
        int64_t a_offset[2][WEIGHTS ? STEP : 1];
        column_kind column[WEIGHTS ? COLUMNS : 1];
        int64_t result[COLUMNS];
    };

    /* a: the thread's first row; `rows` remain from the first of the tile on. */
    static __device__ __forceinline__ void load_a(T *to, const T *a, int64_t a_step, int rows, int depth,
                                                  const int64_t *a_offset, int step)
    {
        int local = static_cast<int>(threadIdx.x) % STEP, position = step * STEP + local;
        const T *from = a + (WEIGHTS ? a_offset[local] : position);
#pragma unroll
        for (int i = 0; i < A_NUMBERS; i++, from += a_step) {
            int row = static_cast<int>(threadIdx.x) / STEP + i * (THREADS / STEP);
            bool inside = row < rows && position < depth;
            copy_async_number(to + local * A_STRIDE + row, inside ? from : a, inside);
        }
    }

    /* Forward and backward input: the thread's own pixel, one tap an element. */
    static __device__ __forceinline__ void load_b(T *to, const T *source, const implicit_tap *taps,
                                                  const implicit_pixel *, const implicit_pixel &own)
    {
        const T *from = source;
        int j = static_cast<int>(threadIdx.x) % COLUMNS;
#pragma unroll
        for (int i = 0; i < B_NUMBERS; i++) {
            int local = static_cast<int>(threadIdx.x) / COLUMNS + i * (THREADS / COLUMNS);
            bool inside = (own.outside & taps[local].bits) == 0;
            copy_async_number(to + local * B_STRIDE + j, inside ? from + taps[local].offset : source, inside);
        }
    }

    /* Backward weights: the thread's own pixel of the k-step, one tap an element. */
    static __device__ __forceinline__ void load_b(T *to, const T *source, const implicit_pixel *pixels,
                                                  const implicit_tap *columns, const implicit_tap &)
    {
        int local = static_cast<int>(threadIdx.x) % STEP;
        implicit_pixel own = pixels[local];
        const T *from = kept(source + own.offset);
#pragma unroll
        for (int i = 0; i < B_NUMBERS; i++) {
            int j = static_cast<int>(threadIdx.x) / STEP + i * (THREADS / STEP);
            bool inside = (own.outside & columns[j].bits) == 0;
            copy_async_number(to + local * B_STRIDE + j, inside ? from + columns[j].offset : source, inside);
        }
    }

    /* The thread's first row and column; its others follow in fours, ROWS / (DOWN / 4) and COLUMNS / (ACROSS / 4)
     * apart. A warp is 4 x 8 threads, so that it reads 16 and 32 neighbouring elements at a time. */
    static __device__ __forceinline__ int top()
    {
        constexpr int WARPS_ACROSS = COLUMNS / ACROSS / 8;
        return (static_cast<int>(threadIdx.x) / 32 / WARPS_ACROSS * 4 + static_cast<int>(threadIdx.x) % 32 / 8) * 4;
    }
    static __device__ __forceinline__ int left()
    {
        constexpr int WARPS_ACROSS = COLUMNS / ACROSS / 8;
        return (static_cast<int>(threadIdx.x) / 32 % WARPS_ACROSS * 8 + static_cast<int>(threadIdx.x) % 8) * 4;
    }
    static constexpr int ROW_GAP = ROWS / (DOWN / 4), COLUMN_GAP = COLUMNS / (ACROSS / 4);

    static __device__ __forceinline__ void multiply(T (*sum)[ACROSS], const T *a, const T *b)
    {
#pragma unroll
        for (int local = 0; local < STEP; local++) {
            T first[DOWN], second[ACROSS];
#pragma unroll
            for (int i = 0; i < DOWN; i += 4) read_four(first + i, a + local * A_STRIDE + top() + i / 4 * ROW_GAP);
#pragma unroll
            for (int j = 0; j < ACROSS; j += 4)
                read_four(second + j, b + local * B_STRIDE + left() + j / 4 * COLUMN_GAP);
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
#pragma unroll
                for (int j = 0; j < ACROSS; j++) sum[i][j] += first[i] * second[j];
            }
        }
    }

    static __device__ void run(const cuda_implicit &p)
    {
        __shared__ shared mine;
        implicit_block<T> block(p, ROWS, COLUMNS, STEP);
        if (block.column >= block.columns) return; /* a phase smaller than the largest */
        implicit_positions<T, STEP, WEIGHTS> positions(block);
        column_kind own;
        implicit_column(&own, p, block, WEIGHTS ? 0 : static_cast<int>(threadIdx.x) % COLUMNS);
        if (WEIGHTS) {
            for (int j = static_cast<int>(threadIdx.x); j < COLUMNS; j += THREADS)
                implicit_column(&mine.column[j], p, block, j);
        }
        for (int j = static_cast<int>(threadIdx.x); j < COLUMNS; j += THREADS)
            mine.result[j] = block.result_offset(p, j);
        const T *source = block.source;
        if constexpr (!WEIGHTS) source += own.offset;
        source = kept(source);
        const T *a = kept(block.a + (block.row + static_cast<int>(threadIdx.x) / STEP) * block.a_row);
        int64_t a_step = THREADS / STEP * block.a_row;
        int depth = block.depth, rows = p.rows - block.row;
        T sum[DOWN][ACROSS] = {};
        positions.write(p, block, mine.position[0], mine.a_offset[0]);
        __syncthreads();
        /* The k-step of iteration i is loaded in iteration i, and multiplied STAGES - 1 iterations later. */
        for (int turn = 0; turn < block.last - block.first + STAGES - 1; turn++) {
            int step = block.first + turn;
            if (step < block.last) {
                int stage = turn % STAGES;
                load_a(mine.a[stage], a, a_step, rows, depth, mine.a_offset[turn % 2], step);
                load_b(mine.b[stage], source, mine.position[turn % 2], mine.column, own);
                positions.write(p, block, mine.position[(turn + 1) % 2], mine.a_offset[(turn + 1) % 2]);
            }
            cp_async_commit();
            if (turn >= STAGES - 1) {
                int stage = (turn - (STAGES - 1)) % STAGES;
                multiply(sum, mine.a[stage], mine.b[stage]);
            }
            cp_async_wait<STAGES - 2>(); /* the stage of the next iteration is complete */
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            int row = block.row + top() + i / 4 * ROW_GAP + i % 4;
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                int64_t at = mine.result[left() + j / 4 * COLUMN_GAP + j % 4];
                if (row < p.rows && at >= 0) implicit_store(p, block.group, row, at + row * p.result_row, sum[i][j]);
            }
        }
    }
};

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS, 512 / TILE::THREADS)
    implicit_product(const __grid_constant__ cuda_implicit problem)
{
    TILE::run(problem);
}

template <bool WEIGHTS> static void launch(cudaStream_t stream, const cuda_implicit &p, sdlf_dtype dtype, int tile)
{
    unsigned blocks = static_cast<unsigned>(static_cast<int64_t>(p.row_tiles) * p.column_tiles * p.splits *
                                            p.phases[0] * p.phases[1] * p.groups);
    using large = implicit_simt<float, 128, 128, 8, 8, 2, WEIGHTS>;
    using middle = implicit_simt<float, 64, 128, 8, 8, 3, WEIGHTS>;
    using small = implicit_simt<float, 64, 64, 8, 4, 3, WEIGHTS>;
    using flat = implicit_simt<float, 32, 128, 4, 8, 3, WEIGHTS>;
    using wide = implicit_simt<double, 64, 64, 4, 4, 2, WEIGHTS>;
    if (dtype == SDLF_FLOAT64) {
        implicit_product<wide><<<blocks, wide::THREADS, 0, stream>>>(p);
        return;
    }
    switch (tile) {
    case 0: implicit_product<large><<<blocks, large::THREADS, 0, stream>>>(p); break;
    case 1: implicit_product<middle><<<blocks, middle::THREADS, 0, stream>>>(p); break;
    case 2: implicit_product<small><<<blocks, small::THREADS, 0, stream>>>(p); break;
    default: implicit_product<flat><<<blocks, flat::THREADS, 0, stream>>>(p); break;
    }
}

extern "C" sdlf_status cuda_implicit_simt(sdlf_calculator *base, const cuda_implicit *problem, sdlf_dtype dtype,
                                          int tile)
{
    if (problem->weights)
        launch<true>(cuda_stream(base), *problem, dtype, tile);
    else
        launch<false>(cuda_stream(base), *problem, dtype, tile);
    return cuda_check_launch("conv2d, implicit GEMM");
}
