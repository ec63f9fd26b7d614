/* gemm_backward_sgd in one sweep, in float32 (see gemm_backward_sgd.h).
 *
 * Warps 0 to 3 make g and the update: a thread 8 neighbouring units u and every 16th column of the strip. Warps 4 to 7 make dx:
 * a thread every 8th row n and the same columns. Both make 64 ROWS STRIP multiplications a tile; a thread of g reads 2 vectors
 * and STRIP / 16 numbers from shared memory for STRIP / 2 FMAs, most of them the same for half a warp. */
#include "calculators/cuda/gemm_backward_sgd.cuh"

enum { THREADS = 256, TILE = 64, STAGES = 3, LANES = 16, HALF = THREADS / 2, GROUPS = HALF / LANES };

template <int ROWS, int STRIP> struct shared_memory {
    stage<ROWS, TILE, STRIP> stages[STAGES];
    float x[ROWS][STRIP];
};

template <int ROWS, int STRIP> static __device__ void load_strip(float (&to)[ROWS][STRIP], const sweep &s, int i0)
{
    for (int e = threadIdx.x; e < ROWS * STRIP; e += THREADS) {
        int n = e / STRIP, i = i0 + e % STRIP;
        to[n][e % STRIP] = n < s.rows && i < s.inputs ? s.x[static_cast<int64_t>(n) * s.inputs + i] : 0.0f;
    }
}

/* Threads 0 to 127. */
template <int ROWS, int STRIP>
static __device__ void sweep_gradient(const float (&x)[ROWS][STRIP], const stage<ROWS, TILE, STRIP> &tile,
                                      const sweep &s, float rate, int i0, int u0)
{
    int column = threadIdx.x % LANES, u = threadIdx.x / LANES * 8;
    float sums[8][STRIP / LANES] = {};
#pragma unroll 8
    for (int n = 0; n < ROWS; n++) {
        float4 low = *reinterpret_cast<const float4 *>(&tile.dy[n][u]);
        float4 high = *reinterpret_cast<const float4 *>(&tile.dy[n][u + 4]);
        const float dy[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int j = 0; j < STRIP / LANES; j++) {
            float value = x[n][column + j * LANES];
#pragma unroll
            for (int k = 0; k < 8; k++) sums[k][j] += dy[k] * value;
        }
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (u0 + u + k >= s.units) break;
#pragma unroll
        for (int j = 0; j < STRIP / LANES; j++) {
            int i = column + j * LANES;
            if (i0 + i >= s.inputs) break;
            int64_t at = static_cast<int64_t>(u0 + u + k) * s.inputs + i0 + i;
            float w = tile.w[u + k][i], v = tile.v[u + k][i];
            move(w, v, sums[k][j], rate, s.rule, s.rule.decay);
            s.w[at] = w;
            __stcs(s.v + at, v);
        }
    }
}

/* Threads 128 to 255; `thread` counts from 0. */
template <int ROWS, int STRIP>
static __device__ void sweep_input(float (&dx)[ROWS / GROUPS][STRIP / LANES], const stage<ROWS, TILE, STRIP> &tile,
                                   int thread)
{
    int column = thread % LANES, group = thread / LANES;
#pragma unroll 2
    for (int u = 0; u < TILE; u += 4) {
        float w[4][STRIP / LANES];
#pragma unroll
        for (int k = 0; k < 4; k++) {
#pragma unroll
            for (int j = 0; j < STRIP / LANES; j++) w[k][j] = tile.w[u + k][column + j * LANES];
        }
#pragma unroll
        for (int r = 0; r < ROWS / GROUPS; r++) {
            float4 dy = *reinterpret_cast<const float4 *>(&tile.dy[group + r * GROUPS][u]);
#pragma unroll
            for (int j = 0; j < STRIP / LANES; j++) {
                dx[r][j] += dy.x * w[0][j];
                dx[r][j] += dy.y * w[1][j];
                dx[r][j] += dy.z * w[2][j];
                dx[r][j] += dy.w * w[3][j];
            }
        }
    }
}

template <int ROWS, int STRIP> static __global__ void __launch_bounds__(THREADS, 1) sweep_fp32(sweep s)
{
    extern __shared__ __align__(16) unsigned char memory[];
    shared_memory<ROWS, STRIP> &shared = *reinterpret_cast<shared_memory<ROWS, STRIP> *>(memory);
    int i0 = blockIdx.x * STRIP, mine = blockIdx.x;
    int thread = threadIdx.x - HALF;
    float dx[ROWS / GROUPS][STRIP / LANES] = {}, rate = *s.rate;
    load_strip(shared.x, s, i0); /* seen by all after the walk's first barrier */
    walk<THREADS, STAGES>(s, i0, shared.stages, [&](const stage<ROWS, TILE, STRIP> &tile, int t) {
        if (thread < 0)
            sweep_gradient(shared.x, tile, s, rate, i0, t * TILE);
        else if (s.dx != nullptr)
            sweep_input<ROWS, STRIP>(dx, tile, thread);
        update_bias(tile, s, rate, t, mine);
    });
    if (thread < 0 || s.dx == nullptr) return;
#pragma unroll
    for (int r = 0; r < ROWS / GROUPS; r++) {
#pragma unroll
        for (int j = 0; j < STRIP / LANES; j++)
            store_dx(s, thread / LANES + r * GROUPS, i0 + thread % LANES + j * LANES, dx[r][j]);
    }
}

template <int ROWS, int STRIP> static sdlf_status launch(const cuda_calculator *calculator, const sweep &s)
{
    const int shared = (int)sizeof(shared_memory<ROWS, STRIP>);
    sdlf_status status = allow_shared(sweep_fp32<ROWS, STRIP>, shared);
    if (status != SDLF_OK) return status;
    sweep_fp32<ROWS, STRIP><<<(unsigned)((s.inputs + STRIP - 1) / STRIP), THREADS, shared, calculator->stream>>>(s);
    return cuda_check_launch("gemm_backward_sgd");
}

template <int STRIP> static sdlf_status launch_rows(const cuda_calculator *calculator, const sweep &s)
{
    if (s.rows <= 16) return launch<16, STRIP>(calculator, s);
    if (s.rows <= 64) return launch<64, STRIP>(calculator, s);
    return launch<128, STRIP>(calculator, s);
}

extern "C" sdlf_status cuda_sweep_fp32(sdlf_calculator *base, const sdlf_operation *op, bool wide)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sweep s = sweep_of(op);
    return wide ? launch_rows<48>(calculator, s) : launch_rows<16>(calculator, s);
}
