/* Optimiser updates and clip_scale. One pass: a thread an element, striding; every state, the gradient and the weight are
 * read once and written once. Scalars (rate, scale, step) come from device memory, so that a recorded step can be replayed. */
#include "calculators/cuda/sgd.cuh"

enum { THREADS = 256 };

/* The gradient with the clipping scale and the weight decay in it. */
template <typename T> static __device__ T gradient_at(const T *g, const T *w, T scale, T decay, int64_t i)
{
    return scale * g[i] + decay * w[i];
}

template <typename T>
static __global__ void sgd_update(const T *g, const T *rate, const T *scale, T *w, T *v, int64_t count,
                                  sdlf_sgd_rule rule)
{
    T r = *rate, s = scale != nullptr ? *scale : T(1);
    for (int64_t i = grid_first(); i < count; i += grid_step())
        move_at(w + i, v != nullptr ? v + i : nullptr, s * g[i], r, rule, rule.decay);
}

struct adam_constants {
    double beta1, beta2, epsilon, decay;
    bool decoupled;
};

template <typename T>
static __global__ void adam_update(const T *g, const T *rate, const T *scale, const int64_t *step, T *w, T *m, T *v,
                                   int64_t count, adam_constants constants)
{
    __shared__ double corrections[2];
    if (threadIdx.x < 2)
        corrections[threadIdx.x] =
            1 - pow(threadIdx.x == 0 ? constants.beta1 : constants.beta2, static_cast<double>(*step + 1));
    __syncthreads();
    T r = *rate, s = scale != nullptr ? *scale : T(1), beta1 = constants.beta1, beta2 = constants.beta2;
    T rest1 = 1 - constants.beta1, rest2 = 1 - constants.beta2, decay = constants.decay, epsilon = constants.epsilon;
    T inverse1 = 1 / corrections[0], inverse2 = 1 / corrections[1];
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        T gradient = gradient_at(g, w, s, constants.decoupled ? T(0) : decay, i);
        T weight = constants.decoupled ? w[i] - r * decay * w[i] : w[i];
        T first = beta1 * m[i] + rest1 * gradient, second = beta2 * v[i] + rest2 * gradient * gradient;
        m[i] = first;
        v[i] = second;
        w[i] = weight - r * (first * inverse1) / (sqrt(second * inverse2) + epsilon);
    }
}

template <typename T>
static __global__ void rmsprop_update(const T *g, const T *rate, const T *scale, T *w, T *v, T *b, int64_t count, T rho,
                                      T rest, T epsilon, T momentum, T decay)
{
    T r = *rate, s = scale != nullptr ? *scale : T(1);
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        T gradient = gradient_at(g, w, s, decay, i);
        T square = rho * v[i] + rest * gradient * gradient;
        v[i] = square;
        T step = gradient / (sqrt(square) + epsilon);
        if (b != nullptr) {
            step = momentum * b[i] + step;
            b[i] = step;
        }
        w[i] -= r * step;
    }
}

/* One warp; fixed order. */
template <typename T> static __global__ void clip_scale(const T *squares, T *scale, int64_t count, double max_norm)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += 32) sum += squares[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    double wanted = max_norm / (sqrt(sum) + 1e-6);
    if (threadIdx.x == 0) *scale = static_cast<T>(wanted > 1 ? 1 : wanted);
}

extern "C" sdlf_status sgd_update_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        sgd_update<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), optional<T>(op->in[2]), data_of<T>(op->out[0]),
            optional<T>(op->out[1]), count, op->sgd);
    });
    return cuda_check_launch("sgd_update");
}

extern "C" sdlf_status adam_update_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    adam_constants constants = {op->adam.beta1, op->adam.beta2, op->adam.epsilon, op->adam.decay, op->adam.decoupled};
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        adam_update<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), optional<T>(op->in[2]), data_of<int64_t>(op->in[3]),
            data_of<T>(op->out[0]), data_of<T>(op->out[1]), data_of<T>(op->out[2]), count, constants);
    });
    return cuda_check_launch("adam_update");
}

extern "C" sdlf_status rmsprop_update_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        rmsprop_update<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), optional<T>(op->in[2]), data_of<T>(op->out[0]),
            data_of<T>(op->out[1]), optional<T>(op->out[2]), count, static_cast<T>(op->rmsprop.rho),
            static_cast<T>(1 - static_cast<double>(op->rmsprop.rho)), static_cast<T>(op->rmsprop.epsilon),
            static_cast<T>(op->rmsprop.momentum), static_cast<T>(op->rmsprop.decay));
    });
    return cuda_check_launch("rmsprop_update");
}

extern "C" sdlf_status clip_scale_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        clip_scale<T><<<1, 32, 0, cuda_stream(base)>>>(data_of<T>(op->in[0]), data_of<T>(op->out[0]),
                                                       sdlf_tensor_count(&op->in[0]), op->clip.max_norm);
    });
    return cuda_check_launch("clip_scale");
}
