/* gemm_backward_sgd in one sweep, on tensor cores (see gemm_backward_sgd.h): factors rounded to tf32, float16 or bfloat16.
 *
 * One half of the warps makes g, the other dx; each half stands in groups of 16 columns of the strip. g (32,STRIP) = dy^T x: the
 * warps of a group make 16 units u each, in turn; x's fragments stay in registers all the way. dx (ROWS,STRIP) += dy w: the
 * warps of a group share the rows n and, where these are few, the sum over u. The new w and v pass through shared memory, so
 * that they leave in whole lines of 128 bytes; v, which is not wanted again soon, leaves the cache to w. */
#include "calculators/cuda/gemm_backward_sgd.cuh"

enum { THREADS = 256, HALF = 4 /* warps of one product */, TILE = 32 };

/* How the warps share the work, for ROWS 16, 64 and 128 and STRIP 16 and 32. */
template <int ROWS, int STRIP> struct work {
    static const int groups = STRIP / 16, warps = HALF / groups;    /* of columns; of a group and a product */
    static const int bands = ROWS / 16 < warps ? ROWS / 16 : warps; /* of rows n, for dx */
    static const int repeats = ROWS / 16 / bands;                   /* of 16 rows in a band */
    static const int stages = ROWS > 64 ? 3 : 4;
    static const int parts = warps / bands < TILE / 8 ? warps / bands : TILE / 8; /* of the sum over u */
};

template <int ROWS, int STRIP> struct tensor_memory {
    stage<ROWS, TILE, STRIP> stages[work<ROWS, STRIP>::stages];
    float w[TILE][STRIP + 4], v[TILE][STRIP + 4]; /* on their way out */
};

/* A thread's registers: fragments of x's strip, B of g; and its sums of dx. */
template <int ROWS, int STRIP> struct tensor_state {
    uint32_t x[ROWS / 8][2][2];
    float dx[work<ROWS, STRIP>::repeats][2][4];
};

template <sdlf_math MATH, int ROWS, int STRIP>
static __device__ void load_strip(tensor_state<ROWS, STRIP> &state, const sweep &s, int i0)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int step = 0; step < ROWS / 8; step++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int i = i0 + warp % work<ROWS, STRIP>::groups * 16 + j * 8 + g;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int n = step * 8 + t + 4 * half;
                float value = n < s.rows && i < s.inputs ? s.x[static_cast<int64_t>(n) * s.inputs + i] : 0.0f;
                state.x[step][j][half] = factor_bits<MATH>(value);
            }
        }
    }
}

/* g of the tile, and the new weights on their way out. */
template <sdlf_math MATH, int ROWS, int STRIP>
static __device__ void sweep_gradient(const tensor_state<ROWS, STRIP> &state, const stage<ROWS, TILE, STRIP> &tile,
                                      tensor_memory<ROWS, STRIP> &memory, const sweep &s, float rate)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    int column = warp % work<ROWS, STRIP>::groups * 16;
#pragma unroll
    for (int band = warp / work<ROWS, STRIP>::groups; band < TILE / 16; band += work<ROWS, STRIP>::warps) {
        float sums[2][4] = {};
#pragma unroll
        for (int step = 0; step < ROWS / 8; step++) {
            int n = step * 8 + t, u = band * 16 + g;
            uint32_t a[4] = {factor_bits<MATH>(tile.dy[n][u]), factor_bits<MATH>(tile.dy[n][u + 8]),
                             factor_bits<MATH>(tile.dy[n + 4][u]), factor_bits<MATH>(tile.dy[n + 4][u + 8])};
#pragma unroll
            for (int j = 0; j < 2; j++) mma_tf32(sums[j], a, state.x[step][j]);
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int u = band * 16 + g + 8 * half, i = column + j * 8 + 2 * t;
                float2 w = *reinterpret_cast<const float2 *>(&tile.w[u][i]);
                float2 v = *reinterpret_cast<const float2 *>(&tile.v[u][i]);
                move(w.x, v.x, sums[j][2 * half], rate, s.rule, s.rule.decay);
                move(w.y, v.y, sums[j][2 * half + 1], rate, s.rule, s.rule.decay);
                *reinterpret_cast<float2 *>(&memory.w[u][i]) = w;
                *reinterpret_cast<float2 *>(&memory.v[u][i]) = v;
            }
        }
    }
}

/* The way out, line by line. */
template <int ROWS, int STRIP>
static __device__ void store_tile(const tensor_memory<ROWS, STRIP> &memory, const sweep &s, int i0, int u0)
{
    for (int e = threadIdx.x; e < TILE * STRIP / 4; e += THREADS) {
        int u = e / (STRIP / 4), i = e % (STRIP / 4) * 4;
        if (u0 + u >= s.units || i0 + i >= s.inputs) continue;
        int64_t at = static_cast<int64_t>(u0 + u) * s.inputs + i0 + i;
        *reinterpret_cast<float4 *>(s.w + at) = *reinterpret_cast<const float4 *>(&memory.w[u][i]);
        __stcs(reinterpret_cast<float4 *>(s.v + at), *reinterpret_cast<const float4 *>(&memory.v[u][i]));
    }
}

/* The tile's part of dx. Within 8 rows u the order is 0, 2, 4, 6, 1, 3, 5, 7, so that a thread reads two at once of dy. */
template <sdlf_math MATH, int ROWS, int STRIP>
static __device__ void sweep_input(tensor_state<ROWS, STRIP> &state, const stage<ROWS, TILE, STRIP> &tile)
{
    using share = work<ROWS, STRIP>;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP - HALF, g = lane / 4, t = lane % 4;
    int band = warp / share::groups % share::bands, part = warp / share::groups / share::bands;
    int column = warp % share::groups * 16;
    if (part >= share::parts) return;
#pragma unroll
    for (int step = 0; step < TILE / 8 / share::parts; step++) {
        int u = (part * (TILE / 8 / share::parts) + step) * 8 + 2 * t;
        uint32_t b[2][2];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            b[j][0] = factor_bits<MATH>(tile.w[u][column + j * 8 + g]);
            b[j][1] = factor_bits<MATH>(tile.w[u + 1][column + j * 8 + g]);
        }
#pragma unroll
        for (int repeat = 0; repeat < share::repeats; repeat++) {
            int n = (band + repeat * share::bands) * 16 + g;
            float2 low = *reinterpret_cast<const float2 *>(&tile.dy[n][u]);
            float2 high = *reinterpret_cast<const float2 *>(&tile.dy[n + 8][u]);
            uint32_t a[4] = {factor_bits<MATH>(low.x), factor_bits<MATH>(high.x), factor_bits<MATH>(low.y),
                             factor_bits<MATH>(high.y)};
#pragma unroll
            for (int j = 0; j < 2; j++) mma_tf32(state.dx[repeat][j], a, b[j]);
        }
    }
}

/* Parts of the sum over u meet in shared memory, in order; dx is written. */
template <int ROWS, int STRIP>
static __device__ void finish_input(tensor_state<ROWS, STRIP> &state, float *shared, const sweep &s, int i0)
{
    using share = work<ROWS, STRIP>;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP - HALF, g = lane / 4, t = lane % 4;
    int band = warp / share::groups % share::bands, part = warp / share::groups / share::bands;
    const int count = share::repeats * 8,
              whole = share::groups * share::bands; /* numbers a thread; warps of one part */
    if (share::parts > 1) {
        __syncthreads();
        float *mine = shared + (warp * WARP + lane) * (count + 1);
        if (warp >= 0) {
#pragma unroll
            for (int e = 0; e < count; e++) mine[e] = state.dx[e / 8][e / 4 % 2][e % 4];
        }
        __syncthreads();
        if (warp < 0 || part > 0) return;
        for (int other = 1; other < share::parts; other++) {
            const float *theirs = shared + ((warp + other * whole) * WARP + lane) * (count + 1);
#pragma unroll
            for (int e = 0; e < count; e++) state.dx[e / 8][e / 4 % 2][e % 4] += theirs[e];
        }
    }
    if (warp < 0) return;
#pragma unroll
    for (int repeat = 0; repeat < share::repeats; repeat++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int n = (band + repeat * share::bands) * 16 + g, i = i0 + warp % share::groups * 16 + j * 8 + 2 * t;
            store_dx(s, n, i, state.dx[repeat][j][0]);
            store_dx(s, n, i + 1, state.dx[repeat][j][1]);
            store_dx(s, n + 8, i, state.dx[repeat][j][2]);
            store_dx(s, n + 8, i + 1, state.dx[repeat][j][3]);
        }
    }
}

template <sdlf_math MATH, int ROWS, int STRIP>
static __global__ void __launch_bounds__(THREADS, 2) sweep_tensor(sweep s)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    tensor_memory<ROWS, STRIP> &memory = *reinterpret_cast<tensor_memory<ROWS, STRIP> *>(bytes);
    tensor_state<ROWS, STRIP> state = {};
    int i0 = blockIdx.x * STRIP, mine = blockIdx.x;
    if (threadIdx.x < THREADS / 2) load_strip<MATH>(state, s, i0);
    float rate = *s.rate;
    walk<THREADS, work<ROWS, STRIP>::stages>(s, i0, memory.stages, [&](const stage<ROWS, TILE, STRIP> &tile, int t) {
        if (threadIdx.x < THREADS / 2)
            sweep_gradient<MATH>(state, tile, memory, s, rate);
        else if (s.dx != nullptr)
            sweep_input<MATH>(state, tile);
        update_bias(tile, s, rate, t, mine);
        __syncthreads();
        store_tile(memory, s, i0, t * TILE);
    });
    if (s.dx != nullptr) finish_input(state, reinterpret_cast<float *>(bytes), s, i0);
}

template <sdlf_math MATH, int ROWS, int STRIP>
static sdlf_status launch(const cuda_calculator *calculator, const sweep &s)
{
    const int shared = (int)sizeof(tensor_memory<ROWS, STRIP>);
    sdlf_status status = allow_shared(sweep_tensor<MATH, ROWS, STRIP>, shared);
    if (status != SDLF_OK) return status;
    sweep_tensor<MATH, ROWS, STRIP>
        <<<(unsigned)((s.inputs + STRIP - 1) / STRIP), THREADS, shared, calculator->stream>>>(s);
    return cuda_check_launch("gemm_backward_sgd");
}

template <sdlf_math MATH, int STRIP> static sdlf_status launch_rows(const cuda_calculator *calculator, const sweep &s)
{
    if (s.rows <= 16) return launch<MATH, 16, STRIP>(calculator, s);
    if (s.rows <= 64) return launch<MATH, 64, STRIP>(calculator, s);
    return launch<MATH, 128, STRIP>(calculator, s);
}

template <sdlf_math MATH> static sdlf_status launch_strip(const cuda_calculator *calculator, const sweep &s, bool wide)
{
    return wide ? launch_rows<MATH, 32>(calculator, s) : launch_rows<MATH, 16>(calculator, s);
}

extern "C" sdlf_status cuda_sweep_tensor(sdlf_calculator *base, const sdlf_operation *op, bool wide)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sweep s = sweep_of(op);
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_strip<SDLF_MATH_FP16>(calculator, s, wide);
    case SDLF_MATH_BF16: return launch_strip<SDLF_MATH_BF16>(calculator, s, wide);
    default: return launch_strip<SDLF_MATH_TF32>(calculator, s, wide);
    }
}
