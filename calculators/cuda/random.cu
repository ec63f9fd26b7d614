/* dropout, random_uniform, random_normal: a thread a group of four elements, one Philox block each; the same numbers as on
 * every calculator. Dropout reads and writes its tensor once and stores no mask: the backward pass draws it again. */
#include "calculators/cuda/kernels.cuh"
#include "calculators/draws.h"

enum { THREADS = 256 };

template <typename T>
static __global__ void dropout(const T *x, const int64_t *step, T *y, int64_t count, uint64_t seed, uint32_t stream,
                               uint32_t threshold, T scale)
{
    uint32_t number = static_cast<uint32_t>(*step);
    for (int64_t group = grid_first(); 4 * group < count; group += grid_step()) {
        sdlf_philox draw = sdlf_philox4x32(seed, static_cast<uint64_t>(group), stream, number);
        for (int i = 0; i < 4 && 4 * group + i < count; i++) {
            int64_t e = 4 * group + i;
            y[e] = sdlf_dropout_keeps(draw.word[i], threshold) ? x[e] * scale : T(0);
        }
    }
}

template <typename T>
static __global__ void random_uniform(T *y, int64_t count, uint64_t seed, uint32_t stream, float low, float high)
{
    for (int64_t group = grid_first(); 4 * group < count; group += grid_step()) {
        sdlf_philox draw = sdlf_philox4x32(seed, static_cast<uint64_t>(group), stream, 0);
        for (int i = 0; i < 4 && 4 * group + i < count; i++)
            y[4 * group + i] = static_cast<T>(sdlf_random_uniform_value(draw.word[i], low, high));
    }
}

template <typename T>
static __global__ void random_normal(T *y, int64_t count, uint64_t seed, uint32_t stream, double mean, double deviation)
{
    for (int64_t group = grid_first(); 4 * group < count; group += grid_step()) {
        sdlf_philox draw = sdlf_philox4x32(seed, static_cast<uint64_t>(group), stream, 0);
        double value[4];
        sdlf_random_normal_pair(draw.word[0], draw.word[1], mean, deviation, value);
        sdlf_random_normal_pair(draw.word[2], draw.word[3], mean, deviation, value + 2);
        for (int i = 0; i < 4 && 4 * group + i < count; i++) y[4 * group + i] = static_cast<T>(value[i]);
    }
}

static unsigned group_blocks(const cuda_calculator *calculator, int64_t count)
{
    return cuda_blocks(calculator, (count + 3) / 4, THREADS);
}

/* The two passes are one kernel: x or dy in, y or dx out. */
static sdlf_status drop(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        T scale = static_cast<T>(1 / (1 - static_cast<double>(op->dropout.probability)));
        dropout<T><<<group_blocks(calculator, count), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<int64_t>(op->in[1]), data_of<T>(op->out[0]), count, op->dropout.seed,
            op->dropout.stream, sdlf_dropout_threshold(op->dropout.probability), scale);
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
            data_of<T>(op->out[0]), count, op->random.seed, op->random.stream, op->random.a, op->random.b);
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
            data_of<T>(op->out[0]), count, op->random.seed, op->random.stream, op->random.a, op->random.b);
    });
    return cuda_check_launch("random_normal");
}
