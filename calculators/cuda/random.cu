/* SPDX-License-Identifier: MIT */
/* dropout, random_uniform, random_normal: one thread per group of four elements, one Philox block each; the same values as
 * on every calculator. Dropout reads and writes its tensor once and stores no mask: the backward pass redraws it. */
#include "calculators/cuda/kernels.cuh"
#include "framework/operations/draws.h"

enum { THREADS = 256 };

/* A group of four elements; where it is aligned, it is loaded and stored as one vector. */
template <typename T> struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) four {
    T at[4];
};

template <typename T> static bool moves_four(const void *x, const void *y)
{
    return (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % alignof(four<T>) == 0;
}

/* Store the group as one vector if it is complete and aligned (`whole`); else element by element. */
template <typename T>
static __device__ __forceinline__ void put_four(T *y, int64_t group, int64_t count, const four<T> &values, bool whole)
{
    if (whole && 4 * group + 4 <= count) {
        reinterpret_cast<four<T> *>(y)[group] = values;
    } else {
        for (int i = 0; i < 4 && 4 * group + i < count; i++) y[4 * group + i] = values.at[i];
    }
}

template <typename T>
static __global__ void dropout(const T *x, const int64_t *step, T *y, int64_t count, uint64_t first, uint64_t seed,
                               uint32_t stream, uint32_t threshold, T scale, bool whole)
{
    uint32_t number = static_cast<uint32_t>(*step), lead = static_cast<uint32_t>(first % 4);
    for (int64_t group = grid_first(); 4 * group < count; group += grid_step()) {
        sdlf_philox draw = sdlf_philox4x32(seed, first / 4 + static_cast<uint64_t>(group), stream, number);
        if (lead != 0) { /* a part of a batch that begins inside a Philox block */
            sdlf_philox next = sdlf_philox4x32(seed, first / 4 + static_cast<uint64_t>(group) + 1, stream, number),
                        own = draw;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t at = lead + static_cast<uint32_t>(i);
                draw.word[i] = at == 1   ? own.word[1]
                               : at == 2 ? own.word[2]
                               : at == 3 ? own.word[3]
                               : at == 4 ? next.word[0]
                               : at == 5 ? next.word[1]
                                         : next.word[2];
            }
        }
        four<T> values = {};
        if (whole && 4 * group + 4 <= count) {
            values = reinterpret_cast<const four<T> *>(x)[group];
        } else {
            for (int i = 0; i < 4 && 4 * group + i < count; i++) values.at[i] = x[4 * group + i];
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            values.at[i] = sdlf_dropout_keeps(draw.word[i], threshold) ? values.at[i] * scale : T(0);
        put_four(y, group, count, values, whole);
    }
}

template <typename T>
static __global__ void random_uniform(T *y, int64_t count, uint64_t seed, uint32_t stream, float low, float high,
                                      bool whole)
{
    for (int64_t group = grid_first(); 4 * group < count; group += grid_step()) {
        sdlf_philox draw = sdlf_philox4x32(seed, static_cast<uint64_t>(group), stream, 0);
        four<T> values;
#pragma unroll
        for (int i = 0; i < 4; i++) values.at[i] = static_cast<T>(sdlf_random_uniform_value(draw.word[i], low, high));
        put_four(y, group, count, values, whole);
    }
}

template <typename T>
static __global__ void random_normal(T *y, int64_t count, uint64_t seed, uint32_t stream, double mean, double deviation,
                                     bool whole)
{
    for (int64_t group = grid_first(); 4 * group < count; group += grid_step()) {
        sdlf_philox draw = sdlf_philox4x32(seed, static_cast<uint64_t>(group), stream, 0);
        double value[4];
        sdlf_random_normal_pair(draw.word[0], draw.word[1], mean, deviation, value);
        sdlf_random_normal_pair(draw.word[2], draw.word[3], mean, deviation, value + 2);
        four<T> values;
#pragma unroll
        for (int i = 0; i < 4; i++) values.at[i] = static_cast<T>(value[i]);
        put_four(y, group, count, values, whole);
    }
}

static unsigned group_blocks(const cuda_calculator *calculator, int64_t count)
{
    return cuda_blocks(calculator, (count + 3) / 4, THREADS);
}

/* Forward and backward share one kernel: x or dy in, y or dx out. */
static sdlf_status drop(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        T scale = static_cast<T>(1 / (1 - static_cast<double>(op->dropout.probability)));
        dropout<T><<<group_blocks(calculator, count), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<int64_t>(op->in[1]), data_of<T>(op->out[0]), count,
            static_cast<uint64_t>(op->dropout.first), op->dropout.seed, op->dropout.stream,
            sdlf_dropout_threshold(op->dropout.probability), scale, moves_four<T>(op->in[0].data, op->out[0].data));
    });
    return cuda_check_launch("dropout");
}

extern "C" sdlf_status dropout_forward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return drop(calculator, op);
}

extern "C" sdlf_status dropout_backward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return drop(calculator, op);
}

extern "C" bool random_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return op->out[0].dtype == SDLF_FLOAT32 || op->out[0].dtype == SDLF_FLOAT64;
}

extern "C" sdlf_status random_uniform_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        random_uniform<T><<<group_blocks(calculator, count), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->out[0]), count, op->random.seed, op->random.stream, op->random.a, op->random.b,
            moves_four<T>(op->out[0].data, op->out[0].data));
    });
    return cuda_check_launch("random_uniform");
}

extern "C" sdlf_status random_normal_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        random_normal<T><<<group_blocks(calculator, count), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->out[0]), count, op->random.seed, op->random.stream, op->random.a, op->random.b,
            moves_four<T>(op->out[0].data, op->out[0].data));
    });
    return cuda_check_launch("random_normal");
}
