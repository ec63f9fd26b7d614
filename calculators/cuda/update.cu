/* SPDX-License-Identifier: MIT */
/* Optimizer updates, of one tensor or of many in one launch (multi_tensor.cuh), and clip_scale. Gradients are read once; weights and states
 * are read and written once. Scalars (rate, scale, step) are read from device memory, so that a captured training step can be replayed. */
#include "calculators/cuda/launch_fusion.h"
#include "calculators/cuda/multi_tensor.cuh"
#include "calculators/cuda/sgd.cuh"

/* A parameter: gradient, weight, up to two states (NULL: absent). */
template <typename T> struct updated {
    const T *g;
    T *w, *a, *b;
    int64_t count;
    T decay;
};

/* What a launch's parameters share. Rule: correction(i), i = 0 or 1, is a factor of this step, computed by one thread; move updates an element. */
template <typename T, typename Rule> struct update_common {
    const T *rate, *scale;
    Rule rule;
};

template <typename T> struct sgd_update {
    sdlf_sgd_rule rule;

    __device__ double correction(int) const
    {
        return 1;
    }

    __device__ __forceinline__ void move(const updated<T> &of, T g, T &w, T &a, T &, T rate, const double *) const
    {
        move_at(&w, of.a != nullptr ? &a : nullptr, g, rate, rule, static_cast<float>(of.decay));
    }
};

template <typename T> struct adam_update {
    double beta1, beta2, epsilon;
    bool decoupled;
    const int64_t *step;

    __device__ double correction(int i) const
    {
        return 1 / (1 - pow(i == 0 ? beta1 : beta2, static_cast<double>(*step + 1)));
    }

    __device__ __forceinline__ void move(const updated<T> &of, T g, T &w, T &m, T &v, T rate,
                                         const double *inverse) const
    {
        const T gradient = decoupled ? g : g + of.decay * w, weight = decoupled ? w - rate * of.decay * w : w;
        m = T(beta1) * m + T(1 - beta1) * gradient;
        v = T(beta2) * v + T(1 - beta2) * gradient * gradient;
        w = weight - rate * (m * T(inverse[0])) / (sqrt(v * T(inverse[1])) + T(epsilon));
    }
};

template <typename T> struct rmsprop_update {
    T rho, rest, epsilon, momentum;

    __device__ double correction(int) const
    {
        return 1;
    }

    __device__ __forceinline__ void move(const updated<T> &of, T g, T &w, T &v, T &b, T rate, const double *) const
    {
        const T gradient = g + of.decay * w;
        v = rho * v + rest * gradient * gradient;
        T step = gradient / (sqrt(v) + epsilon);
        if (of.b != nullptr) b = step = momentum * b + step;
        w -= rate * step;
    }
};

template <typename T, typename Rule>
static __global__ void __launch_bounds__(LIST_THREADS)
    update_tensors(const __grid_constant__ tensor_list<updated<T>, update_common<T, Rule>> list)
{
    __shared__ double corrections[2];
    wait_and_launch_dependent_grids();
    if (threadIdx.x < 2) corrections[threadIdx.x] = list.common.rule.correction(static_cast<int>(threadIdx.x));
    __syncthreads();
    const int tensor = list.mine();
    const updated<T> of = list.of[tensor];
    const int64_t first =
        static_cast<int64_t>(static_cast<int>(blockIdx.x) - list.first[tensor]) * LIST_PIECE + threadIdx.x;
    const T rate = *list.common.rate, scale = list.common.scale != nullptr ? *list.common.scale : T(1);
    if (scale == T(0)) return; /* the update is skipped */
    T g[LIST_EACH] = {}, w[LIST_EACH] = {}, a[LIST_EACH] = {}, b[LIST_EACH] = {};
#pragma unroll
    for (int u = 0; u < LIST_EACH; u++) {
        const int64_t i = first + u * LIST_THREADS;
        if (i >= of.count) continue;
        g[u] = scale * of.g[i];
        w[u] = of.w[i];
        if (of.a != nullptr) a[u] = of.a[i];
        if (of.b != nullptr) b[u] = of.b[i];
    }
#pragma unroll
    for (int u = 0; u < LIST_EACH; u++) {
        const int64_t i = first + u * LIST_THREADS;
        if (i >= of.count) continue;
        list.common.rule.move(of, g[u], w[u], a[u], b[u], rate, corrections);
        of.w[i] = w[u];
        if (of.a != nullptr) of.a[i] = a[u];
        if (of.b != nullptr) of.b[i] = b[u];
    }
}

template <typename T, typename Rule>
static void launch_updates(const cuda_calculator *calculator, const sdlf_operation *const *operations, int count,
                           const Rule &rule)
{
    const sdlf_operation *op = operations[0];
    tensor_list<updated<T>, update_common<T, Rule>> list = {};
    list.common = {data_of<T>(op->in[1]), optional<T>(op->in[2]), rule};
    launch_lists(calculator, update_tensors<T, Rule>, list, operations, count, [](const sdlf_operation *of) {
        const double decay = of->kind == SDLF_SGD_UPDATE    ? static_cast<double>(of->sgd.decay)
                             : of->kind == SDLF_ADAM_UPDATE ? of->adam.decay
                                                            : of->rmsprop.decay;
        return updated<T>{data_of<T>(of->in[0]),   data_of<T>(of->out[0]),         optional<T>(of->out[1]),
                          optional<T>(of->out[2]), sdlf_tensor_count(&of->out[0]), static_cast<T>(decay)};
    });
}

extern "C" sdlf_status cuda_update_many(sdlf_calculator *base, const sdlf_operation *const *operations, int count)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_operation *op = operations[0];
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        if (op->kind == SDLF_SGD_UPDATE)
            launch_updates<T>(calculator, operations, count, sgd_update<T>{op->sgd});
        else if (op->kind == SDLF_ADAM_UPDATE)
            launch_updates<T>(calculator, operations, count,
                              adam_update<T>{op->adam.beta1, op->adam.beta2, op->adam.epsilon, op->adam.decoupled,
                                             data_of<int64_t>(op->in[3])});
        else
            launch_updates<T>(calculator, operations, count,
                              rmsprop_update<T>{static_cast<T>(op->rmsprop.rho), static_cast<T>(1 - op->rmsprop.rho),
                                                static_cast<T>(op->rmsprop.epsilon),
                                                static_cast<T>(op->rmsprop.momentum)});
    });
    return cuda_check_launch("updates");
}

extern "C" sdlf_status update_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return cuda_update_many(base, &op, 1);
}

/* One warp; the order of summation is fixed. */
template <typename T>
static __global__ void clip_scale(const T *squares, const T *factor, T *scale, int64_t count, double max_norm)
{
    const double unscale = factor != nullptr ? static_cast<double>(*factor) : 1;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += 32) sum += squares[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    double wanted = max_norm / (unscale * sqrt(sum) + 1e-6);
    if (threadIdx.x == 0) *scale = static_cast<T>(unscale == 0 ? 0 : unscale * (wanted > 1 ? 1 : wanted));
}

extern "C" sdlf_status clip_scale_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        clip_scale<T><<<1, 32, 0, cuda_stream(base)>>>(data_of<T>(op->in[0]), optional<T>(op->in[1]),
                                                       data_of<T>(op->out[0]), sdlf_tensor_count(&op->in[0]),
                                                       op->clip.max_norm);
    });
    return cuda_check_launch("clip_scale");
}
