/* SPDX-License-Identifier: MIT */
/* batch_norm2d. Training: a first pass sums (norm/channel_sums.cuh), one thread per channel computes the statistics, and a second
 * pass, with four elements per thread where planes allow it, applies them: x is read twice. The channel's first value is subtracted
 * first, so that a large mean cancels. Inference: only the second pass. */
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/norm/channel_sums.cuh"
#include "calculators/cuda/vectorized.cuh"

enum { THREADS = 256 };

static int64_t area_of(const sdlf_tensor &x)
{
    return sdlf_shape_span(x.shape, 2, x.shape.rank);
}

static channel_cut cut_of(const sdlf_tensor &x)
{
    return channel_cut_of(x.shape.dim[0], x.shape.dim[1], area_of(x));
}

extern "C" int64_t batch_norm2d_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation placeless = *op; /* the size must not depend on the operands' addresses */
    for (sdlf_tensor *operand : {&placeless.in[0], &placeless.in[3], &placeless.in[4], &placeless.out[0]})
        operand->data = nullptr;
    const int64_t nhwc = batch_norm2d_is_nhwc(&placeless) ? batch_norm2d_workspace_nhwc(base, op) : 0;
    if (op->in[0].dtype != SDLF_FLOAT32 && op->in[0].dtype != SDLF_FLOAT64) return nhwc;
    return std::max(nhwc, channel_sums_bytes(cut_of(op->in[0])));
}

/* ---- training, forward ---- */

template <typename T> struct first_moments {
    const T *x;
    int64_t area;
    template <typename Index> __device__ __forceinline__ double2 operator()(Index e, Index c) const
    {
        double distance = static_cast<double>(x[e]) - static_cast<double>(x[c * area]);
        return {distance, distance * distance};
    }
};

template <typename T> struct statistics {
    T *saved_mean, *saved_inverse, *running_mean, *running_variance;
    double epsilon, momentum;
};

template <typename T>
static __global__ void finish_forward(const T *x, const double2 *sums, channel_cut cut, statistics<T> to)
{
    int64_t c = grid_first();
    if (c >= cut.channels) return;
    double n = static_cast<double>(cut.images * cut.area);
    double2 sum = channel_sum(sums, cut, c);
    double distance = sum.x / n, squares = fmax(sum.y - sum.x * distance, 0.0);
    if (sum.y != sum.y) squares = sum.y; /* fmax drops NaN */
    double mean = static_cast<double>(x[c * cut.area]) + distance, variance = squares / n;
    to.saved_mean[c] = static_cast<T>(mean);
    to.saved_inverse[c] = static_cast<T>(1 / sqrt(variance + to.epsilon));
    double unbiased = n > 1 ? squares / (n - 1) : variance;
    to.running_mean[c] = static_cast<T>((1 - to.momentum) * to.running_mean[c] + to.momentum * mean);
    to.running_variance[c] = static_cast<T>((1 - to.momentum) * to.running_variance[c] + to.momentum * unbiased);
}

/* count and area: in vectors of N */
template <typename T, typename Index, int N>
static __global__ void apply_forward(const T *x, const T *scale, const T *shift, const T *mean, const T *inverse, T *y,
                                     int64_t count, divider<Index> area, divider<Index> channels)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        Index c = channel_of(static_cast<Index>(e), area, channels);
        vec<T, N> values = read_vec<N>(x, e);
        T middle = mean[c], factor = inverse[c] * scale[c], offset = shift[c];
#pragma unroll
        for (int v = 0; v < N; v++) values.at[v] = (values.at[v] - middle) * factor + offset;
        write_vec<N>(y, e, values);
    }
}

extern "C" sdlf_status batch_norm2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (batch_norm2d_is_nhwc(op)) return batch_norm2d_forward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    const channel_cut cut = cut_of(x);
    int64_t count = sdlf_tensor_count(&x);
    double2 *sums = static_cast<double2 *>(op->workspace.data);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        with_narrow_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            const T *from = data_of<T>(x);
            const statistics<T> to = {data_of<T>(op->out[1]), data_of<T>(op->out[2]), data_of<T>(op->out[3]),
                                      data_of<T>(op->out[4]), op->batch_norm.epsilon, op->batch_norm.momentum};
            sum_channels<Index>(calculator->stream, cut, sums, first_moments<T>{from, cut.area});
            finish_forward<T><<<channel_blocks(cut), CHANNEL_THREADS, 0, calculator->stream>>>(from, sums, cut, to);
            T *y = data_of<T>(op->out[0]);
            auto apply = [&](auto n) {
                apply_forward<T, Index, n.value>
                    <<<cuda_blocks(calculator, count / n.value, THREADS), THREADS, 0, calculator->stream>>>(
                        from, data_of<T>(op->in[1]), data_of<T>(op->in[2]), to.saved_mean, to.saved_inverse, y,
                        count / n.value, divider<Index>(cut.area / n.value), divider<Index>(cut.channels));
            };
            with_vec_width(cut.area, apply, from, y);
        });
    });
    return cuda_check_launch("batch_norm2d_forward");
}

/* ---- inference ---- */

template <typename T, typename Index, int N>
static __global__ void batch_norm_infer(const T *x, const T *scale, const T *shift, const T *mean, const T *variance,
                                        T *y, int64_t count, divider<Index> area, divider<Index> channels, T epsilon,
                                        sdlf_activation activation)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        Index c = channel_of(static_cast<Index>(e), area, channels);
        vec<T, N> values = read_vec<N>(x, e);
        T middle = mean[c], deviation = sqrt(variance[c] + epsilon), factor = scale[c], offset = shift[c];
#pragma unroll
        for (int v = 0; v < N; v++)
            values.at[v] = activate(activation, (values.at[v] - middle) / deviation * factor + offset);
        write_vec<N>(y, e, values);
    }
}

extern "C" sdlf_status batch_norm2d_infer_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (sdlf_operation_storage(op) != SDLF_NONE) return batch_norm2d_infer_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    int64_t count = sdlf_tensor_count(&x);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        with_narrow_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            const T *from = data_of<T>(x);
            T *to = data_of<T>(op->out[0]);
            auto apply = [&](auto n) {
                batch_norm_infer<T, Index, n.value>
                    <<<cuda_blocks(calculator, count / n.value, THREADS), THREADS, 0, calculator->stream>>>(
                        from, data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->in[3]),
                        data_of<T>(op->in[4]), to, count / n.value, divider<Index>(area_of(x) / n.value),
                        divider<Index>(x.shape.dim[1]), static_cast<T>(op->batch_norm.epsilon),
                        op->batch_norm.activation);
            };
            with_vec_width(area_of(x), apply, from, to);
        });
    });
    return cuda_check_launch("batch_norm2d_infer");
}

/* ---- training, backward ---- */

template <typename T> struct gradient_moments {
    const T *x, *mean, *inverse, *dy;
    template <typename Index> __device__ __forceinline__ double2 operator()(Index e, Index c) const
    {
        double gradient = dy[e], distance = static_cast<double>(x[e]) - static_cast<double>(mean[c]);
        return {gradient, gradient * distance * static_cast<double>(inverse[c])};
    }
};

template <typename T> static __global__ void finish_backward(const double2 *sums, channel_cut cut, T *dscale, T *dshift)
{
    int64_t c = grid_first();
    if (c >= cut.channels) return;
    double2 sum = channel_sum(sums, cut, c);
    dshift[c] = static_cast<T>(sum.x);
    dscale[c] = static_cast<T>(sum.y);
}

template <typename T> struct backward_operands {
    const T *x, *scale, *mean, *inverse, *dy, *dscale, *dshift;
    T *dx;
};

template <typename T, typename Index, int N>
static __global__ void apply_backward(backward_operands<T> of, int64_t count, divider<Index> area,
                                      divider<Index> channels, T share)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        Index c = channel_of(static_cast<Index>(e), area, channels);
        const vec<T, N> x = read_vec<N>(of.x, e), dy = read_vec<N>(of.dy, e);
        T middle = of.mean[c], inverse = of.inverse[c], of_shift = share * of.dshift[c],
          of_scale = share * of.dscale[c];
        T factor = of.scale[c] * inverse;
        vec<T, N> dx;
#pragma unroll
        for (int v = 0; v < N; v++) dx.at[v] = factor * (dy.at[v] - of_shift - (x.at[v] - middle) * inverse * of_scale);
        write_vec<N>(of.dx, e, dx);
    }
}

extern "C" sdlf_status batch_norm2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (batch_norm2d_is_nhwc(op)) return batch_norm2d_backward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    const channel_cut cut = cut_of(x);
    int64_t count = sdlf_tensor_count(&x);
    double2 *sums = static_cast<double2 *>(op->workspace.data);
    if (cut.channels == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        with_narrow_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            T *dscale = data_of<T>(op->out[1]), *dshift = data_of<T>(op->out[2]);
            const backward_operands<T> of = {data_of<T>(x),
                                             data_of<T>(op->in[1]),
                                             data_of<T>(op->in[2]),
                                             data_of<T>(op->in[3]),
                                             data_of<T>(op->in[4]),
                                             dscale,
                                             dshift,
                                             optional<T>(op->out[0])};
            if (count > 0)
                sum_channels<Index>(calculator->stream, cut, sums,
                                    gradient_moments<T>{of.x, of.mean, of.inverse, of.dy});
            finish_backward<T>
                <<<channel_blocks(cut), CHANNEL_THREADS, 0, calculator->stream>>>(sums, cut, dscale, dshift);
            auto apply = [&](auto n) {
                apply_backward<T, Index, n.value>
                    <<<cuda_blocks(calculator, count / n.value, THREADS), THREADS, 0, calculator->stream>>>(
                        of, count / n.value, divider<Index>(cut.area / n.value), divider<Index>(cut.channels),
                        static_cast<T>(1.0 / static_cast<double>(cut.images * cut.area)));
            };
            if (of.dx != nullptr && count > 0) with_vec_width(cut.area, apply, of.x, of.dy, of.dx);
        });
    });
    return cuda_check_launch("batch_norm2d_backward");
}
