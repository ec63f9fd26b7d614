/* What a thread of the last layers' kernel (rows/last_layers.cu) does with its numbers of h and with the weights that it holds: on the way
 * to the logits, and on the way back from their gradient. */
#ifndef SDLF_CALCULATORS_CUDA_ROWS_LAST_STEPS_CUH
#define SDLF_CALCULATORS_CUDA_ROWS_LAST_STEPS_CUH

#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/lanes.cuh"
#include "calculators/cuda/rows/last_layers.cuh"
#include "calculators/cuda/sgd.cuh"

enum { MOST_PARTS = 8 /* that are on their way at once */ };

static __device__ __forceinline__ float dot(float4 a, float4 b)
{
    return a.x * b.x + a.y * b.y + (a.z * b.z + a.w * b.w);
}

static __device__ __forceinline__ void add_scaled(float4 &to, float factor, float4 four)
{
    to.x += factor * four.x;
    to.y += factor * four.y;
    to.z += factor * four.z;
    to.w += factor * four.w;
}

/* Four neighbours of h in every `lines`-th row from `line` on; 0 past the last. */
template <int ITEMS>
static __device__ __forceinline__ void finish_hidden(float4 (&h)[ITEMS], const last_layers &l, int line, int lines,
                                                     int i, float4 bias)
{
    const float *from = l.from.parts + i / 64 * l.from.block + line * l.from.line + i % 64;
    for (int first = 0; first < l.from.count; first += MOST_PARTS) {
        float4 part[ITEMS][MOST_PARTS];
#pragma unroll
        for (int e = 0; e < ITEMS * MOST_PARTS; e++) {
            const int k = e / MOST_PARTS, p = e % MOST_PARTS;
            part[k][p] = make_float4(0, 0, 0, 0);
            if (first + p < l.from.count && line + k * lines < l.rows)
                part[k][p] = __ldcg(
                    reinterpret_cast<const float4 *>(from + k * lines * l.from.line + (first + p) * l.from.step));
        }
#pragma unroll
        for (int e = 0; e < ITEMS * MOST_PARTS; e++)
            h[e / MOST_PARTS] = plus(h[e / MOST_PARTS], part[e / MOST_PARTS][e % MOST_PARTS]);
    }
    const float alpha = l.hidden_alpha;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (line + k * lines >= l.rows) continue;
        h[k].x = activate(l.hidden_activation, alpha * h[k].x + bias.x);
        h[k].y = activate(l.hidden_activation, alpha * h[k].y + bias.y);
        h[k].z = activate(l.hidden_activation, alpha * h[k].z + bias.z);
        h[k].w = activate(l.hidden_activation, alpha * h[k].w + bias.w);
    }
}

/* This block's part of the logits of the thread's rows, to the blocks that own these. */
template <int UNITS, int LANES, int ITEMS>
static __device__ __forceinline__ void send_logits(const last_layers &l, last_memory<UNITS, LANES> &m,
                                                   const float4 (&h)[ITEMS], const float4 (&w)[UNITS], int line,
                                                   int lines)
{
    const int blocks = gridDim.x;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int n = line + k * lines;
        float sums[PITCH];
#pragma unroll
        for (int u = 0; u < PITCH; u++) sums[u] = u < UNITS ? dot(h[k], w[u < UNITS ? u : 0]) : 0.0f;
        const int u = add_lanes<LANES / 2, 1>(sums);
        if (n >= l.rows) continue;
#pragma unroll
        for (int j = 0; j < PITCH / LANES; j++)
            write_other(&m.partial[blockIdx.x][n / blocks][u + j], n % blocks, sums[j]);
    }
}

/* From the gradient of all rows: dx of the thread's numbers, and the warp's share of w's gradient to shared memory. */
template <int UNITS, int LANES, int ITEMS>
static __device__ __forceinline__ void go_back(const last_layers &l, last_memory<UNITS, LANES> &m,
                                               const float4 (&h)[ITEMS], const float4 (&w)[UNITS], int line, int lines,
                                               int lane, int i)
{
    float4 g[UNITS] = {};
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int n = line + k * lines;
        if (n >= l.rows) continue;
        float4 dx = {};
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            add_scaled(g[u], m.dy[n][u], h[k]);
            add_scaled(dx, m.dy[n][u], w[u]);
        }
        dx.x *= activation_slope(l.activation, h[k].x);
        dx.y *= activation_slope(l.activation, h[k].y);
        dx.z *= activation_slope(l.activation, h[k].z);
        dx.w *= activation_slope(l.activation, h[k].w);
        if (l.dx != nullptr) *reinterpret_cast<float4 *>(l.dx + static_cast<int64_t>(n) * l.columns + i) = dx;
    }
    const int LEFT = UNITS * LANES / WARP; /* quads of sums that a lane keeps */
    float numbers[4 * UNITS];
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        numbers[4 * u] = g[u].x;
        numbers[4 * u + 1] = g[u].y;
        numbers[4 * u + 2] = g[u].z;
        numbers[4 * u + 3] = g[u].w;
    }
    const int kept = add_lanes<WARP / 2, LANES>(numbers) / 4;
#pragma unroll
    for (int j = 0; j < LEFT; j++)
        *reinterpret_cast<float4 *>(&m.sums[threadIdx.x / WARP][(kept + j) * 4 * LANES + 4 * lane]) =
            make_float4(numbers[4 * j], numbers[4 * j + 1], numbers[4 * j + 2], numbers[4 * j + 3]);
}

/* By one warp. */
template <int UNITS, int LANES>
static __device__ __forceinline__ void move_bias(const last_layers &l, const last_memory<UNITS, LANES> &m, int u,
                                                 float rate)
{
    float sum = 0;
    for (int n = threadIdx.x % WARP; n < l.rows; n += WARP) sum += m.dy[n][u];
    for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % WARP == 0)
        move_at(l.b + u, l.bv != nullptr ? l.bv + u : nullptr, sum, rate, l.rule, l.rule.bias_decay);
}

#endif
