/* SPDX-License-Identifier: MIT */
/* lstm and gru over a sequence in one kernel: what the forward and the backward pass share. A block of 16 warps holds a part of the
 * weights; a warp's task is 4 rows of it (lstm: the gates of a unit; gru: its three; backward: columns of four units, or of one) times up
 * to 8 samples. Lanes split the reduction, 16 bytes at a time, and then add their sums by shuffles, which leave sum l % (4 S) in lane l.
 * The order of every sum is fixed. */
#ifndef SDLF_CALCULATORS_CUDA_RECURRENT_CUH
#define SDLF_CALCULATORS_CUDA_RECURRENT_CUH

#include <type_traits>

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/recurrent/recurrent.h"

constexpr int WARP = 32, WARPS = RECURRENT_THREADS / WARP;
constexpr unsigned ALL_LANES = 0xffffffffu;

/* 16 bytes of a row. */
template <typename T> struct alignas(16) piece {
    T e[16 / sizeof(T)];
};
template <typename T> constexpr int PIECE = static_cast<int>(16 / sizeof(T));

/* A block's units and samples, and its shared memory: its part of the weights, exchanged rows (cluster: two buffers of them), the bias
 * of its rows (forward), and a value per unit and sample that is carried from step to step. */
template <typename T> struct recurrent_block {
    T *weight, *rows, *bias, *carried;
    int buffer; /* elements of a buffer */
    int unit, units, sample, samples /* first, and how many */, tiles /* of samples */;
};

/* Clears the exchanged rows. */
template <typename T, bool CLUSTER>
static __device__ __forceinline__ recurrent_block<T> block_of(const recurrent_arguments &p, void *memory)
{
    const recurrent_tiling &cut = p.tiling;
    recurrent_block<T> b;
    b.unit = static_cast<int>(blockIdx.x) * cut.units, b.sample = static_cast<int>(blockIdx.y) * cut.samples;
    b.units = max(0, min(cut.units, p.units - b.unit)), b.samples = max(0, min(cut.samples, p.samples - b.sample));
    b.tiles = (b.samples + cut.tile - 1) / cut.tile;
    b.buffer = (cut.samples + cut.tile - 1) / cut.tile * cut.tile * cut.line;
    b.weight = static_cast<T *>(memory);
    b.rows = b.weight + cut.rows * cut.line;
    b.bias = b.rows + (CLUSTER ? 2 : 1) * b.buffer;
    b.carried = b.bias + cut.rows;
    for (int i = static_cast<int>(threadIdx.x); i < (CLUSTER ? 2 : 1) * b.buffer; i += RECURRENT_THREADS) b.rows[i] = 0;
    return b;
}

/* The position of step t in the sequence. */
static __device__ __forceinline__ int64_t place_of(const recurrent_arguments &p, int t)
{
    return p.reverse ? p.steps - 1 - t : t;
}

/* Row n of an operand, counted over all samples, at a position. */
template <typename T>
static __device__ __forceinline__ T *row_of(const recurrent_rows &x, int64_t place, int64_t sample)
{
    return static_cast<T *>(x.data) + place * x.step + sample * x.sample;
}

/* sum[s 4 + r] (R = 1: sum[s]) += row r of w times row s of x, over this lane's share of k. */
template <typename T, int ROWS, int R, int S>
static __device__ __forceinline__ void multiply_rows(T (&sum)[R * S], const T *w, const T *x, int line)
{
#pragma unroll S == 1 ? 4 : 1
    for (int k = PIECE<T> * (static_cast<int>(threadIdx.x) % WARP); k < line; k += PIECE<T> * WARP) {
        piece<T> row[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) row[r] = *reinterpret_cast<const piece<T> *>(w + r * line + k);
#pragma unroll
        for (int s = 0; s < S; s++) {
            const piece<T> state = *reinterpret_cast<const piece<T> *>(x + s * line + k);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = 0; i < PIECE<T>; i++) sum[s * R + r] += row[r].e[i] * state.e[i];
        }
    }
}

/* One step of add_lanes, and all later ones: lanes that differ in bit HALF exchange halves of their HALF * 2 sums. */
template <typename T, int HALF> static __device__ __forceinline__ void halve_lanes(T *sum)
{
    const bool upper = (threadIdx.x & HALF) != 0;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        const T low = sum[i], high = sum[i + HALF];
        sum[i] = (upper ? high : low) + __shfl_xor_sync(ALL_LANES, upper ? low : high, HALF);
    }
    if constexpr (HALF > 1) halve_lanes<T, HALF / 2>(sum);
}

/* Reduces COUNT sums over the warp: returns sum l % COUNT in lane l. COUNT is a power of two, 32 at most. */
template <typename T, int COUNT> static __device__ __forceinline__ T add_lanes(T (&sum)[COUNT])
{
    if constexpr (COUNT > 1) halve_lanes<T, COUNT / 2>(sum);
#pragma unroll
    for (int bit = COUNT; bit < WARP; bit *= 2) sum[0] += __shfl_xor_sync(ALL_LANES, sum[0], bit);
    return sum[0];
}

/* ---- exchange between blocks ---- */

template <typename V> static __device__ __forceinline__ V load_past_l1(const V *from)
{
    return __ldcg(from);
}

/* Load rows that other blocks have written, or a state, into rows of `line` elements in shared memory. Bypasses L1, which may be stale. */
template <typename T, typename V>
static __device__ __forceinline__ void load_rows(T *to, int line, const T *from, int64_t stride, int count, int width)
{
    constexpr int EACH = sizeof(V) / sizeof(T);
    const int pieces = width / EACH, thread = static_cast<int>(threadIdx.x);
    int along = WARP; /* threads along a row */
    while (along < pieces && along < RECURRENT_THREADS) along *= 2;
    for (int n = thread / along; n < count; n += RECURRENT_THREADS / along) {
        const V *row = reinterpret_cast<const V *>(from + n * stride);
        V *place = reinterpret_cast<V *>(to + n * line);
#pragma unroll 4
        for (int k = thread % along; k < pieces; k += along) place[k] = load_past_l1(row + k);
    }
}

template <typename T>
static __device__ __forceinline__ void load_exchanged(T *to, int line, const T *from, int64_t stride, int count,
                                                      int width, bool aligned)
{
    using V = std::conditional_t<sizeof(T) == 4, float4, double2>;
    if (aligned)
        load_rows<T, V>(to, line, from, stride, count, width);
    else
        load_rows<T, T>(to, line, from, stride, count, width);
}

static __device__ __forceinline__ unsigned load_acquire(const unsigned *from)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

/* A barrier of the blocks of a group, on the group's ticket: each adds 1, the first one 2^31 - (blocks - 1), so that the highest bit
 * flips when the last one arrives, and the ticket is 0 again after every second barrier. */
static __device__ __forceinline__ void arrive_at_group(const recurrent_arguments &p, bool waits)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned *ticket = p.tickets + blockIdx.y * RECURRENT_TICKETS;
        const unsigned step = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        __threadfence();
        const unsigned before = atomicAdd(ticket, step);
        while (waits && ((load_acquire(ticket) ^ before) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

/* Wait until the outputs of the group's blocks are visible to all of them. */
template <bool CLUSTER> static __device__ __forceinline__ void await_group(const recurrent_arguments &p)
{
    if constexpr (CLUSTER) {
        __syncwarp();
        if (gridDim.x == 1)
            __syncthreads();
        else
            cluster_sync();
    } else {
        arrive_at_group(p, true);
    }
}

/* Leave the ticket at 0, after this many barriers. */
template <bool CLUSTER> static __device__ __forceinline__ void leave_group(const recurrent_arguments &p, int barriers)
{
    if (!CLUSTER && barriers % 2 != 0) arrive_at_group(p, false);
}

/* Store a value at the same offset in the shared memory of all blocks of the cluster. `first`, `step`: the blocks that this lane writes to; other
 * lanes with the same value write to the rest. */
template <typename T> static __device__ __forceinline__ void write_to_all(T *place, T number, int first, int step)
{
    if (gridDim.x == 1) {
        if (first == 0) *place = number;
        return;
    }
    for (int block = first; block < static_cast<int>(gridDim.x); block += step) dsmem_store(place, block, number);
}

/* ---- launches ---- */

/* All blocks are resident at once: one fits on each multiprocessor. */
template <typename... Parameters, typename... Arguments>
static void launch_cooperative(const cuda_calculator *calculator, void (*kernel)(Parameters...), dim3 blocks,
                               dim3 threads, int shared, Arguments... arguments)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = static_cast<size_t>(shared);
    config.stream = calculator->stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

template <bool CLUSTER, typename Kernel>
static sdlf_status launch_recurrent(const cuda_calculator *calculator, Kernel *kernel, const recurrent_arguments &p,
                                    const char *name)
{
    const dim3 blocks(static_cast<unsigned>(p.tiling.blocks), static_cast<unsigned>(p.tiling.groups));
    sdlf_status status = allow_shared(kernel, p.tiling.shared);
    if (CLUSTER && status == SDLF_OK) status = allow_cluster(kernel, p.tiling.blocks);
    if (status != SDLF_OK) return status;
    if (CLUSTER)
        launch_cluster(calculator, kernel, blocks, dim3(RECURRENT_THREADS), p.tiling.shared, dim3(blocks.x), p);
    else
        launch_cooperative(calculator, kernel, blocks, dim3(RECURRENT_THREADS), p.tiling.shared, p);
    return cuda_check_launch(name);
}

/* function(zero of the type, gates, samples per tile, whether it is a cluster) */
template <typename Function>
static void with_recurrent_shape(sdlf_dtype dtype, int gates, const recurrent_tiling &cut, Function function)
{
    with_float(dtype, [&](auto zero) {
        auto with_gates = [&](auto count, auto cluster) {
            if constexpr (sizeof zero == 4) {
                if (cut.tile == 8) function(zero, count, std::integral_constant<int, 8>(), cluster);
            }
            if (cut.tile == 4) function(zero, count, std::integral_constant<int, 4>(), cluster);
            if (cut.tile == 1) function(zero, count, std::integral_constant<int, 1>(), cluster);
        };
        auto with_cluster = [&](auto count) {
            if (cut.algorithm == RECURRENT_CLUSTER)
                with_gates(count, std::true_type());
            else
                with_gates(count, std::false_type());
        };
        if (gates == 4)
            with_cluster(std::integral_constant<int, 4>());
        else
            with_cluster(std::integral_constant<int, 3>());
    });
}

#endif
