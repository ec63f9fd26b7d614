/* Activations element by element. A thread an element, striding; moves 2 (forward) or 3 (backward) tensors once. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void activation_forward(const T *x, T *y, int64_t count, sdlf_activation activation)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) y[i] = activate(activation, x[i]);
}

/* f'(x) from v: y = f(x), or x (sdlf_activation_reads_input). */
template <typename T> static __device__ T activation_slope(const sdlf_activation &activation, T v)
{
    const T alpha = T(activation.alpha), beta = T(activation.beta), half = T(0.5);
    const T scale = T(0.79788456080286535588), cubic = T(0.044715); /* gelu_tanh's */
    T s, t;
    switch (activation.function) {
    case SDLF_RELU: return v > T(0) ? T(1) : T(0);
    case SDLF_CLIP: return v > T(activation.low) && v < T(activation.high) ? T(1) : T(0);
    case SDLF_LEAKY_RELU: return v > T(0) ? T(1) : T(activation.slope);
    case SDLF_SIGMOID: return v * (T(1) - v);
    case SDLF_TANH: return T(1) - v * v;
    case SDLF_SILU: s = sigmoid(v); return s * (T(1) + v * (T(1) - s));
    case SDLF_HARD_SWISH: return v <= T(-3) ? T(0) : v >= T(3) ? T(1) : v * T(1.0 / 3) + half;
    case SDLF_ELU: return v > T(0) ? T(1) : v + alpha;
    case SDLF_SELU: return v > T(0) ? beta : v + alpha * beta;
    case SDLF_CELU: return v > T(0) ? T(1) : v / alpha + T(1);
    case SDLF_GELU:
        return half * (T(1) + erf(v * T(0.70710678118654752440))) + v * T(0.39894228040143267794) * exp(-half * v * v);
    case SDLF_GELU_TANH:
        t = tanh(scale * (v + cubic * v * v * v));
        return half * (T(1) + t) + half * v * (T(1) - t * t) * scale * (T(1) + T(3) * cubic * v * v);
    case SDLF_MISH: t = tanh(v > T(0) ? v + log1p(exp(-v)) : log1p(exp(v))); return t + v * (T(1) - t * t) * sigmoid(v);
    case SDLF_SOFTPLUS: return T(1) - exp(-v);
    case SDLF_SOFTSIGN: t = T(1) - fabs(v); return t * t;
    case SDLF_HARD_SIGMOID: return v > T(0) && v < T(1) ? alpha : T(0);
    case SDLF_ERF: return T(1.12837916709551257390) * exp(-v * v);
    case SDLF_SQRT: return T(1) / (T(2) * v);
    case SDLF_EXP: return v;
    case SDLF_LOG: return T(1) / v;
    case SDLF_ABS: return v > T(0) ? T(1) : v < T(0) ? T(-1) : T(0);
    case SDLF_NEGATE: return T(-1);
    case SDLF_RECIPROCAL: return -v * v;
    case SDLF_FLOOR:
    case SDLF_CEIL:
    case SDLF_ROUND: return T(0);
    default: return T(1);
    }
}

template <typename T>
static __global__ void activation_backward(const T *v, const T *dy, T *dx, int64_t count, sdlf_activation activation)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) dx[i] = dy[i] * activation_slope(activation, v[i]);
}

extern "C" sdlf_status activation_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        activation_forward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_forward");
}

extern "C" sdlf_status activation_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        activation_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), count, op->activation);
    });
    return cuda_check_launch("activation_backward");
}
