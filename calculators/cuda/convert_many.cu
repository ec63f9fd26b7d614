/* SPDX-License-Identifier: MIT */
/* Copies of float32 tensors, many in one launch (multi_tensor.cuh): weights (K,C,R,S) as (K,R,S,C), in the type that convolutions
 * channels last read. A block reads a run of channels of one filter, with all of their taps, and transposes it in shared memory. */
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/launch_fusion.h"
#include "calculators/cuda/multi_tensor.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/strided.cuh"

/* x (filters, channels, taps) -> y (filters, taps, channels), both contiguous. */
template <typename T> struct converted {
    const float *x;
    T *y;
    int64_t count;                    /* as many as there are blocks for: LIST_PIECE each */
    int channels, taps, runs;         /* runs: of a filter */
    divider<int32_t> by_taps, by_run; /* run: channels of a block */
};

struct convert_common {
};

template <typename T>
static __global__ void __launch_bounds__(LIST_THREADS)
    convert_tensors(const __grid_constant__ tensor_list<converted<T>, convert_common> list)
{
    __shared__ float transposed[2 * LIST_PIECE]; /* [tap][channel], a channel's place more than there are */
    await_kernels();
    const int tensor = list.mine(), block = static_cast<int>(blockIdx.x) - list.first[tensor];
    const converted<T> of = list.of[tensor];
    const int run = of.by_run.number, filter = block / of.runs, first = (block - filter * of.runs) * run;
    const int channels = min(run, of.channels - first), line = channels + 1;
    const int64_t begin = static_cast<int64_t>(filter) * of.channels * of.taps;
    for (int i = static_cast<int>(threadIdx.x); i < channels * of.taps; i += LIST_THREADS) {
        int tap;
        const int c = divide(i, of.by_taps, tap);
        transposed[tap * line + c] = of.x[begin + static_cast<int64_t>(first) * of.taps + i];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < run * of.taps; i += LIST_THREADS) {
        int c;
        const int tap = divide(i, of.by_run, c);
        if (c >= channels) continue;
        of.y[begin + static_cast<int64_t>(tap) * of.channels + first + c] = static_cast<T>(transposed[tap * line + c]);
    }
}

/* False: it is another kind of copy. */
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
    if (!transposed || at.rank > 3 || taps > LIST_PIECE || channels > INT32_MAX - LIST_PIECE) return false;
    *made = {data_of<float>(*x), data_of<T>(*y), 0, static_cast<int>(channels), static_cast<int>(taps), 0, {}, {}};
    const int run = LIST_PIECE / made->taps;
    made->runs = (made->channels + run - 1) / run;
    made->by_taps = divider<int32_t>(taps);
    made->by_run = divider<int32_t>(run);
    if (count > 0) made->count = count / (taps * channels) * made->runs * LIST_PIECE;
    return made->count / LIST_PIECE <= INT32_MAX / 2;
}

/* Does the operation read what one of those before it writes? */
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
