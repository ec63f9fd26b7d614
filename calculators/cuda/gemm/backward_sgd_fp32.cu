/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd in one pass, in float32 (see gemm/backward_sgd.h).
 *
 * A block has a strip of columns, and iterates over its units in tiles. Warps 0 to 3 accumulate dx, and load the tiles of w and of dy; warps 4 to
 * 7 compute g and the update, which takes longer (of two warps a scheduler seems to prefer the younger). Four lanes share a row of the strip, in
 * vectors. A thread has TILE / 32 adjacent units u of g (TILE,STRIP), and 8 rows n of dx (ROWS,STRIP), ROWS / 8 apart, for a part of the units.
 * Both halves execute TILE ROWS STRIP multiplications a tile; in wide strips a thread of g reads 4 vectors from shared memory for 48 FMAs, one of
 * dx 20 for 384, most of them the same for several lanes. v is loaded directly into registers of the thread that updates it, one tile ahead. At
 * 64 rows multiplications bound the kernel, 28 us for U = 1024, I = 6272 at 50 TFLOP/s. */
#include "calculators/cuda/gemm/backward_sgd_fp32_tiles.cuh"
#include "calculators/cuda/launch.cuh"

static __device__ __forceinline__ void add_product(float4 &sum, float a, float4 b)
{
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

/* The rule that is_for_velocity accepts: with a velocity, without Nesterov momentum. */
static __device__ __forceinline__ void move_one(float &w, float &v, float g, float rate, const sdlf_sgd_rule &rule)
{
    v = rule.momentum * v + (g + rule.decay * w);
    w -= rate * v;
}

/* One vector store, which the compiler does not always generate. */
static __device__ __forceinline__ void store_vector(float *to, float4 v)
{
    asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

/* ---- threads 128 to 255, counted from 0: g and the update ---- */

template <class S>
static __device__ __forceinline__ void backward_sgd_gradient(const float (&x)[S::rows][S::strip], const stage<S> &tile,
                                                             held<S> &velocity, const backward_sgd &s, float rate,
                                                             int i0, int u0, int thread)
{
    int lane = thread % LANES, u = thread / LANES * S::units;
    float4 sums[S::units][S::vectors] = {};
#pragma unroll 16
    for (int n = 0; n < S::rows; n++) {
        float dy[S::units];
        float4 value[S::vectors];
        if constexpr (S::units == 4) {
            float4 four = vector_at(&tile.dy[n][u]);
            dy[0] = four.x;
            dy[1] = four.y;
            dy[2] = four.z;
            dy[3] = four.w;
        } else {
            float2 two = *reinterpret_cast<const float2 *>(&tile.dy[n][u]);
            dy[0] = two.x;
            dy[1] = two.y;
        }
#pragma unroll
        for (int j = 0; j < S::vectors; j++) value[j] = vector_at(&x[n][column_of(lane, j)]);
#pragma unroll
        for (int k = 0; k < S::units; k++) {
#pragma unroll
            for (int j = 0; j < S::vectors; j++) add_product(sums[k][j], dy[k], value[j]);
        }
    }
    if (u0 + u >= s.units) return;
    float4 w[S::units][S::vectors];
#pragma unroll
    for (int k = 0; k < S::units; k++) {
#pragma unroll
        for (int j = 0; j < S::vectors; j++) w[k][j] = vector_at(&tile.w[u + k][column_of(lane, j)]);
    }
    int64_t at = static_cast<int64_t>(u0 + u) * s.inputs + i0;
#pragma unroll
    for (int k = 0; k < S::units; k++) {
#pragma unroll
        for (int j = 0; j < S::vectors; j++) {
            const int column = column_of(lane, j);
            float4 &m = w[k][j], &v = velocity.v[k][j], g = sums[k][j];
            move_one(m.x, v.x, g.x, rate, s.rule);
            move_one(m.y, v.y, g.y, rate, s.rule);
            move_one(m.z, v.z, g.z, rate, s.rule);
            move_one(m.w, v.w, g.w, rate, s.rule);
            if (i0 + column >= s.inputs) continue;
            store_vector(s.w + at + column, m);
            __stcs(reinterpret_cast<float4 *>(s.v + at + column), v);
        }
        at += s.inputs;
    }
}

/* ---- threads 0 to 127: dx ---- */

template <class S>
static __device__ __forceinline__ void backward_sgd_input(float4 (&dx)[BAND][S::vectors], const stage<S> &tile,
                                                          int thread)
{
    int lane = thread % LANES, line = thread / LANES % S::lines, part = thread / LANES / S::lines;
#pragma unroll 2
    for (int u = 4 * part; u < S::tile; u += 4 * S::parts) {
        float4 w[4][S::vectors];
#pragma unroll
        for (int k = 0; k < 4; k++) {
#pragma unroll
            for (int j = 0; j < S::vectors; j++) w[k][j] = vector_at(&tile.w[u + k][column_of(lane, j)]);
        }
#pragma unroll
        for (int r = 0; r < BAND; r++) {
            float4 dy = vector_at(&tile.dy[line + r * S::lines][u]);
#pragma unroll
            for (int j = 0; j < S::vectors; j++) {
                add_product(dx[r][j], dy.x, w[0][j]);
                add_product(dx[r][j], dy.y, w[1][j]);
                add_product(dx[r][j], dy.z, w[2][j]);
                add_product(dx[r][j], dy.w, w[3][j]);
            }
        }
    }
}

/* A barrier of all threads; the halves reach it at different instructions, which __syncthreads() does not allow (nor bar.sync, says synccheck). */
static __device__ __forceinline__ void await_halves()
{
    asm volatile("barrier.sync 0;" ::: "memory");
}

/* Adds the partial sums over units in shared memory, in order, and writes dx. Called by all threads. */
template <class S>
static __device__ __forceinline__ void finish_input(const float4 (&dx)[BAND][S::vectors], shared_memory<S> &shared,
                                                    const backward_sgd &s, int i0)
{
    __syncthreads();
    if (threadIdx.x < HALF) {
        int lane = threadIdx.x % LANES, line = threadIdx.x / LANES % S::lines, part = threadIdx.x / LANES / S::lines;
#pragma unroll
        for (int r = 0; r < BAND; r++) {
#pragma unroll
            for (int j = 0; j < S::vectors; j++)
                *reinterpret_cast<float4 *>(&shared.dx[part][line + r * S::lines][column_of(lane, j)]) = dx[r][j];
        }
    }
    __syncthreads();
    const int chunks = S::strip / 4;
#pragma unroll 1 /* code that runs once is not in the instruction cache */
    for (int e = threadIdx.x; e < S::rows * chunks; e += THREADS) {
        int n = e / chunks, column = e % chunks * 4;
        if (n >= s.rows || i0 + column >= s.inputs) continue;
        float4 sum = vector_at(&shared.dx[0][n][column]), x = vector_at(&shared.x[n][column]);
#pragma unroll
        for (int part = 1; part < S::parts; part++) {
            float4 other = vector_at(&shared.dx[part][n][column]);
            sum.x += other.x;
            sum.y += other.y;
            sum.z += other.z;
            sum.w += other.w;
        }
        if (s.activation.function != SDLF_IDENTITY) {
            sum.x *= activation_slope(s.activation, x.x);
            sum.y *= activation_slope(s.activation, x.y);
            sum.z *= activation_slope(s.activation, x.z);
            sum.w *= activation_slope(s.activation, x.w);
        }
        *reinterpret_cast<float4 *>(s.dx + static_cast<int64_t>(n) * s.inputs + i0 + column) = sum;
    }
}

/* ---- the kernel ---- */

/* The biases, in a block of their own: four units per thread. */
static __device__ void backward_sgd_biases(const backward_sgd &s, float rate)
{
    for (int u = 4 * threadIdx.x; u < s.units; u += 4 * THREADS) {
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 16
        for (int n = 0; n < s.rows; n++) {
            float4 dy = vector_at(s.dy + static_cast<int64_t>(n) * s.units + u);
            sum.x += dy.x;
            sum.y += dy.y;
            sum.z += dy.z;
            sum.w += dy.w;
        }
        move_bias(s, u, sum.x, rate);
        move_bias(s, u + 1, sum.y, rate);
        move_bias(s, u + 2, sum.z, rate);
        move_bias(s, u + 3, sum.w, rate);
    }
}

/* All tiles, for the threads of the gradient. */
template <class S>
static __device__ __forceinline__ void update_tiles(shared_memory<S> &shared, const backward_sgd &s, int i0)
{
    const int thread = static_cast<int>(threadIdx.x) - HALF, tiles = (s.units + S::tile - 1) / S::tile;
    held<S> velocity;
    cp_async_commit();
    load_velocity<S>(velocity, s, i0, 0, thread);
    cp_async_wait<0>(); /* its elements of x */
    const float rate = *s.rate;
    for (int tile = 0; tile < tiles; tile++) {
        await_halves();
        backward_sgd_gradient<S>(shared.x, shared.stages[tile % S::stages], velocity, s, rate, i0, tile * S::tile,
                                 thread);
        if (tile + 1 < tiles) load_velocity<S>(velocity, s, i0, (tile + 1) * S::tile, thread);
    }
}

/* All tiles, for the threads of dx. */
template <class S>
static __device__ __forceinline__ void dgrad_tiles(float4 (&dx)[BAND][S::vectors], shared_memory<S> &shared,
                                                   const backward_sgd &s, int i0)
{
    const int thread = threadIdx.x, tiles = (s.units + S::tile - 1) / S::tile;
#pragma unroll
    for (int ahead = 0; ahead < S::stages - 1; ahead++) {
        if (ahead < tiles) fetch_w<S>(shared.stages[ahead], s, i0, ahead * S::tile, thread);
    }
#pragma unroll
    for (int ahead = 0; ahead < S::stages - 1; ahead++) {
        if (ahead < tiles) fetch_dy<S>(shared.stages[ahead], s, ahead * S::tile, thread);
        cp_async_commit();
    }
    for (int tile = 0; tile < tiles; tile++) {
        int next = tile + S::stages - 1;
        cp_async_wait<S::stages - 2>();
        await_halves();
        if (next < tiles) {
            fetch_w<S>(shared.stages[next % S::stages], s, i0, next * S::tile, thread);
            fetch_dy<S>(shared.stages[next % S::stages], s, next * S::tile, thread);
        }
        cp_async_commit();
        if (tile + 1 < tiles) prefetch_tile<S>(s.v, s, i0, (tile + 1) * S::tile, thread);
        if (s.dx != nullptr) backward_sgd_input<S>(dx, shared.stages[tile % S::stages], thread);
    }
}

/* One block per strip, in the last blocks of the grid; the first block updates the biases, if there are any. */
template <class S> static __global__ void __launch_bounds__(THREADS, 1) backward_sgd_fp32(backward_sgd s, int strips)
{
    extern __shared__ __align__(16) unsigned char memory[];
    shared_memory<S> &shared = *reinterpret_cast<shared_memory<S> *>(memory);
    const int strip = static_cast<int>(blockIdx.x) - (static_cast<int>(gridDim.x) - strips), i0 = strip * S::strip;
    const bool carries = threadIdx.x < HALF;
    if (strip >= 0) prefetch_tile<S>(carries ? s.w : s.v, s, i0, 0, static_cast<int>(threadIdx.x) % HALF);
    wait_and_launch_dependent_grids();
    if (strip < 0) {
        backward_sgd_biases(s, *s.rate);
        return;
    }
    load_strip<S>(shared.x, s, i0);
    float4 dx[BAND][S::vectors] = {};
    if (carries)
        dgrad_tiles<S>(dx, shared, s, i0);
    else
        update_tiles<S>(shared, s, i0);
    if (s.dx != nullptr) finish_input<S>(dx, shared, s, i0);
}

template <class S> static sdlf_status launch(const cuda_calculator *calculator, const backward_sgd &s)
{
    const int strips = (s.inputs + S::strip - 1) / S::strip, blocks = strips + (s.b != nullptr);
    const int shared = (int)shared_alone(calculator, blocks, sizeof(shared_memory<S>));
    sdlf_status status = allow_shared(backward_sgd_fp32<S>, shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, backward_sgd_fp32<S>, (unsigned)blocks, THREADS, shared, s, strips);
    return cuda_check_launch("gemm_backward_sgd");
}

template <int STRIP> static sdlf_status launch_rows(const cuda_calculator *calculator, const backward_sgd &s)
{
    if (s.rows <= 16) return launch<shape<16, STRIP>>(calculator, s);
    if (s.rows <= 64) return launch<shape<64, STRIP>>(calculator, s);
    return launch<shape<128, STRIP>>(calculator, s);
}

extern "C" sdlf_status cuda_backward_sgd_fp32(sdlf_calculator *base, const sdlf_operation *op, bool wide)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const backward_sgd s = backward_sgd_of(op);
    return wide ? launch_rows<48>(calculator, s) : launch_rows<16>(calculator, s);
}
