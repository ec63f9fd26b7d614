/* gemm_backward_sgd in one sweep, on tensor cores (see gemm_backward_sgd.h): factors rounded to tf32, float16 or bfloat16.
 *
 * All 8 warps make both products of a tile. g (64,STRIP) = dy^T x: warp / 2 names 16 rows u, warp % 2 half of the strip; x's
 * fragments stay in registers all the way. dx (ROWS,STRIP) += dy w: warp % 2 names half of the strip, warp / 2 the rows n and,
 * where these are few, the part of the sum over u. 41 KB (ROWS 64, STRIP 48) arrive for 393k multiplications: the weights' way
 * through memory takes longer than the products up to 128 rows. */
#include "calculators/cuda/gemm_backward_sgd.cuh"

/* How the warps share dx, for ROWS 16, 64 and 128. */
template <int ROWS, int STRIP> struct tensor_share {
    static const int tiles = STRIP / 16;                  /* of 8 columns: half a strip */
    static const int lines = ROWS < 64 ? ROWS / 16 : 4;   /* groups of rows n that dx is shared by */
    static const int repeats = ROWS < 64 ? 1 : ROWS / 64; /* groups of 16 rows a warp */
    static const int parts = 4 / lines;                   /* of the sum over u */
    static const int stages = ROWS > 64 || STRIP < WIDE_STRIP ? 3 : 4;
};

template <int ROWS, int STRIP, sdlf_math MATH> struct tensor_state {
    using share = tensor_share<ROWS, STRIP>;
    uint32_t x[ROWS / 8][share::tiles][2]; /* fragments of x's strip: B of g */
    float dx[share::repeats][share::tiles][4];
};

template <int ROWS, int STRIP, sdlf_math MATH>
static __device__ void load_strip(tensor_state<ROWS, STRIP, MATH> &state, const sweep &s, int64_t i0)
{
    using share = tensor_share<ROWS, STRIP>;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int step = 0; step < ROWS / 8; step++) {
#pragma unroll
        for (int j = 0; j < share::tiles; j++) {
            int64_t i = i0 + warp % 2 * (STRIP / 2) + j * 8 + g;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int64_t n = step * 8 + t + 4 * half;
                float value = n < s.rows && i < s.inputs ? s.x[n * s.inputs + i] : 0.0f;
                state.x[step][j][half] = factor_bits<MATH>(value);
            }
        }
    }
}

/* Weights (u, i) and (u, i + 1) of the tile move on. i is even and a line's length a multiple of 4. */
template <int ROWS, int STRIP>
static __device__ __forceinline__ void update_pair(const stage<ROWS, STRIP> &tile, const sweep &s, float rate,
                                                   int64_t i0, int64_t u0, int u, int i, float g0, float g1)
{
    if (u0 + u >= s.units || i0 + i >= s.inputs) return;
    float2 w = *reinterpret_cast<const float2 *>(&tile.w[u][i]), v = *reinterpret_cast<const float2 *>(&tile.v[u][i]);
    move(w.x, v.x, g0, rate, s.rule, s.rule.decay);
    move(w.y, v.y, g1, rate, s.rule, s.rule.decay);
    int64_t at = (u0 + u) * s.inputs + i0 + i;
    *reinterpret_cast<float2 *>(s.w + at) = w;
    *reinterpret_cast<float2 *>(s.v + at) = v;
}

/* g of the tile and the update: warp / 2 names 16 rows u, warp % 2 half a strip. */
template <int ROWS, int STRIP, sdlf_math MATH>
static __device__ void sweep_gradient(const tensor_state<ROWS, STRIP, MATH> &state, const stage<ROWS, STRIP> &tile,
                                      const sweep &s, float rate, int64_t i0, int64_t u0)
{
    using share = tensor_share<ROWS, STRIP>;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, u = warp / 2 * 16 + g;
    float sums[share::tiles][4] = {};
#pragma unroll
    for (int step = 0; step < ROWS / 8; step++) {
        int n = step * 8 + t;
        uint32_t a[4] = {factor_bits<MATH>(tile.dy[n][u]), factor_bits<MATH>(tile.dy[n][u + 8]),
                         factor_bits<MATH>(tile.dy[n + 4][u]), factor_bits<MATH>(tile.dy[n + 4][u + 8])};
#pragma unroll
        for (int j = 0; j < share::tiles; j++) mma_tf32(sums[j], a, state.x[step][j]);
    }
#pragma unroll
    for (int j = 0; j < share::tiles; j++) {
        int i = warp % 2 * (STRIP / 2) + j * 8 + 2 * t;
        update_pair(tile, s, rate, i0, u0, u, i, sums[j][0], sums[j][1]);
        update_pair(tile, s, rate, i0, u0, u + 8, i, sums[j][2], sums[j][3]);
    }
}

/* The tile's part of dx. Within 8 rows u the order is 0, 2, 4, 6, 1, 3, 5, 7, so that a thread reads two at once of dy. */
template <int ROWS, int STRIP, sdlf_math MATH>
static __device__ void sweep_input(tensor_state<ROWS, STRIP, MATH> &state, const stage<ROWS, STRIP> &tile)
{
    using share = tensor_share<ROWS, STRIP>;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    int line = warp / 2 % share::lines, part = warp / 2 / share::lines;
#pragma unroll
    for (int step = 0; step < TILE / 8 / share::parts; step++) {
        int u = (part * (TILE / 8 / share::parts) + step) * 8 + 2 * t;
        uint32_t b[share::tiles][2];
#pragma unroll
        for (int j = 0; j < share::tiles; j++) {
            int i = warp % 2 * (STRIP / 2) + j * 8 + g;
            b[j][0] = factor_bits<MATH>(tile.w[u][i]);
            b[j][1] = factor_bits<MATH>(tile.w[u + 1][i]);
        }
#pragma unroll
        for (int repeat = 0; repeat < share::repeats; repeat++) {
            int n = (line + repeat * share::lines) * 16 + g;
            float2 low = *reinterpret_cast<const float2 *>(&tile.dy[n][u]);
            float2 high = *reinterpret_cast<const float2 *>(&tile.dy[n + 8][u]);
            uint32_t a[4] = {factor_bits<MATH>(low.x), factor_bits<MATH>(high.x), factor_bits<MATH>(low.y),
                             factor_bits<MATH>(high.y)};
#pragma unroll
            for (int j = 0; j < share::tiles; j++) mma_tf32(state.dx[repeat][j], a, b[j]);
        }
    }
}

/* Parts of the sum over u meet in shared memory, in order. */
template <int ROWS, int STRIP, sdlf_math MATH>
static __device__ void finish_input(tensor_state<ROWS, STRIP, MATH> &state, float *shared, const sweep &s, int64_t i0)
{
    using share = tensor_share<ROWS, STRIP>;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    int line = warp / 2 % share::lines, part = warp / 2 / share::lines;
    const int count = share::repeats * share::tiles * 4, whole = 2 * share::lines; /* warps of one part */
    if (share::parts > 1) {
        __syncthreads();
        float *mine = shared + (warp * WARP + lane) * (count + 1);
        for (int e = 0; e < count; e++) mine[e] = state.dx[e / (share::tiles * 4)][e / 4 % share::tiles][e % 4];
        __syncthreads();
        if (part > 0) return;
        for (int other = 1; other < share::parts; other++) {
            const float *theirs = shared + ((warp + other * whole) * WARP + lane) * (count + 1);
            for (int e = 0; e < count; e++) state.dx[e / (share::tiles * 4)][e / 4 % share::tiles][e % 4] += theirs[e];
        }
    }
#pragma unroll
    for (int repeat = 0; repeat < share::repeats; repeat++) {
#pragma unroll
        for (int j = 0; j < share::tiles; j++) {
            int64_t n = (line + repeat * share::lines) * 16 + g, i = i0 + warp % 2 * (STRIP / 2) + j * 8 + 2 * t;
            store_dx(s, n, i, state.dx[repeat][j][0]);
            store_dx(s, n, i + 1, state.dx[repeat][j][1]);
            store_dx(s, n + 8, i, state.dx[repeat][j][2]);
            store_dx(s, n + 8, i + 1, state.dx[repeat][j][3]);
        }
    }
}

template <int ROWS, int STRIP, sdlf_math MATH>
static __global__ void __launch_bounds__(SWEEP_THREADS, 1) sweep_tensor(sweep s)
{
    extern __shared__ __align__(16) unsigned char memory[];
    tensor_state<ROWS, STRIP, MATH> state = {};
    int64_t i0 = static_cast<int64_t>(blockIdx.x) * STRIP;
    load_strip(state, s, i0);
    float rate = *s.rate;
    walk<ROWS, STRIP, tensor_share<ROWS, STRIP>::stages>(s, i0, reinterpret_cast<stage<ROWS, STRIP> *>(memory),
                                                         [&](const stage<ROWS, STRIP> &tile, int64_t u0) {
                                                             if (s.dx != nullptr) sweep_input(state, tile);
                                                             sweep_gradient(state, tile, s, rate, i0, u0);
                                                             update_bias(tile, s, rate, u0);
                                                         });
    if (s.dx != nullptr) finish_input(state, reinterpret_cast<float *>(memory), s, i0);
}

template <int ROWS, int STRIP, sdlf_math MATH>
static sdlf_status launch(const cuda_calculator *calculator, const sweep &s)
{
    const int shared = tensor_share<ROWS, STRIP>::stages * (int)sizeof(stage<ROWS, STRIP>);
    sdlf_status status = allow_shared(sweep_tensor<ROWS, STRIP, MATH>, shared);
    if (status != SDLF_OK) return status;
    sweep_tensor<ROWS, STRIP, MATH>
        <<<(unsigned)((s.inputs + STRIP - 1) / STRIP), SWEEP_THREADS, shared, calculator->stream>>>(s);
    return cuda_check_launch("gemm_backward_sgd");
}

template <int STRIP, sdlf_math MATH> static sdlf_status launch_rows(const cuda_calculator *calculator, const sweep &s)
{
    if (s.rows <= 16) return launch<16, STRIP, MATH>(calculator, s);
    if (s.rows <= 64) return launch<64, STRIP, MATH>(calculator, s);
    return launch<128, STRIP, MATH>(calculator, s);
}

template <sdlf_math MATH> static sdlf_status launch_strip(const cuda_calculator *calculator, const sweep &s, int strip)
{
    return strip == WIDE_STRIP ? launch_rows<WIDE_STRIP, MATH>(calculator, s)
                               : launch_rows<NARROW_STRIP, MATH>(calculator, s);
}

extern "C" sdlf_status cuda_sweep_tensor(sdlf_calculator *base, const sdlf_operation *op, int strip)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sweep s = sweep_of(op);
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_strip<SDLF_MATH_FP16>(calculator, s, strip);
    case SDLF_MATH_BF16: return launch_strip<SDLF_MATH_BF16>(calculator, s, strip);
    default: return launch_strip<SDLF_MATH_TF32>(calculator, s, strip);
    }
}
