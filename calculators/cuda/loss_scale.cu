/* SPDX-License-Identifier: MIT */
/* check_finite, of one tensor or of many in one launch (multi_tensor.cuh), and loss_scale_update. check_finite reads every element once; all
 * decisions stay in device memory, so that a captured training step can be replayed. */
#include "calculators/cuda/launch_fusion.h"
#include "calculators/cuda/multi_tensor.cuh"

template <typename T> struct checked {
    const T *x;
    int64_t count;
};

template <typename T>
static __global__ void __launch_bounds__(LIST_THREADS)
    check_tensors(const __grid_constant__ tensor_list<checked<T>, T *> list)
{
    wait_and_launch_dependent_grids();
    const int tensor = list.mine();
    const checked<T> of = list.of[tensor];
    const int64_t first =
        static_cast<int64_t>(static_cast<int>(blockIdx.x) - list.first[tensor]) * LIST_PIECE + threadIdx.x;
    T x[LIST_EACH] = {};
#pragma unroll
    for (int u = 0; u < LIST_EACH; u++) {
        const int64_t i = first + u * LIST_THREADS;
        if (i < of.count) x[u] = of.x[i];
    }
    bool found = false;
#pragma unroll
    for (int u = 0; u < LIST_EACH; u++) found = found || !isfinite(x[u]);
    if (__syncthreads_or(found) && threadIdx.x == 0) *list.common = T(1); /* no race: all blocks write the same value */
}

extern "C" sdlf_status cuda_check_finite_many(sdlf_calculator *base, const sdlf_operation *const *operations, int count)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_float(operations[0]->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        tensor_list<checked<T>, T *> list = {};
        list.common = data_of<T>(operations[0]->out[0]);
        launch_lists(calculator, check_tensors<T>, list, operations, count, [](const sdlf_operation *of) {
            return checked<T>{data_of<T>(of->in[0]), sdlf_tensor_count(&of->in[0])};
        });
    });
    return cuda_check_launch("check_finite");
}

extern "C" sdlf_status check_finite_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return cuda_check_finite_many(base, &op, 1);
}

/* One thread. */
template <typename T>
static __global__ void loss_scale_update(const T *found, const int64_t *step, T *state, T *factor, int64_t *done,
                                         sdlf_loss_scale_rule rule)
{
    const bool skip = *found != T(0);
    const T before = state[0], good = skip ? T(0) : state[1] + T(1), skipped = state[2] + T(skip);
    const T grown = T(rule.growth) * before, smaller = T(rule.backoff) * before, largest = T(0x1p64),
            smallest = T(0x1p-64);
    const bool grows = rule.interval > 0 && good >= T(rule.interval);
    T scale = before;
    if (skip && rule.interval > 0) scale = smaller > smallest ? smaller : smallest;
    if (grows && grown <= largest) scale = grown;
    *factor = skip ? T(0) : T(1) / before;
    state[0] = scale;
    state[1] = grows ? T(0) : good;
    state[2] = skipped;
    *done = *step - static_cast<int64_t>(skipped);
}

extern "C" sdlf_status loss_scale_update_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        loss_scale_update<T><<<1, 1, 0, cuda_stream(base)>>>(data_of<T>(op->in[0]), data_of<int64_t>(op->in[1]),
                                                             data_of<T>(op->out[0]), data_of<T>(op->out[1]),
                                                             data_of<int64_t>(op->out[2]), op->loss_scale);
    });
    return cuda_check_launch("loss_scale_update");
}
