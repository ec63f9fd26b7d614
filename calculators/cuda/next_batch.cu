/* SPDX-License-Identifier: MIT */
/* next_batch: writes the indices, the labels, the learning rate and the step number at the cursor, then advances the cursor.
 * One block, so that everything has been read before the cursor changes. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename T> struct next_batch {
    const int32_t *order, *labels; /* labels and batch_labels may be NULL */
    const T *rates;
    const int64_t *first;
    int64_t *cursor, *step;
    int32_t *index, *batch_labels;
    T *rate;
    int64_t count, drawn, steps, samples; /* sizes: batch; order; rates; labels */
};

/* Prefetch what the step will read. The cursor usually is already final; if the previous kernel still moves it, the prefetch
 * is only wasted. */
template <typename T> static __device__ void guess_next_batch(const next_batch<T> &b)
{
    int64_t at = __ldcg(b.cursor);
    if (at < 0 || at >= b.steps || (at + 1) * b.count > b.drawn) return;
    if (threadIdx.x == 0) prefetch_line(b.rates + at);
    for (int64_t n = threadIdx.x; n < b.count; n += THREADS) {
        int32_t index = __ldcg(b.order + at * b.count + n);
        if (b.labels != nullptr && index >= 0 && index < b.samples) prefetch_line(b.labels + index);
    }
}

template <typename T> static __global__ void draw_next_batch(next_batch<T> b)
{
    guess_next_batch(b);
    wait_and_launch_dependent_grids();
    int64_t at = __ldcg(b.cursor);
    for (int64_t n = threadIdx.x; n < b.count; n += THREADS) {
        int32_t index = __ldcg(b.order + at * b.count + n);
        b.index[n] = index;
        if (b.labels != nullptr) b.batch_labels[n] = b.labels[index];
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    *b.rate = b.rates[at];
    *b.step = *b.first + at;
    *b.cursor = at + 1;
}

extern "C" sdlf_status next_batch_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_float(op->in[1].dtype, [&](auto zero) {
        using T = decltype(zero);
        const next_batch<T> b = {.order = data_of<int32_t>(op->in[0]),
                                 .labels = optional<int32_t>(op->in[3]),
                                 .rates = data_of<T>(op->in[1]),
                                 .first = data_of<int64_t>(op->in[2]),
                                 .cursor = data_of<int64_t>(op->out[0]),
                                 .step = data_of<int64_t>(op->out[3]),
                                 .index = data_of<int32_t>(op->out[1]),
                                 .batch_labels = optional<int32_t>(op->out[4]),
                                 .rate = data_of<T>(op->out[2]),
                                 .count = op->out[1].shape.dim[0],
                                 .drawn = op->in[0].shape.dim[0],
                                 .steps = op->in[1].shape.dim[0],
                                 .samples = sdlf_tensor_present(&op->in[3]) ? op->in[3].shape.dim[0] : 0};
        launch_overlapped(calculator, draw_next_batch<T>, 1, THREADS, 0, b);
    });
    return cuda_check_launch("next_batch");
}
