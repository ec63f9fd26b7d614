/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd in one pass, on Tensor Cores (see gemm/backward_sgd.h): operands rounded to tf32, float16 or bfloat16.
 *
 * For its tile of w (gemm/backward_sgd_tiles.cuh) a warp computes the gradient g (16,32) = dy^T x, whose accumulators are groups of
 * four adjacent columns, so that w and v are updated in vectors of 16 bytes; and it accumulates dx (MINE,32) += dy w. A block has
 * one barrier a round. Blocks of the same strip split the units between them, so that every multiprocessor has one block, and add
 * up their sums at the end (gemm/backward_sgd_sums.cuh). v, which is not needed again soon, is evicted from the cache before w. */
#include "calculators/cuda/gemm/backward_sgd_sums.cuh"

template <class S> union backward_sgd_memory {
    backward_sgd_tiles<S> tiles;
    backward_sgd_sums<S> sums;
};

/* g of 16 units. dy's fragments are elements (n, u), n indexed by t and u by g. */
template <class S>
static __device__ __forceinline__ void make_gradient(float (&sums)[4][4], const uint32_t (&dy)[S::ROWS][BAND],
                                                     const uint32_t *x, const uint32_t (&held)[S::X_STEPS][4][2])
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int above = t * BAND + (g / 4 ^ turn(t)) * 4 + g % 4, below = (t + 4) * BAND + (g / 4 ^ turn(t + 4)) * 4 + g % 4;
#pragma unroll
    for (int step = 0; step < S::ROWS / 8; step++) {
        const uint32_t *rows = &dy[step * 8][0];
        const uint32_t a[4] = {rows[above], rows[above ^ 8], rows[below], rows[below ^ 8]};
        if constexpr (S::X_SHARED) {
#pragma unroll
            for (int pair = 0; pair < 2; pair++) {
                uint4 b = *reinterpret_cast<const uint4 *>(x + ((step * 2 + pair) * WARP + lane) * 4);
                const uint32_t low[2] = {b.x, b.y}, high[2] = {b.z, b.w};
                mma_tf32(sums[2 * pair], a, low);
                mma_tf32(sums[2 * pair + 1], a, high);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) mma_tf32(sums[j], a, held[step][j]);
        }
    }
}

/* Accumulate the tile's contribution to the warp's rows of dx. */
template <sdlf_math MATH, class S>
static __device__ __forceinline__ void add_input(float (&dx)[S::MINE / 16][4][4], const uint32_t (*dy)[S::ROWS][BAND],
                                                 const float *w, int part)
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, n = part * S::MINE + lane % 16;
#pragma unroll
    for (int k = 0; k < S::UNITS / 8; k++) {
        uint32_t b[4][2];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float *from = w + k * 8 * WIDTH + place_in_tile(t, 2 * j + g / 4) + g % 4;
            b[j][0] = operand_bits<MATH>(from[0]);
            b[j][1] = operand_bits<MATH>(from[4 * WIDTH]);
        }
        const uint32_t *rows = &dy[k / 2][n][((2 * (k % 2) + lane / 16) ^ turn(n)) * 4];
#pragma unroll
        for (int m = 0; m < S::MINE / 16; m++) {
            uint32_t a[4];
            load_matrices(a, rows + m * 16 * BAND);
#pragma unroll
            for (int j = 0; j < 4; j++) mma_tf32(dx[m][j], a, b[j]);
        }
    }
}

/* Update 16 units of w and v. */
static __device__ __forceinline__ void move_tile(const float (&sums)[4][4], const float *w, const float *v,
                                                 const backward_sgd &s, float rate, int u0, int i0)
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int low = 0; low < 2; low++) {
        int u = g + 8 * low;
#pragma unroll
        for (int pair = 0; pair < 2; pair++) {
            int c = 4 * pair + t, i = i0 + 4 * c;
            float4 weight = *reinterpret_cast<const float4 *>(w + place_in_tile(u, c));
            float4 speed = *reinterpret_cast<const float4 *>(v + place_in_tile(u, c));
            move(weight.x, speed.x, sums[2 * pair][2 * low], rate, s.rule, s.rule.decay);
            move(weight.y, speed.y, sums[2 * pair][2 * low + 1], rate, s.rule, s.rule.decay);
            move(weight.z, speed.z, sums[2 * pair + 1][2 * low], rate, s.rule, s.rule.decay);
            move(weight.w, speed.w, sums[2 * pair + 1][2 * low + 1], rate, s.rule, s.rule.decay);
            if (u0 + u >= s.units || i >= s.inputs) continue;
            int64_t at = static_cast<int64_t>(u0 + u) * s.inputs + i;
            *reinterpret_cast<float4 *>(s.w + at) = weight;
            __stcs(reinterpret_cast<float4 *>(s.v + at), speed);
        }
    }
}

/* The biases: one warp per unit, with the same number of units for every block. */
template <class S> static __device__ __forceinline__ void move_biases(const backward_sgd &s, float rate)
{
    if (s.b == nullptr) return;
    int lane = threadIdx.x % WARP, blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
    for (int u = block + threadIdx.x / WARP * blocks; u < s.units; u += S::THREADS / WARP * blocks) {
        float sum = 0;
        for (int n = lane; n < s.rows; n += WARP) sum += s.dy[static_cast<int64_t>(n) * s.units + u];
        for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) move_bias(s, u, sum, rate);
    }
}

template <sdlf_math MATH, class S>
static __global__ void __launch_bounds__(S::THREADS, 1) backward_sgd_tensor(backward_sgd s, backward_sgd_cut cut)
{
    extern __shared__ __align__(128) unsigned char bytes[];
    backward_sgd_memory<S> &memory = *reinterpret_cast<backward_sgd_memory<S> *>(bytes);
    backward_sgd_tiles<S> &tiles = memory.tiles;
    const backward_sgd_place at = backward_sgd_place::of<S>();
    int pair = at.lane * S::STRIPS + at.strip, i0 = blockIdx.x * S::COLUMNS, column = i0 + at.strip * WIDTH;
    int first = cut.tiles * static_cast<int>(blockIdx.y) / cut.splits;
    int count = cut.tiles * (static_cast<int>(blockIdx.y) + 1) / cut.splits - first;
    uint32_t held[S::X_STEPS][4][2];
    float dx[S::MINE / 16][4][4] = {};
    float4 next_dy[S::EACH];
    backward_sgd_x<S> x;
    if (at.part == 0) prefetch_tiles<S>(s, (first + at.lane) * S::UNITS, (first + count) * S::UNITS, column);
    wait_and_launch_dependent_grids();
#pragma unroll
    for (int ahead = 0; ahead < S::STAGES - 1; ahead++) {
        int tile = ahead * S::LANES + at.lane;
        if (tile < count)
            load_tile<S>(tiles.w[pair][ahead], tiles.v[pair][ahead], s, (first + tile) * S::UNITS, column, at.part);
        cp_async_commit();
    }
    read_x<S>(x, s, i0, at.strip);
    read_dy<S>(next_dy, s, first * S::UNITS);
    float rate = *s.rate;
    write_x<MATH, S>(tiles.x, held, x);
    write_dy<MATH, S>(tiles.dy[0], next_dy);
    read_dy<S>(next_dy, s, (first + S::LANES) * S::UNITS);
    move_biases<S>(s, rate);
    int stage = 0, fill = S::STAGES - 1;
    for (int round = 0; round * S::LANES < count; round++) {
        int tile = round * S::LANES + at.lane, ahead = tile + (S::STAGES - 1) * S::LANES;
        cp_async_wait<S::STAGES - 2>();
        __syncthreads();
        if (ahead < count)
            load_tile<S>(tiles.w[pair][fill], tiles.v[pair][fill], s, (first + ahead) * S::UNITS, column, at.part);
        cp_async_commit();
        if (tile < count) {
            const uint32_t(*dy)[S::ROWS][BAND] = &tiles.dy[round % 2][at.lane * S::HALVES];
            const float *w = tiles.w[pair][stage], *v = tiles.v[pair][stage];
            const int mine = at.part * BAND;
            float sums[4][4] = {};
            make_gradient<S>(sums, dy[at.part], tiles.x + (S::X_SHARED ? at.strip * S::ROWS * WIDTH : 0), held);
            if (s.dx != nullptr) add_input<MATH, S>(dx, dy, w, at.part);
            move_tile(sums, w + mine * WIDTH, v + mine * WIDTH, s, rate, (first + tile) * S::UNITS + mine, column);
        }
        write_dy<MATH, S>(tiles.dy[(round + 1) % 2], next_dy);
        read_dy<S>(next_dy, s, (first + (round + 2) * S::LANES) * S::UNITS);
        stage = stage + 1 == S::STAGES ? 0 : stage + 1;
        fill = fill + 1 == S::STAGES ? 0 : fill + 1;
    }
    if (s.dx == nullptr) return;
    __syncthreads();
    finish_input<S>(dx, memory.sums, s, cut, i0);
}

/* Blocks per strip: the number that leaves multiprocessors idle for the least time, with a small penalty for each more. */
template <class S>
static int splits_for(const cuda_calculator *calculator, const backward_sgd &s, int strips, int tiles)
{
    int64_t part = static_cast<int64_t>(s.rows) * s.inputs * (int64_t)sizeof(float);
    int best = 1;
    double least = 1e30;
    for (int splits = 1; splits <= 8 && splits * part <= CUDA_BLAS_WORKSPACE; splits++) {
        if (splits > 1 && (strips > CUDA_TICKETS || tiles < S::LANES * splits)) break;
        int64_t turns =
            (static_cast<int64_t>(strips) * splits + calculator->multiprocessors - 1) / calculator->multiprocessors;
        double time = static_cast<double>(turns) / splits + 0.02 * splits;
        if (time < least) best = splits;
        if (time < least) least = time;
    }
    return best;
}

template <sdlf_math MATH, class S> static sdlf_status launch(const cuda_calculator *calculator, const backward_sgd &s)
{
    const int shared = (int)sizeof(backward_sgd_memory<S>), strips = (s.inputs + S::COLUMNS - 1) / S::COLUMNS;
    backward_sgd_cut cut = {.tiles = (s.units + S::UNITS - 1) / S::UNITS};
    cut.splits = splits_for<S>(calculator, s, strips, cut.tiles);
    cut.cluster = calculator->overlaps;
    cut.parts = static_cast<float *>(calculator->blas_workspace);
    cut.tickets = calculator->tickets;
    sdlf_status status = allow_shared(backward_sgd_tensor<MATH, S>, shared);
    if (status != SDLF_OK) return status;
    launch_cluster(calculator, backward_sgd_tensor<MATH, S>, dim3((unsigned)strips, (unsigned)cut.splits), S::THREADS,
                   shared, dim3(1, cut.cluster ? (unsigned)cut.splits : 1), s, cut);
    return cuda_check_launch("gemm_backward_sgd");
}

/* Three strips per block if a block may use that much shared memory and enough blocks remain, else one. */
template <sdlf_math MATH> static sdlf_status launch_rows(const cuda_calculator *calculator, const backward_sgd &s)
{
    if (calculator->shared_most >= 215 << 10 && s.inputs >= 6 * calculator->multiprocessors) {
        if (s.rows <= 16) return launch<MATH, backward_sgd_shape<16, 3, 4, 1, 3>>(calculator, s);
        if (s.rows <= 64) return launch<MATH, backward_sgd_shape<64, 3, 4, 1, 2>>(calculator, s);
        return launch<MATH, backward_sgd_shape<128, 3, 2, 2, 2>>(calculator, s);
    }
    if (s.rows <= 16) return launch<MATH, backward_sgd_shape<16, 1, 4, 1, 3>>(calculator, s);
    if (s.rows <= 64) return launch<MATH, backward_sgd_shape<64, 1, 4, 1, 2>>(calculator, s);
    return launch<MATH, backward_sgd_shape<128, 1, 2, 2, 2>>(calculator, s);
}

extern "C" sdlf_status cuda_backward_sgd_tensor(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const backward_sgd s = backward_sgd_of(op);
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_rows<SDLF_MATH_FP16>(calculator, s);
    case SDLF_MATH_BF16: return launch_rows<SDLF_MATH_BF16>(calculator, s);
    default: return launch_rows<SDLF_MATH_TF32>(calculator, s);
    }
}
