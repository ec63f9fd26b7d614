/* SPDX-License-Identifier: MIT */
/* lstm_backward and gru_backward in one kernel, from the last step to the first. A block has some units: their columns of the weights, transposed,
 * in its shared memory. A warp's task: dh of four units (with one sample: of one unit) and up to 8 samples, the product of the later step's db with
 * these columns; a lane then has one cell, and computes da and db. So there is one barrier a step, and reductions are over G H elements. What a
 * cell needs of the forward pass is loaded a task ahead, for a step's first task before the barrier.
 *
 * Moves gates, cells (or products and y), dy and da (and db) once, and the weights once. */
#include "calculators/cuda/recurrent/cells.cuh"
#include "calculators/cuda/recurrent/recurrent.cuh"

template <int S> constexpr int TASK_UNITS = S == 1 ? 1 : 4;

/* Load the weights column by column; the padding of columns, and columns past the block's last one, are 0. */
template <typename T, int GATES>
static __device__ __forceinline__ void load_columns(const recurrent_arguments &p, const recurrent_block<T> &b)
{
    const T *weight = static_cast<const T *>(p.weight);
    const int rows = p.tiling.rows, line = p.tiling.line, width = GATES * p.units;
    for (int i = static_cast<int>(threadIdx.x); i < rows * line; i += RECURRENT_THREADS) {
        const int unit = i % rows, k = i / rows;
        const bool is_there = unit < b.units && k < width;
        b.weight[unit * line + k] = is_there ? weight[static_cast<int64_t>(k) * p.units + b.unit + unit] : T(0);
    }
}

/* Load dcn into the carried values; gru: 0. */
template <typename T, int GATES>
static __device__ __forceinline__ void load_carried(const recurrent_arguments &p, const recurrent_block<T> &b)
{
    for (int i = static_cast<int>(threadIdx.x); i < b.units * b.samples; i += RECURRENT_THREADS) {
        const int unit = i / b.samples, n = i % b.samples;
        const bool given = GATES == 4 && p.dcn.data != nullptr;
        b.carried[unit * p.tiling.samples + n] = given ? row_of<const T>(p.dcn, 0, b.sample + n)[b.unit + unit] : T(0);
    }
}

/* This lane's unit and sample of a task. Lanes from 4 S on (with one sample: from 1 on) are duplicates, and only write to the cluster. */
template <int S> struct cell_of_task {
    int unit, sample;
    bool is_there, writes;

    template <typename T> __device__ __forceinline__ cell_of_task(const recurrent_block<T> &b, int task)
    {
        constexpr int UNITS = TASK_UNITS<S>;
        const int lane = static_cast<int>(threadIdx.x) % WARP;
        unit = task / b.tiles * UNITS + lane % UNITS, sample = task % b.tiles * S + lane / UNITS % S;
        is_there = unit < b.units && sample < b.samples;
        writes = is_there && lane < UNITS * S;
    }
};

template <typename T, int GATES, int S>
static __device__ __forceinline__ cell_inputs<T, GATES> load_inputs(const recurrent_arguments &p,
                                                                    const recurrent_block<T> &b, int t, int task)
{
    const cell_of_task<S> at(b, task);
    cell_inputs<T, GATES> x = {};
    if (t < 0 || !at.is_there) return x;
    const int64_t place = place_of(p, t), sample = b.sample + at.sample;
    const int unit = b.unit + at.unit;
    const recurrent_rows &states = GATES == 4 ? p.kept : p.y, &first = GATES == 4 ? p.c0 : p.h0;
#pragma unroll
    for (int g = 0; g < GATES; g++) x.gate[g] = row_of<const T>(p.gates, place, sample)[g * p.units + unit];
    x.kept = row_of<const T>(p.kept, place, sample)[unit];
    if (t > 0)
        x.before = row_of<const T>(states, place_of(p, t - 1), sample)[unit];
    else if (first.data != nullptr)
        x.before = row_of<const T>(first, 0, sample)[unit];
    if (!p.last_only || t == p.steps - 1) x.dy = row_of<const T>(p.dy, place, sample)[unit];
    return x;
}

/* Store da and db of a step to global memory, and db to the cluster. */
template <typename T, int GATES, int S, bool CLUSTER>
static __device__ __forceinline__ void give(const recurrent_arguments &p, const recurrent_block<T> &b, int t, int last,
                                            const cell_of_task<S> &at, const cell_gradient<T, GATES> &made)
{
    constexpr int COUNT = TASK_UNITS<S> * S;
    const int lane = static_cast<int>(threadIdx.x) % WARP, unit = b.unit + at.unit;
    const int64_t place = place_of(p, t), sample = b.sample + at.sample;
    if (!at.is_there) return;
#pragma unroll
    for (int g = 0; g < GATES; g++) {
        const T db = GATES == 3 && g == 2 ? made.db : made.da[g];
        if (at.writes) {
            row_of<T>(p.da, place, sample)[g * p.units + unit] = made.da[g];
            if (GATES == 3) row_of<T>(p.db, place, sample)[g * p.units + unit] = db;
        }
        if (CLUSTER && t > last)
            write_to_all(b.rows + t % 2 * b.buffer + at.sample * p.tiling.line + g * p.units + unit, db, lane / COUNT,
                         WARP / COUNT);
    }
}

/* Step t; -1 is after the first step, and computes dh0. */
template <typename T, int GATES, int S, bool CLUSTER>
static __device__ __forceinline__ void backward_task(const recurrent_arguments &p, const recurrent_block<T> &b, int t,
                                                     int last, int task, const cell_inputs<T, GATES> &x)
{
    constexpr int UNITS = TASK_UNITS<S>;
    const cell_of_task<S> at(b, task);
    const int line = p.tiling.line, sample = b.sample + at.sample, unit = b.unit + at.unit;
    const T *given = b.rows + (CLUSTER ? (t + 1) % 2 * b.buffer : 0);
    T *place = b.carried + at.unit * p.tiling.samples + at.sample, carried = at.is_there ? *place : T(0), dh = 0;
    if (t < p.steps - 1) {
        T sums[UNITS * S] = {};
        multiply_rows<T, UNITS, UNITS, S>(sums, b.weight + task / b.tiles * UNITS * line,
                                          given + task % b.tiles * S * line, line);
        dh = add_lanes(sums);
        if (GATES == 3) dh += carried;
    }
    if (t < 0) {
        if (at.writes) row_of<T>(p.dh0, 0, sample)[unit] = dh;
        return;
    }
    const cell_gradient<T, GATES> made = cell_gradient_of(x, dh + x.dy, carried);
    __syncwarp(); /* all lanes of a cell have read it */
    if (at.writes) *place = carried;
    if (GATES == 4 && t == 0 && at.writes && p.dc0.data != nullptr) row_of<T>(p.dc0, 0, sample)[unit] = carried;
    give<T, GATES, S, CLUSTER>(p, b, t, last, at, made);
}

template <typename T, int GATES, int S, bool CLUSTER>
static __global__ void __launch_bounds__(RECURRENT_THREADS, 1) recurrent_backward(recurrent_arguments p)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const int warp = static_cast<int>(threadIdx.x) / WARP, last = p.dh0.data != nullptr ? -1 : 0;
    if (CLUSTER) wait_and_launch_dependent_grids(); /* a cooperative launch does not overlap the previous kernel */
    const recurrent_block<T> b = block_of<T, CLUSTER>(p, memory);
    const int tasks = (b.units + TASK_UNITS<S> - 1) / TASK_UNITS<S> * b.tiles;
    load_columns<T, GATES>(p, b);
    load_carried<T, GATES>(p, b);
    cell_inputs<T, GATES> x = load_inputs<T, GATES, S>(p, b, p.steps - 1, warp);
    if (CLUSTER) await_group<CLUSTER>(p); /* every block is ready before another one writes to it */
    __syncthreads();
    for (int t = p.steps - 1;; t--) {
        for (int task = warp; task < tasks; task += WARPS) {
            const cell_inputs<T, GATES> next = load_inputs<T, GATES, S>(p, b, t, task + WARPS);
            backward_task<T, GATES, S, CLUSTER>(p, b, t, last, task, x);
            x = next;
        }
        if (t == last) break;
        x = load_inputs<T, GATES, S>(p, b, t - 1, warp);
        await_group<CLUSTER>(p);
        if (CLUSTER) continue;
        load_exchanged(b.rows, p.tiling.line, row_of<const T>(p.db, place_of(p, t), b.sample), p.db.sample, b.samples,
                       GATES * p.units, p.aligned);
        __syncthreads();
    }
    leave_group<CLUSTER>(p, p.steps - 1 - last);
}

extern "C" sdlf_status recurrent_backward_cuda(const cuda_calculator *calculator, const recurrent_arguments *p,
                                               sdlf_dtype dtype, int gates)
{
    sdlf_status status = SDLF_OK;
    with_recurrent_shape(dtype, gates, p->tiling, [&](auto zero, auto count, auto tile, auto cluster) {
        status = launch_recurrent<cluster.value>(
            calculator, recurrent_backward<decltype(zero), count.value, tile.value, cluster.value>, *p,
            "recurrent_backward");
    });
    return status;
}
