/* SPDX-License-Identifier: MIT */
/* lstm_forward and gru_forward in one kernel. A warp's task: all gates of a unit, for up to 8 samples. Lane l has the sum of gate l % 4 and
 * sample l / 4 % S; the four lanes of a sample share their gates by shuffles, all compute the new state, and each write it to a quarter of the
 * cluster's blocks. a of the next task, or of the next step's first, is loaded before the products of this one, and so before the barrier.
 *
 * Moves a, y and the kept values once, and the weights once. Within each step, each block reads its part of the weights, and its samples'
 * states once for each unit and again for each tile of samples, from shared memory. */
#include "calculators/cuda/recurrent/cells.cuh"
#include "calculators/cuda/recurrent/recurrent.cuh"

/* Load the weights unit by unit, gates of each, and their bias. Padding of a row is 0. */
template <typename T, int GATES>
static __device__ __forceinline__ void load_weight(const recurrent_arguments &p, const recurrent_block<T> &b)
{
    const T *weight = static_cast<const T *>(p.weight), *bias = static_cast<const T *>(p.bias);
    const int lane = static_cast<int>(threadIdx.x) % WARP, line = p.tiling.line;
    for (int row = static_cast<int>(threadIdx.x) / WARP; row < b.units * GATES; row += WARPS) {
        const int64_t from = static_cast<int64_t>(row % GATES) * p.units + b.unit + row / GATES;
#pragma unroll 4
        for (int k = lane; k < line; k += WARP)
            b.weight[row * line + k] = k < p.units ? weight[from * p.units + k] : T(0);
        if (lane == 0) b.bias[row] = bias != nullptr ? bias[from] : T(0);
    }
}

/* Load h0 into the first buffer, c0 into the cells. */
template <typename T>
static __device__ __forceinline__ void load_states(const recurrent_arguments &p, const recurrent_block<T> &b)
{
    if (p.h0.data != nullptr)
        load_rows<T, T>(b.rows, p.tiling.line, row_of<const T>(p.h0, 0, b.sample), p.h0.sample, b.samples, p.units);
    for (int i = static_cast<int>(threadIdx.x); i < b.units * b.samples; i += RECURRENT_THREADS) {
        const int unit = i / b.samples, n = i % b.samples;
        b.carried[unit * p.tiling.samples + n] =
            p.c0.data != nullptr ? row_of<const T>(p.c0, 0, b.sample + n)[b.unit + unit] : T(0);
    }
}

/* This lane's unit, sample and gate of a task. Lanes from 4 S on are duplicates, and only write to the cluster. */
template <int GATES, int S> struct lane_of_task {
    int unit, sample, gate;
    bool is_there, writes;

    template <typename T> __device__ __forceinline__ lane_of_task(const recurrent_block<T> &b, int task)
    {
        const int lane = static_cast<int>(threadIdx.x) % WARP;
        unit = task / b.tiles, sample = task % b.tiles * S + lane / 4 % S, gate = lane % 4;
        is_there = unit < b.units && sample < b.samples;
        writes = is_there && lane < 4 * S;
    }
};

template <typename T, int GATES, int S>
static __device__ __forceinline__ T load_a(const recurrent_arguments &p, const recurrent_block<T> &b, int t, int task)
{
    const lane_of_task<GATES, S> at(b, task);
    if (t >= p.steps || !at.is_there || at.gate >= GATES) return 0;
    return row_of<const T>(p.a, place_of(p, t), b.sample + at.sample)[at.gate * p.units + b.unit + at.unit];
}

/* Compute the new state from this lane's sum and a. `value` is set to the lane's gate, `kept` to c' or q. */
template <typename T, int GATES, int S>
static __device__ __forceinline__ T state_of(const recurrent_block<T> &b, const lane_of_task<GATES, S> &at, T sum, T a,
                                             const T *before, T *cell, T &value, T &kept)
{
    T h;
    if constexpr (GATES == 4) {
        value = at.gate == 2 ? tanh(sum + a) : sigmoid(sum + a);
        const T i = __shfl_sync(ALL_LANES, value, 0, 4), f = __shfl_sync(ALL_LANES, value, 1, 4);
        const T g = __shfl_sync(ALL_LANES, value, 2, 4), o = __shfl_sync(ALL_LANES, value, 3, 4);
        kept = at.is_there ? *cell : T(0);
        h = lstm_state(i, f, g, o, kept);
        __syncwarp();
        if (at.writes && at.gate == 0) *cell = kept;
    } else {
        value = sigmoid(sum + a);
        const T r = __shfl_sync(ALL_LANES, value, 0, 4), z = __shfl_sync(ALL_LANES, value, 1, 4);
        const T fresh = tanh(__shfl_sync(ALL_LANES, a, 2, 4) + r * __shfl_sync(ALL_LANES, sum, 2, 4));
        kept = __shfl_sync(ALL_LANES, sum, 2, 4);
        if (at.gate == 2) value = fresh;
        h = gru_state(z, fresh, at.is_there ? *before : T(0));
    }
    return h;
}

template <typename T, int GATES, int S, bool CLUSTER>
static __device__ __forceinline__ void forward_task(const recurrent_arguments &p, const recurrent_block<T> &b, int t,
                                                    int task, T a)
{
    const lane_of_task<GATES, S> at(b, task);
    const int line = p.tiling.line, lane = static_cast<int>(threadIdx.x) % WARP, unit = b.unit + at.unit;
    const T *states = b.rows + (CLUSTER ? t % 2 * b.buffer : 0);
    T sums[4 * S] = {}, value, kept;
    multiply_rows<T, GATES, 4, S>(sums, b.weight + at.unit * GATES * line, states + task % b.tiles * S * line, line);
    T sum = add_lanes(sums);
    if (at.gate < GATES) sum += b.bias[at.unit * GATES + at.gate];
    const T h = state_of<T, GATES, S>(b, at, sum, a, states + at.sample * line + unit,
                                      b.carried + at.unit * p.tiling.samples + at.sample, value, kept);
    if (CLUSTER && at.is_there && t + 1 < p.steps)
        write_to_all(b.rows + (t + 1) % 2 * b.buffer + at.sample * line + unit, h, lane / (4 * S) * 4 + lane % 4,
                     WARP / S);
    if (!at.writes) return;
    const int64_t place = place_of(p, t), sample = b.sample + at.sample;
    if (p.gates.data != nullptr && at.gate < GATES) row_of<T>(p.gates, place, sample)[at.gate * p.units + unit] = value;
    if (at.gate != 0) return;
    row_of<T>(p.y, place, sample)[unit] = h;
    if (p.kept.data != nullptr) row_of<T>(p.kept, place, sample)[unit] = kept;
}

template <typename T, int GATES, int S, bool CLUSTER>
static __global__ void __launch_bounds__(RECURRENT_THREADS, 1) recurrent_forward(recurrent_arguments p)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const int warp = static_cast<int>(threadIdx.x) / WARP;
    if (CLUSTER) wait_and_launch_dependent_grids(); /* a cooperative launch does not overlap the previous kernel */
    const recurrent_block<T> b = block_of<T, CLUSTER>(p, memory);
    load_weight<T, GATES>(p, b);
    __syncthreads();
    load_states(p, b);
    T a = load_a<T, GATES, S>(p, b, 0, warp);
    if (CLUSTER) await_group<CLUSTER>(p); /* every block is ready before another one writes to it */
    __syncthreads();
    for (int t = 0; t < p.steps; t++) {
        for (int task = warp; task < b.units * b.tiles; task += WARPS) {
            const T next = load_a<T, GATES, S>(p, b, t, task + WARPS);
            forward_task<T, GATES, S, CLUSTER>(p, b, t, task, a);
            a = next;
        }
        if (t + 1 == p.steps) break;
        a = load_a<T, GATES, S>(p, b, t + 1, warp);
        await_group<CLUSTER>(p);
        if (CLUSTER) continue;
        load_exchanged(b.rows, p.tiling.line, row_of<const T>(p.y, place_of(p, t), b.sample), p.y.sample, b.samples,
                       p.units, p.aligned);
        __syncthreads();
    }
    leave_group<CLUSTER>(p, p.steps - 1);
}

extern "C" sdlf_status recurrent_forward_cuda(const cuda_calculator *calculator, const recurrent_arguments *p,
                                              sdlf_dtype dtype, int gates)
{
    sdlf_status status = SDLF_OK;
    with_recurrent_shape(dtype, gates, p->tiling, [&](auto zero, auto count, auto tile, auto cluster) {
        status = launch_recurrent<cluster.value>(
            calculator, recurrent_forward<decltype(zero), count.value, tile.value, cluster.value>, *p,
            "recurrent_forward");
    });
    return status;
}
