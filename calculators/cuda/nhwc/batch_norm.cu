/* SPDX-License-Identifier: MIT */
/* batch_norm2d of x (M,C), C a multiple of 8, for training: one kernel computes sums (column_sums.cuh) and statistics, a second applies them
 * (for_rows.cuh). Moves x twice, y and residual once. The channel's first value is subtracted first, so that a large mean cancels. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/nhwc/column_sums.cuh"
#include "calculators/cuda/nhwc/for_rows.cuh"
#include "calculators/cuda/nhwc/nhwc.h"

static bool takes_activation(const sdlf_operation *op)
{
    const sdlf_activation &activation = op->batch_norm.activation;
    if (has_inline_slope(activation)) return true;
    return is_line_activation(activation) &&
           (op->kind != SDLF_BATCH_NORM2D_BACKWARD || !sdlf_tensor_present(&op->in[6]) ||
            line_activation_of(activation).slope == 1);
}

static bool takes(const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    return x.dtype != SDLF_FLOAT64 && x.shape.rank == 2 && x.shape.dim[0] > 0 && x.shape.dim[1] > 0 &&
           x.shape.dim[1] % VECTOR == 0 && takes_activation(op);
}

bool batch_norm2d_is_nhwc(const sdlf_operation *op)
{
    bool aligned = true;
    for (const sdlf_tensor *operand : {&op->in[0], &op->in[3], &op->in[4], &op->out[0]})
        aligned = aligned && (!sdlf_tensor_present(operand) || is_aligned16(operand->data));
    return takes(op) && (aligned || sdlf_batch_norm2d_is_fused(op) || op->in[0].dtype != SDLF_FLOAT32);
}

bool batch_norm2d_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return takes(op) || (sdlf_operation_storage(op) == SDLF_NONE && !sdlf_batch_norm2d_is_fused(op));
}

/* After these sums the workspace holds the statistics of a convolution, if one computes them (engine_bn_partials). */
static int64_t bytes_of_sums(const sdlf_operation *op)
{
    return (sums_bytes(sums_cut_of(op->in[0].shape.dim[0], op->in[0].shape.dim[1])) + 63) / 64 * 64;
}

int64_t batch_norm2d_workspace_nhwc(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = reinterpret_cast<const cuda_calculator *>(base);
    const int64_t each =
        op->in[0].shape.dim[1] * static_cast<int64_t>(sizeof(float2)) + static_cast<int64_t>(sizeof(float));
    return bytes_of_sums(op) + (engine_is_there(calculator) ? engine_most_parts(calculator) * each : 0);
}

engine_bn_partials batch_norm2d_moments_nhwc(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = reinterpret_cast<const cuda_calculator *>(base);
    float *parts = reinterpret_cast<float *>(static_cast<char *>(op->workspace.data) + bytes_of_sums(op));
    return {parts, parts + 2 * engine_most_parts(calculator) * op->in[0].shape.dim[1], 0};
}

template <typename T> struct first_moments_nhwc {
    static constexpr int UNROLL = 12 / sizeof(T);
    const T *x;
    struct channel_numbers {
        float8 origin;
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        return {load8(x, vector)};
    }
    typedef bits8<T> loaded;
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return load_bits8(x, i);
    }
    __device__ __forceinline__ void add(const channel_numbers &c, const loaded &in, float2 (&sums)[VECTOR]) const
    {
        const float8 value = unpack8<T>(in);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            const float distance = value.at[v] - c.origin.at[v];
            sums[v].x += distance;
            sums[v].y += distance * distance;
        }
    }
};

/* Statistics from a convolution (engine_bn_partials): each part's sums of deviations from the first part's mean. */
struct part_moments_nhwc {
    const float2 *parts;
    const float *rows;
    int64_t channels;
    __device__ __forceinline__ double2 of(int part, int channel) const
    {
        const float2 pair = parts[part * channels + channel];
        const double count = rows[part], distance = static_cast<double>(pair.x) - parts[channel].x;
        return make_double2(count * distance, static_cast<double>(pair.y) + count * distance * distance);
    }
};

/* The origin of channel c is x[c * stride]. */
template <typename T> struct statistics_nhwc {
    const T *x;
    int stride;
    float *saved_mean, *saved_inverse, *running_mean, *running_variance;
    double rows, epsilon, momentum;
    __device__ __forceinline__ void take(int64_t c, double2 sum) const
    {
        const double distance = sum.x / rows;
        double squares = fmax(sum.y - sum.x * distance, 0.0);
        if (sum.y != sum.y) squares = sum.y; /* fmax drops NaN */
        const double mean = static_cast<double>(static_cast<float>(x[c * stride])) + distance,
                     variance = squares / rows;
        saved_mean[c] = static_cast<float>(mean);
        saved_inverse[c] = static_cast<float>(1 / sqrt(variance + epsilon));
        const double unbiased = rows > 1 ? squares / (rows - 1) : variance;
        running_mean[c] = static_cast<float>((1 - momentum) * running_mean[c] + momentum * mean);
        running_variance[c] = static_cast<float>((1 - momentum) * running_variance[c] + momentum * unbiased);
    }
};

/* y = act(factor x + offset + residual); LINE: act is piecewise linear */
template <typename T, bool LINE> struct apply_forward_nhwc {
    static constexpr int UNROLL = 8 / sizeof(T), BLOCKS = LINE ? 3 : 2;
    const T *x, *residual; /* NULL: none */
    const float *scale, *shift, *mean, *inverse;
    T *y;
    piecewise_linear_activation activation;
    sdlf_activation_function function;
    struct channel_numbers {
        float factor[VECTOR], offset[VECTOR];
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            const int at = vector * VECTOR + v;
            c.factor[v] = inverse[at] * scale[at];
            c.offset[v] = fmaf(-mean[at], c.factor[v], shift[at]);
        }
        return c;
    }
    struct loaded {
        bits8<T> x, residual;
    };
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return {load_bits8(x, i), load_bits8(residual, i)};
    }
    __device__ __forceinline__ void run(const channel_numbers &c, const loaded &in, int64_t i) const
    {
        float8 value = unpack8<T>(in.x);
        const float8 more = unpack8<T>(in.residual);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) value.at[v] = fmaf(value.at[v], c.factor[v], c.offset[v]) + more.at[v];
        auto activate = [&](auto f) {
#pragma unroll
            for (int v = 0; v < VECTOR; v++) value.at[v] = f(value.at[v]);
        };
        if constexpr (LINE)
            activate([&](float z) { return activation.value(z); });
        else
            with_inline_activation<T>(function, activation, activate);
        store8(y, i, value);
    }
};

/* Call use(zero of the type, whether the activation is piecewise linear). */
template <typename Use> static void with_norm(const sdlf_operation *op, Use use)
{
    with_storage(op->in[0].dtype, [&](auto zero) {
        if (is_line_activation(op->batch_norm.activation))
            use(zero, std::true_type());
        else
            use(zero, std::false_type());
    });
}

bool batch_norm2d_infer_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return sdlf_operation_storage(op) == SDLF_NONE || takes(op);
}

/* apply_forward with running statistics. */
template <typename T, bool LINE> struct apply_infer_nhwc : apply_forward_nhwc<T, LINE> {
    const float *variance;
    float epsilon;
    typedef typename apply_forward_nhwc<T, LINE>::channel_numbers channel_numbers;
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            const int at = vector * VECTOR + v;
            c.factor[v] = this->scale[at] / sqrtf(variance[at] + epsilon);
            c.offset[v] = fmaf(-this->mean[at], c.factor[v], this->shift[at]);
        }
        return c;
    }
};

sdlf_status batch_norm2d_infer_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_norm(op, [&](auto zero, auto line) {
        using T = decltype(zero);
        apply_infer_nhwc<T, line.value> apply;
        apply.x = data_of<T>(op->in[0]);
        apply.residual = nullptr;
        apply.scale = data_of<float>(op->in[1]);
        apply.shift = data_of<float>(op->in[2]);
        apply.mean = data_of<float>(op->in[3]);
        apply.inverse = nullptr;
        apply.y = data_of<T>(op->out[0]);
        apply.activation = line_activation_of(op->batch_norm.activation);
        apply.function = op->batch_norm.activation.function;
        apply.variance = data_of<float>(op->in[4]);
        apply.epsilon = op->batch_norm.epsilon;
        launch_rows(calculator, op->in[0].shape.dim[0], op->in[0].shape.dim[1], apply);
    });
    return cuda_check_launch("batch_norm2d_infer");
}

template <typename T> static statistics_nhwc<T> statistics_of(const sdlf_operation *op, const T *origin, int stride)
{
    return {origin,
            stride,
            data_of<float>(op->out[1]),
            data_of<float>(op->out[2]),
            data_of<float>(op->out[3]),
            data_of<float>(op->out[4]),
            static_cast<double>(op->in[0].shape.dim[0]),
            static_cast<double>(op->batch_norm.epsilon),
            static_cast<double>(op->batch_norm.momentum)};
}

sdlf_status batch_norm2d_forward_of_nhwc(sdlf_calculator *base, const sdlf_operation *op,
                                         const engine_bn_partials *moments)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t rows = op->in[0].shape.dim[0], channels = op->in[0].shape.dim[1];
    float *mean = data_of<float>(op->out[1]), *inverse = data_of<float>(op->out[2]);
    with_norm(op, [&](auto zero, auto line) {
        using T = decltype(zero);
        const T *x = data_of<T>(op->in[0]);
        if (moments == nullptr) {
            launch_sums(calculator, sums_cut_of(rows, channels), first_moments_nhwc<T>{x}, statistics_of<T>(op, x, 1),
                        op->workspace.data);
        } else {
            const part_moments_nhwc parts = {reinterpret_cast<const float2 *>(moments->parts), moments->rows, channels};
            launch_parts(calculator, moments->count, channels, parts, statistics_of<float>(op, moments->parts, 2));
        }
        launch_rows(calculator, rows, channels,
                    apply_forward_nhwc<T, line.value>{x, optional<T>(op->in[3]), data_of<float>(op->in[1]),
                                                      data_of<float>(op->in[2]), mean, inverse, data_of<T>(op->out[0]),
                                                      line_activation_of(op->batch_norm.activation),
                                                      op->batch_norm.activation.function});
    });
    return cuda_check_launch("batch_norm2d_forward");
}

sdlf_status batch_norm2d_forward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    return batch_norm2d_forward_of_nhwc(base, op, nullptr);
}
