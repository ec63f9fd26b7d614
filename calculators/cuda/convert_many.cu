/* SPDX-License-Identifier: MIT */
/* Copies of float32 tensors, many in one launch (multi_tensor.cuh): weights (K,C,R,S) become (K,R,S,C), in the type that NHWC convolutions
 * read. A block transposes, in shared memory, several whole filters, or a run of one filter's channels with all of their taps. */
#include <algorithm>

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/launch_fusion.h"
#include "calculators/cuda/multi_tensor.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/strided.cuh"

enum { CONVERT_SHARED = 4 * LIST_PIECE, CONVERT_PAD = 4, CONVERT_LOADS = 8, CONVERT_TAPS = 256 };
static_assert(CONVERT_SHARED / CONVERT_TAPS / 4 * 4 - CONVERT_PAD >= VECTOR, "a run of channels is not empty");

/* x (filters, channels, taps) -> y (filters, taps, channels), both contiguous. */
template <typename T> struct converted {
    const float *x;
    T *y;
    int64_t count; /* LIST_PIECE times the number of blocks */
    int filters, channels, taps;
    int filters_each;                             /* whole filters per block */
    int run, runs;                                /* channels per block, and blocks per filter if it needs several */
    int line;                                     /* stride between taps in shared memory, in elements */
    bool aligned;                                 /* eight channels can be stored at once */
    divider<int32_t> by_taps, by_run, by_vectors; /* by_vectors: vectors per run */
};

struct convert_common {
};

template <typename T>
static __global__ void __launch_bounds__(LIST_THREADS)
    convert_tensors(const __grid_constant__ tensor_list<converted<T>, convert_common> list)
{
    __shared__ alignas(16) float transposed[CONVERT_SHARED]; /* [filter][tap][channel] */
    wait_and_launch_dependent_grids();
    const int tensor = list.mine(), block = static_cast<int>(blockIdx.x) - list.first[tensor];
    const converted<T> &of = list.of[tensor];
    const int unit = block / of.runs, filter = unit * of.filters_each, first = (block - unit * of.runs) * of.run;
    const int filters = min(of.filters_each, of.filters - filter), channels = min(of.run, of.channels - first);
    const int taps = of.taps, count = filters * channels * taps, thread = static_cast<int>(threadIdx.x);
    const int64_t begin = static_cast<int64_t>(filter) * of.channels * taps;
    const float *from = of.x + begin + static_cast<int64_t>(first) * taps;
    for (int i = thread; i < count; i += CONVERT_LOADS * LIST_THREADS) {
        float loaded[CONVERT_LOADS];
#pragma unroll
        for (int u = 0; u < CONVERT_LOADS; u++) {
            if (i + u * LIST_THREADS < count) loaded[u] = from[i + u * LIST_THREADS];
        }
#pragma unroll
        for (int u = 0; u < CONVERT_LOADS; u++) {
            int tap, c;
            const int f = divide(divide(i + u * LIST_THREADS, of.by_taps, tap), of.by_run, c);
            if (i + u * LIST_THREADS < count) transposed[(f * taps + tap) * of.line + c] = loaded[u];
        }
    }
    __syncthreads();
    const int vectors = filters * taps * of.by_vectors.number;
    for (int i = thread; i < vectors; i += LIST_THREADS) {
        int vector;
        const int line = divide(i, of.by_vectors, vector), c = vector * VECTOR;
        const float4 *values = reinterpret_cast<const float4 *>(&transposed[line * of.line + c]);
        const float8 of_line = {
            {values[0].x, values[0].y, values[0].z, values[0].w, values[1].x, values[1].y, values[1].z, values[1].w}};
        T *to = of.y + begin + static_cast<int64_t>(line) * of.channels + first + c;
        if (of.aligned && c + VECTOR <= channels) {
            store8(to, 0, of_line);
            continue;
        }
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            if (c + v < channels) to[v] = static_cast<T>(of_line.at[v]);
        }
    }
}

/* Partition the tensor into blocks. */
template <typename T> static void cut(converted<T> *of)
{
    const int room = CONVERT_SHARED / of->taps / 4 * 4 - CONVERT_PAD; /* channels of a filter that fit */
    of->run = of->channels <= room ? of->channels : room / VECTOR * VECTOR;
    of->runs = (of->channels + of->run - 1) / of->run;
    of->line = (of->run + 3) / 4 * 4 + CONVERT_PAD;
    of->filters_each = of->runs > 1 ? 1 : std::max(CONVERT_SHARED / (of->taps * of->line), 1);
    of->by_taps = divider<int32_t>(of->taps);
    of->by_run = divider<int32_t>(of->run);
    of->by_vectors = divider<int32_t>((of->run + VECTOR - 1) / VECTOR);
    const int64_t units = (of->filters + of->filters_each - 1) / of->filters_each;
    of->count = units * of->runs * LIST_PIECE;
}

/* False if it is another kind of copy. */
template <typename T> static bool describe(const sdlf_operation *op, converted<T> *made)
{
    const sdlf_tensor *x = &op->in[0], *y = &op->out[0], *const operand[] = {x, y};
    if (op->kind != SDLF_COPY || x->dtype != SDLF_FLOAT32 || !sdlf_tensor_is_contiguous(y)) return false;
    if (y->dtype != SDLF_BFLOAT16 && y->dtype != SDLF_FLOAT16 && y->dtype != SDLF_FLOAT32) return false;
    const strided<2> at = strided_of<2>(y->shape, operand);
    const int64_t count = sdlf_tensor_count(y), *stride = at.stride[0] + (at.rank > 2 ? at.rank - 2 : 0);
    const int64_t taps = at.rank > 1 ? at.dim[at.rank - 2] : 1, channels = at.rank > 0 ? at.dim[at.rank - 1] : 1;
    bool transposed = at.rank < 2 || (stride[0] == 1 && stride[1] == taps);
    if (at.rank == 1) transposed = stride[0] == 1;
    if (at.rank == 3) transposed = transposed && at.stride[0][0] == taps * channels;
    if (y->dtype == SDLF_FLOAT32 && (at.rank != 3 || taps == 1)) return false;
    if (!transposed || at.rank > 3 || taps > CONVERT_TAPS || count > INT32_MAX - CONVERT_SHARED) return false;
    *made = {};
    made->x = data_of<float>(*x);
    made->y = data_of<T>(*y);
    made->taps = static_cast<int>(taps);
    made->channels = static_cast<int>(taps == 1 ? count : channels);
    made->filters = count > 0 ? static_cast<int>(count / taps / made->channels) : 0;
    made->aligned = (taps == 1 || channels % VECTOR == 0) && reinterpret_cast<uintptr_t>(made->y) % 16 == 0;
    if (count > 0) cut(made);
    return made->count / LIST_PIECE <= INT32_MAX / 2;
}

/* True if the operation reads what one of the operations before it writes. */
static bool reads_result(const sdlf_operation *const *before, int count, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    int64_t last = 0;
    for (int axis = 0; axis < x.shape.rank; axis++) last += (x.shape.dim[axis] - 1) * x.stride[axis];
    const char *from = static_cast<const char *>(x.data),
               *end = from + (last + 1) * static_cast<int64_t>(sizeof(float));
    for (int i = 0; i < count; i++) {
        const char *to = static_cast<const char *>(before[i]->out[0].data);
        if (from < to + sdlf_tensor_bytes(&before[i]->out[0]) && to < end) return true;
    }
    return false;
}

extern "C" int cuda_count_conversions(const sdlf_operation *const *operations, int count)
{
    int alike = 0;
    converted<__half> made;
    while (alike < count && operations[alike]->out[0].dtype == operations[0]->out[0].dtype &&
           describe(operations[alike], &made) && !reads_result(operations, alike, operations[alike]))
        alike++;
    return alike;
}

extern "C" sdlf_status cuda_convert_many(sdlf_calculator *base, const sdlf_operation *const *operations, int count)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto launch = [&](auto zero) {
        using T = decltype(zero);
        launch_lists(calculator, convert_tensors<T>, tensor_list<converted<T>, convert_common>(), operations, count,
                     [](const sdlf_operation *op) {
                         converted<T> made = {};
                         describe(op, &made);
                         return made;
                     });
    };
    with_storage(operations[0]->out[0].dtype, launch);
    return cuda_check_launch("conversions of weights");
}
