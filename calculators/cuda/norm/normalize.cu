/* SPDX-License-Identifier: MIT */
/* normalize, forward and backward. One block per row, or one warp if rows are short: its threads stride over the row, sums are accumulated
 * in float64 and reduced in a fixed order. The row is read again from cache. Gradients of scale and shift are sums over channels
 * (norm/channel_sums.cuh). Layer normalisation has kernels of its own, which also support 16-bit storage: norm/normalize.cuh and
 * norm/layer_norm_backward.cuh. */
#include "calculators/cuda/norm/channel_sums.cuh"
#include "calculators/cuda/norm/layer_norm_backward.cuh"
#include "calculators/cuda/norm/normalize.cuh"

template <typename Index> struct rows {
    int64_t count;
    Index length;
    divider<Index> inner, channels; /* of a tensor without scale and shift: one channel */
};

template <typename T, typename Index, int WARPS>
static __global__ void normalize_forward(const T *x, const T *scale, const T *shift, T *y, T *mean_out, T *inverse_out,
                                         rows<Index> at, double epsilon)
{
    __shared__ double2 parts[MOST_WARPS];
    for_rows<WARPS>(at.count, [&](int64_t row, int thread, int threads) {
        Index first = static_cast<Index>(row) * at.length;
        double2 sum = {}, squares = {};
#pragma unroll 4
        for (Index i = thread; i < at.length; i += threads) sum.x += static_cast<double>(x[first + i]);
        double mean = row_sum<WARPS>(sum, parts).x / static_cast<double>(at.length);
#pragma unroll 4
        for (Index i = thread; i < at.length; i += threads) {
            double distance = static_cast<double>(x[first + i]) - mean;
            squares.x += distance * distance;
        }
        double variance = row_sum<WARPS>(squares, parts).x / static_cast<double>(at.length);
        T centre = static_cast<T>(mean), inverse = static_cast<T>(1 / sqrt(variance + epsilon));
#pragma unroll 4
        for (Index i = thread; i < at.length; i += threads) {
            Index e = first + i, c = channel_of(e, at.inner, at.channels);
            T value = (x[e] - centre) * inverse;
            if (scale != nullptr) value *= scale[c];
            if (shift != nullptr) value += shift[c];
            y[e] = value;
        }
        if (thread == 0) {
            mean_out[row] = centre;
            inverse_out[row] = inverse;
        }
    });
}

template <typename T, typename Index, int WARPS>
static __global__ void normalize_input(const T *x, const T *scale, const T *mean, const T *inverse_std, const T *dy,
                                       T *dx, rows<Index> at)
{
    __shared__ double2 parts[MOST_WARPS];
    for_rows<WARPS>(at.count, [&](int64_t row, int thread, int threads) {
        Index first = static_cast<Index>(row) * at.length;
        T centre = mean[row], inverse = inverse_std[row];
        auto gradient = [&](Index e) {
            return scale != nullptr ? dy[e] * scale[channel_of(e, at.inner, at.channels)] : dy[e];
        };
        double2 sums = {};
#pragma unroll 4
        for (Index i = thread; i < at.length; i += threads) {
            T g = gradient(first + i);
            sums.x += static_cast<double>(g);
            sums.y += static_cast<double>(g) * static_cast<double>((x[first + i] - centre) * inverse);
        }
        sums = row_sum<WARPS>(sums, parts);
        T share = static_cast<T>(sums.x / static_cast<double>(at.length));
        T along = static_cast<T>(sums.y / static_cast<double>(at.length));
#pragma unroll 4
        for (Index i = thread; i < at.length; i += threads) {
            Index e = first + i;
            dx[e] = inverse * (gradient(e) - share - (x[e] - centre) * inverse * along);
        }
    });
}

/* ---- gradients of scale and shift ---- */

template <typename T, typename Index> struct channel_moments {
    const T *x, *mean, *inverse, *dy;
    divider<Index> length;
    __device__ __forceinline__ double2 operator()(Index e, Index) const
    {
        Index row = length.quotient(e);
        double gradient = dy[e];
        return {gradient, gradient * static_cast<double>((x[e] - mean[row]) * inverse[row])};
    }
};

template <typename T> static __global__ void finish_channels(const double2 *sums, channel_cut cut, T *dscale, T *dshift)
{
    int64_t c = grid_first();
    if (c >= cut.channels) return;
    double2 sum = channel_sum(sums, cut, c);
    if (dscale != nullptr) dscale[c] = static_cast<T>(sum.y);
    if (dshift != nullptr) dshift[c] = static_cast<T>(sum.x);
}

/* ---- launching ---- */

/* The number of elements of scale and shift, or their gradients; 1 if there are none. */
static int64_t channels_of(const sdlf_operation *op)
{
    for (int i = 0; i < CHANNEL_OPERANDS; i++) {
        const sdlf_tensor *channel = channel_operand(op, i);
        if (sdlf_tensor_present(channel)) return sdlf_tensor_count(channel);
    }
    return 1;
}

template <typename Index> static rows<Index> rows_of(const sdlf_operation *op)
{
    rows<Index> at = {};
    at.count = sdlf_tensor_count(&op->in[0]) / op->normalize.length;
    at.length = static_cast<Index>(op->normalize.length);
    at.inner = divider<Index>(op->normalize.inner);
    at.channels = divider<Index>(channels_of(op));
    return at;
}

static channel_cut cut_of(const sdlf_operation *op)
{
    int64_t channels = channels_of(op), inner = op->normalize.inner;
    int64_t image = channels * inner;
    return channel_cut_of(image > 0 ? sdlf_tensor_count(&op->in[0]) / image : 0, channels, inner);
}

/* Of float32, layer_norm_backward only supports aligned operands. Their addresses are not known yet: room for either way. */
extern "C" int64_t normalize_backward_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    bool wanted = sdlf_tensor_present(&op->out[1]) || sdlf_tensor_present(&op->out[2]);
    if (!wanted || sdlf_tensor_count(&op->in[0]) == 0) return 0;
    if (!is_layer_norm(op)) return channel_sums_bytes(cut_of(op));
    int64_t bytes = layer_norm_backward_bytes(reinterpret_cast<const cuda_calculator *>(base), op);
    return sdlf_operation_storage(op) != SDLF_NONE ? bytes : std::max(bytes, channel_sums_bytes(cut_of(op)));
}

static unsigned blocks_of(const cuda_calculator *calculator, int64_t rows, int warps)
{
    return cuda_blocks(calculator, rows * warps * WARP, MOST_WARPS * WARP);
}

extern "C" bool normalize_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return sdlf_operation_storage(op) == SDLF_NONE || is_layer_norm(op);
}

/* 16-bit storage begins at multiples of 16 bytes. */
static bool reads_vectors(const sdlf_operation *op)
{
    if (sdlf_operation_storage(op) != SDLF_NONE) return true;
    const void *dy = op->kind == SDLF_NORMALIZE_FORWARD ? nullptr : op->in[4].data;
    return is_aligned16(op->in[0].data) && is_aligned16(optional<float>(op->out[0])) && is_aligned16(dy);
}

extern "C" sdlf_status normalize_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->in[0]);
    if (count == 0) return SDLF_OK;
    if (is_layer_norm(op) && reads_vectors(op)) {
        with_storage(op->in[0].dtype, [&](auto zero) { launch_layer_norm<decltype(zero)>(calculator, op); });
        return cuda_check_launch("layer_norm");
    }
    with_float(op->in[0].dtype, [&](auto zero) {
        with_narrow_index(count, [&](auto index) {
            with_warps(op->normalize.length, [&](auto warps) {
                using T = decltype(zero);
                using Index = decltype(index);
                const rows<Index> at = rows_of<Index>(op);
                normalize_forward<T, Index, warps.value>
                    <<<blocks_of(calculator, at.count, warps.value), MOST_WARPS * WARP, 0, calculator->stream>>>(
                        data_of<T>(op->in[0]), optional<T>(op->in[1]), optional<T>(op->in[2]), data_of<T>(op->out[0]),
                        data_of<T>(op->out[1]), data_of<T>(op->out[2]), at, static_cast<double>(op->normalize.epsilon));
            });
        });
    });
    return cuda_check_launch("normalize_forward");
}

template <typename T, typename Index>
static void channel_gradients(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const channel_cut cut = cut_of(op);
    double2 *sums = static_cast<double2 *>(op->workspace.data);
    const channel_moments<T, Index> moments = {data_of<T>(op->in[0]), data_of<T>(op->in[2]), data_of<T>(op->in[3]),
                                               data_of<T>(op->in[4]), divider<Index>(op->normalize.length)};
    sum_channels<Index>(calculator->stream, cut, sums, moments);
    finish_channels<T><<<channel_blocks(cut), CHANNEL_THREADS, 0, calculator->stream>>>(
        sums, cut, optional<T>(op->out[1]), optional<T>(op->out[2]));
}

extern "C" sdlf_status normalize_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->in[0]);
    if (count == 0) return SDLF_OK;
    if (is_layer_norm(op) && reads_vectors(op)) {
        with_storage(op->in[0].dtype, [&](auto zero) { launch_layer_norm_backward<decltype(zero)>(calculator, op); });
        return cuda_check_launch("layer_norm_backward");
    }
    with_float(op->in[0].dtype, [&](auto zero) {
        with_narrow_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            const rows<Index> at = rows_of<Index>(op);
            if (sdlf_tensor_present(&op->out[0]))
                with_warps(op->normalize.length, [&](auto warps) {
                    normalize_input<T, Index, warps.value>
                        <<<blocks_of(calculator, at.count, warps.value), MOST_WARPS * WARP, 0, calculator->stream>>>(
                            data_of<T>(op->in[0]), optional<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->in[3]),
                            data_of<T>(op->in[4]), data_of<T>(op->out[0]), at);
                });
            if (sdlf_tensor_present(&op->out[1]) || sdlf_tensor_present(&op->out[2]))
                channel_gradients<T, Index>(calculator, op);
        });
    });
    return cuda_check_launch("normalize_backward");
}
