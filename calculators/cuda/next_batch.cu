/* next_batch: the indices, the learning rate and the number of the step that the cursor points at; the cursor moves on. One
 * block, so that all of it has been read before the cursor changes. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void next_batch(const int32_t *order, const T *rates, const int64_t *first, int64_t *cursor,
                                  int32_t *index, T *rate, int64_t *step, int64_t count)
{
    int64_t at = *cursor;
    for (int64_t n = threadIdx.x; n < count; n += THREADS) index[n] = order[at * count + n];
    __syncthreads();
    if (threadIdx.x != 0) return;
    *rate = rates[at];
    *step = *first + at;
    *cursor = at + 1;
}

extern "C" bool next_batch_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return !sdlf_tensor_present(&op->out[4]); /* labels are gathered like samples */
}

extern "C" sdlf_status next_batch_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    with_float(op->in[1].dtype, [&](auto zero) {
        using T = decltype(zero);
        next_batch<T><<<1, THREADS, 0, cuda_stream(base)>>>(data_of<int32_t>(op->in[0]), data_of<T>(op->in[1]),
                                                            data_of<int64_t>(op->in[2]), data_of<int64_t>(op->out[0]),
                                                            data_of<int32_t>(op->out[1]), data_of<T>(op->out[2]),
                                                            data_of<int64_t>(op->out[3]), op->out[1].shape.dim[0]);
    });
    return cuda_check_launch("next_batch");
}
