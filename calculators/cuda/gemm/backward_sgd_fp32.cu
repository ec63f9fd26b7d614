/* gemm_backward_sgd in one sweep, in float32 (see gemm/backward_sgd.h).
 *
 * Warps 0 to 3 make g and the update, warps 4 to 7 dx. Of g (TILE,STRIP) a thread has 4 or 8 neighbouring units u and an eighth
 * of the strip's columns; of dx (ROWS,STRIP) 8 rows n, ROWS / 8 apart, and the same columns, for a part of the units. Both
 * halves make TILE ROWS STRIP multiplications a tile; in wide strips a thread of g reads 3 or 4 vectors from shared memory for 24 or
 * 48 FMAs, one of dx 16 for 192, most of them the same for several lanes. At 64 rows multiplications bound the kernel, 28 us for U =
 * 1024, I = 6272 at 50 TFLOP/s. */
#include "calculators/cuda/gemm/backward_sgd.cuh"

enum {
    THREADS = 256,
    HALF = THREADS / 2,
    LANES = 8 /* that share a line of the strip */,
    BAND = 8 /* rows n a thread */
};

/* How the work is cut, for ROWS 16, 64 and 128 and STRIP 16 and 48. */
template <int ROWS, int STRIP> struct fp32_work {
    static const int tile = ROWS > 64 || STRIP == 16 ? 64 : 128, stages = ROWS * tile == 64 * 128 ? 2 : 3;
    static const int units = tile / (HALF / LANES), columns = STRIP / LANES; /* of g, a thread */
    static const int lines = ROWS / BAND;                                    /* threads that share the rows n */
    static const int parts = HALF / LANES / lines, part = tile / parts;      /* of the units, for dx */
};

template <int ROWS, int STRIP> using fp32_stage = stage<ROWS, fp32_work<ROWS, STRIP>::tile, STRIP>;

template <int ROWS, int STRIP> struct shared_memory {
    fp32_stage<ROWS, STRIP> stages[fp32_work<ROWS, STRIP>::stages];
    float x[ROWS][STRIP];
};

/* A lane's columns of a line: 2 neighbours; or 4, and 2 of the columns from 32 on. */
template <int COLUMNS> static __device__ __forceinline__ int column_of(int lane, int j)
{
    return COLUMNS == 2 ? 2 * lane + j : j < 4 ? 4 * lane + j : 32 + 2 * lane + j - 4;
}

template <int COLUMNS>
static __device__ __forceinline__ void load_columns(float (&to)[COLUMNS], const float *line, int lane)
{
    if (COLUMNS > 2) {
        float4 four = *reinterpret_cast<const float4 *>(line + 4 * lane);
        to[0] = four.x;
        to[1] = four.y;
        to[2 % COLUMNS] = four.z;
        to[3 % COLUMNS] = four.w;
    }
    float2 two = *reinterpret_cast<const float2 *>(line + column_of<COLUMNS>(lane, COLUMNS - 2));
    to[COLUMNS - 2] = two.x;
    to[COLUMNS - 1] = two.y;
}

/* Numbers that are past the end are not written; inputs come in fours, so that vectors are written whole or not at all. */
template <int COLUMNS>
static __device__ __forceinline__ void store_columns(float *line, const float (&from)[COLUMNS], int lane, int i0,
                                                     int inputs, bool last_use)
{
    if (COLUMNS > 2 && i0 + 4 * lane < inputs) {
        float4 four = make_float4(from[0], from[1], from[2 % COLUMNS], from[3 % COLUMNS]);
        float4 *to = reinterpret_cast<float4 *>(line + 4 * lane);
        if (last_use)
            __stcs(to, four);
        else
            *to = four;
    }
    int column = column_of<COLUMNS>(lane, COLUMNS - 2);
    if (i0 + column >= inputs) return;
    float2 two = make_float2(from[COLUMNS - 2], from[COLUMNS - 1]), *to = reinterpret_cast<float2 *>(line + column);
    if (last_use)
        __stcs(to, two);
    else
        *to = two;
}

template <int ROWS, int STRIP> static __device__ void load_strip(float (&to)[ROWS][STRIP], const sweep &s, int i0)
{
    for (int e = threadIdx.x; e < ROWS * STRIP; e += THREADS) {
        int n = e / STRIP, i = i0 + e % STRIP;
        to[n][e % STRIP] = n < s.rows && i < s.inputs ? s.x[static_cast<int64_t>(n) * s.inputs + i] : 0.0f;
    }
}

/* Threads 0 to 127. */
template <int ROWS, int STRIP>
static __device__ __forceinline__ void sweep_gradient(const float (&x)[ROWS][STRIP],
                                                      const fp32_stage<ROWS, STRIP> &tile, const sweep &s, float rate,
                                                      int i0, int u0)
{
    using work = fp32_work<ROWS, STRIP>;
    const int columns = work::columns, units = work::units;
    int lane = threadIdx.x % LANES, u = threadIdx.x / LANES * units;
    float sums[units][columns] = {};
#pragma unroll 4
    for (int n = 0; n < ROWS; n++) {
        float dy[units], value[columns];
#pragma unroll
        for (int k = 0; k < units; k += 4) {
            if (units < 4) {
                float2 two = *reinterpret_cast<const float2 *>(&tile.dy[n][u]);
                dy[0] = two.x;
                dy[1] = two.y;
                break;
            }
            float4 four = *reinterpret_cast<const float4 *>(&tile.dy[n][u + k]);
            dy[k] = four.x;
            dy[k + 1] = four.y;
            dy[(k + 2) % units] = four.z;
            dy[(k + 3) % units] = four.w;
        }
        load_columns<columns>(value, x[n], lane);
#pragma unroll
        for (int k = 0; k < units; k++) {
#pragma unroll
            for (int j = 0; j < columns; j++) sums[k][j] += dy[k] * value[j];
        }
    }
#pragma unroll
    for (int k = 0; k < units; k++) {
        if (u0 + u + k >= s.units) break;
        float w[columns], v[columns];
        load_columns<columns>(w, tile.w[u + k], lane);
        load_columns<columns>(v, tile.v[u + k], lane);
#pragma unroll
        for (int j = 0; j < columns; j++) move(w[j], v[j], sums[k][j], rate, s.rule, s.rule.decay);
        int64_t at = static_cast<int64_t>(u0 + u + k) * s.inputs + i0;
        store_columns<columns>(s.w + at, w, lane, i0, s.inputs, false);
        store_columns<columns>(s.v + at, v, lane, i0, s.inputs, true);
    }
}

/* Threads 128 to 255; `thread` counts from 0. */
template <int ROWS, int STRIP>
static __device__ __forceinline__ void sweep_input(float (&dx)[BAND][STRIP / LANES],
                                                   const fp32_stage<ROWS, STRIP> &tile, int thread)
{
    using work = fp32_work<ROWS, STRIP>;
    const int columns = work::columns;
    int lane = thread % LANES, line = thread / LANES % work::lines, first = thread / LANES / work::lines * work::part;
#pragma unroll 1
    for (int u = first; u < first + work::part; u += 4) {
        float w[4][columns];
#pragma unroll
        for (int k = 0; k < 4; k++) load_columns<columns>(w[k], tile.w[u + k], lane);
#pragma unroll
        for (int r = 0; r < BAND; r++) {
            float4 dy = *reinterpret_cast<const float4 *>(&tile.dy[line + r * work::lines][u]);
#pragma unroll
            for (int j = 0; j < columns; j++) {
                dx[r][j] += dy.x * w[0][j];
                dx[r][j] += dy.y * w[1][j];
                dx[r][j] += dy.z * w[2][j];
                dx[r][j] += dy.w * w[3][j];
            }
        }
    }
}

/* Parts of the sum over units meet in shared memory, in order; dx is written. */
template <int ROWS, int STRIP>
static __device__ void finish_input(float (&dx)[BAND][STRIP / LANES], float *shared, const sweep &s, int i0, int thread)
{
    using work = fp32_work<ROWS, STRIP>;
    const int columns = work::columns;
    int lane = thread % LANES, line = thread / LANES % work::lines, part = thread / LANES / work::lines;
    __syncthreads();
    if (thread >= 0 && part > 0) {
#pragma unroll
        for (int r = 0; r < BAND; r++) {
#pragma unroll
            for (int j = 0; j < columns; j++)
                shared[((part - 1) * ROWS + line + r * work::lines) * STRIP + column_of<columns>(lane, j)] = dx[r][j];
        }
    }
    __syncthreads();
    if (thread < 0 || part > 0) return;
#pragma unroll
    for (int r = 0; r < BAND; r++) {
        int n = line + r * work::lines;
#pragma unroll
        for (int j = 0; j < columns; j++) {
            int column = column_of<columns>(lane, j);
            for (int other = 1; other < work::parts; other++)
                dx[r][j] += shared[((other - 1) * ROWS + n) * STRIP + column];
            store_dx(s, n, i0 + column, dx[r][j]);
        }
    }
}

template <int ROWS, int STRIP> static __global__ void __launch_bounds__(THREADS, 1) sweep_fp32(sweep s)
{
    using work = fp32_work<ROWS, STRIP>;
    extern __shared__ __align__(16) unsigned char memory[];
    shared_memory<ROWS, STRIP> &shared = *reinterpret_cast<shared_memory<ROWS, STRIP> *>(memory);
    int i0 = blockIdx.x * STRIP, mine = blockIdx.x;
    int thread = threadIdx.x - HALF;
    float dx[BAND][STRIP / LANES] = {}, rate = *s.rate;
    load_strip(shared.x, s, i0); /* seen by all after the walk's first barrier */
    walk<THREADS, work::stages>(s, i0, shared.stages, [&](const fp32_stage<ROWS, STRIP> &tile, int t) {
        if (thread < 0)
            sweep_gradient<ROWS, STRIP>(shared.x, tile, s, rate, i0, t * work::tile);
        else if (s.dx != nullptr)
            sweep_input<ROWS, STRIP>(dx, tile, thread);
        update_bias(tile, s, rate, t, mine);
    });
    if (s.dx != nullptr) finish_input<ROWS, STRIP>(dx, reinterpret_cast<float *>(memory), s, i0, thread);
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
