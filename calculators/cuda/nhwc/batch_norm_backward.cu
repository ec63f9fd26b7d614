/* SPDX-License-Identifier: MIT */
/* The backward pass of batch_norm2d of x (M,C), C a multiple of 8: one kernel computes sums (column_sums.cuh), a second applies them (for_rows.cuh).
 * Moves x and dy twice, dx and dresidual once; and y twice, unless the slope is computed from x, with y bit for bit as in forward. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/nhwc/column_sums.cuh"
#include "calculators/cuda/nhwc/for_rows.cuh"
#include "calculators/cuda/nhwc/nhwc.h"

/* How the activation's slope is obtained: none; from y; from y, and it is 0 or 1; from x by recomputing y as batch_norm.cu does, and it is 0
 * or 1; from x by recomputing the activation's input as batch_norm.cu does. */
enum slope_source { NO_SLOPE, SLOPE_OF_Y, STEP_OF_Y, STEP_OF_X, SLOPE_OF_X };

/* g = dy act'(y), 8 elements at a time. */
template <typename T, slope_source SOURCE> struct gradient_nhwc {
    static constexpr int UNROLL = SOURCE == SLOPE_OF_X ? 1 : 4 / sizeof(T); /* computing a slope needs registers */
    static constexpr bool READS_X = SOURCE == STEP_OF_X || SOURCE == SLOPE_OF_X;
    const T *x, *dy, *y;
    piecewise_linear_activation activation;
    sdlf_activation_function function;
    rounded_range of_x; /* normalised values of x for which the slope is 1 */
    const float *scale, *shift, *mean, *inverse;
    struct loaded {
        bits8<T> x, dy, y;
    };
    struct line {
        float factor[READS_X ? VECTOR : 1], offset[READS_X ? VECTOR : 1];
    };
    __device__ __forceinline__ line read(int vector) const
    {
        line c = {};
        if constexpr (READS_X) {
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                const int at = vector * VECTOR + v;
                c.factor[v] = inverse[at] * scale[at];
                c.offset[v] = fmaf(-mean[at], c.factor[v], shift[at]);
            }
        }
        return c;
    }
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        constexpr bool reads_y = SOURCE == SLOPE_OF_Y || SOURCE == STEP_OF_Y;
        return {load_bits8(x, i), load_bits8(dy, i), reads_y ? load_bits8(y, i) : bits8<T>{}};
    }
    static __device__ __forceinline__ float8 unpack(const bits8<T> &bits)
    {
        return unpack8<T>(bits);
    }
    __device__ __forceinline__ float8 gradient(const line &c, const loaded &in, const float8 &value) const
    {
        float8 gradient = unpack8<T>(in.dy);
        const float8 result = unpack8<T>(in.y);
        if constexpr (SOURCE == SLOPE_OF_X) {
            with_inline_slope<T>(function, [&](auto slope) {
#pragma unroll
                for (int v = 0; v < VECTOR; v++) gradient.at[v] *= slope(fmaf(value.at[v], c.factor[v], c.offset[v]));
            });
        }
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            if constexpr (SOURCE == SLOPE_OF_Y) gradient.at[v] *= activation.derivative(result.at[v]);
            if constexpr (SOURCE == STEP_OF_Y)
                gradient.at[v] =
                    result.at[v] > activation.low && result.at[v] < activation.high ? gradient.at[v] : 0.0f;
            if constexpr (SOURCE == STEP_OF_X)
                gradient.at[v] = of_x.has(fmaf(value.at[v], c.factor[v], c.offset[v])) ? gradient.at[v] : 0.0f;
        }
        return gradient;
    }
};

template <typename Gradient> struct gradient_moments_nhwc {
    static constexpr int UNROLL = Gradient::UNROLL;
    typedef typename Gradient::loaded loaded;
    Gradient of;
    const float *mean;
    struct channel_numbers {
        float mean[VECTOR];
        typename Gradient::line line;
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
        c.line = of.read(vector);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) c.mean[v] = mean[vector * VECTOR + v];
        return c;
    }
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return of.load(i);
    }
    __device__ __forceinline__ void add(const channel_numbers &c, const loaded &in, float2 (&sums)[VECTOR]) const
    {
        const float8 value = Gradient::unpack(in.x), gradient = of.gradient(c.line, in, value);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            sums[v].x += gradient.at[v];
            sums[v].y += gradient.at[v] * (value.at[v] - c.mean[v]);
        }
    }
};

struct gradients_nhwc {
    const float *inverse;
    float *dscale, *dshift;
    __device__ __forceinline__ void take(int64_t c, double2 sum) const
    {
        dshift[c] = static_cast<float>(sum.x);
        dscale[c] = static_cast<float>(sum.y * static_cast<double>(inverse[c]));
    }
};

/* dx = factor g + slope x + offset */
template <typename T, typename Gradient> struct apply_backward_nhwc {
    static constexpr int UNROLL = Gradient::UNROLL, BLOCKS = 2;
    typedef typename Gradient::loaded loaded;
    Gradient of;
    const float *scale, *mean, *inverse, *dscale, *dshift;
    T *dx, *dresidual; /* NULL: not computed */
    float share;       /* 1 / rows */
    struct channel_numbers {
        float factor[VECTOR], slope[VECTOR], offset[VECTOR];
        typename Gradient::line line;
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
        c.line = of.read(vector);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            const int at = vector * VECTOR + v;
            c.factor[v] = scale[at] * inverse[at];
            c.slope[v] = -c.factor[v] * inverse[at] * share * dscale[at];
            c.offset[v] = -c.factor[v] * share * dshift[at] - c.slope[v] * mean[at];
        }
        return c;
    }
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return of.load(i);
    }
    __device__ __forceinline__ void run(const channel_numbers &c, const loaded &in, int64_t i) const
    {
        const float8 value = unpack8<T>(in.x);
        float8 gradient = of.gradient(c.line, in, value);
        if (dresidual != nullptr) store8(dresidual, i, gradient);
        if (dx == nullptr) return;
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
            gradient.at[v] = c.factor[v] * gradient.at[v] + (c.slope[v] * value.at[v] + c.offset[v]);
        store8(dx, i, gradient);
    }
};

template <typename T, slope_source SOURCE>
static void launch(const cuda_calculator *calculator, const sdlf_operation *op)
{
    using gradient = gradient_nhwc<T, SOURCE>;
    const int64_t rows = op->in[0].shape.dim[0], channels = op->in[0].shape.dim[1];
    const float *scale = data_of<float>(op->in[1]), *mean = data_of<float>(op->in[2]);
    const float *inverse = data_of<float>(op->in[3]);
    float *dscale = data_of<float>(op->out[1]), *dshift = data_of<float>(op->out[2]);
    const piecewise_linear_activation activation = line_activation_of(op->batch_norm.activation);
    const gradient of = {data_of<T>(op->in[0]),
                         data_of<T>(op->in[4]),
                         optional<T>(op->in[5]),
                         activation,
                         op->batch_norm.activation.function,
                         rounded_range_of<T>(activation.low, activation.high),
                         scale,
                         optional<float>(op->in[6]),
                         mean,
                         inverse};
    T *dx = optional<T>(op->out[0]), *dresidual = optional<T>(op->out[3]);
    launch_sums(calculator, sums_cut_of(rows, channels), gradient_moments_nhwc<gradient>{of, mean},
                gradients_nhwc{inverse, dscale, dshift}, op->workspace.data);
    if (dx == nullptr && dresidual == nullptr) return;
    launch_rows(calculator, rows, channels,
                apply_backward_nhwc<T, gradient>{of, scale, mean, inverse, dscale, dshift, dx, dresidual,
                                                 static_cast<float>(1.0 / static_cast<double>(rows))});
}

sdlf_status batch_norm2d_backward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const bool is_step = line_activation_of(op->batch_norm.activation).slope == 1;
    with_storage(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        if (has_inline_slope(op->batch_norm.activation))
            launch<T, SLOPE_OF_X>(calculator, op);
        else if (sdlf_tensor_present(&op->in[6]))
            launch<T, STEP_OF_X>(calculator, op);
        else if (!sdlf_tensor_present(&op->in[5]))
            launch<T, NO_SLOPE>(calculator, op);
        else if (is_step)
            launch<T, STEP_OF_Y>(calculator, op);
        else
            launch<T, SLOPE_OF_Y>(calculator, op);
    });
    return cuda_check_launch("batch_norm2d_backward");
}
