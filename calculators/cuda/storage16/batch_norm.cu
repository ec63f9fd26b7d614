/* batch_norm2d of x (M,C) in 16-bit storage, for training: one kernel sums (channel_sums16.cuh) and works out what follows from the sums,
 * a second applies it, a thread 8 channels of every so many rows. Forward moves x twice, y and residual once; backward x, dy and y twice, dx
 * and dresidual once. The variance is that of x less the channel's first number, so that a large mean cancels beforehand. */
#include "calculators/cuda/storage16/channel_sums16.cuh"
#include "calculators/cuda/storage16/storage16.h"

enum { THREADS = 256 };

bool batch_norm2d_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    if (sdlf_operation_storage(op) == SDLF_NONE) return !sdlf_batch_norm2d_is_fused(op);
    return x.shape.rank == 2 && x.shape.dim[0] > 0 && x.shape.dim[1] > 0 && x.shape.dim[1] % VECTOR16 == 0 &&
           is_line_activation(op->batch_norm.activation);
}

int64_t batch_norm2d_workspace_storage16(const sdlf_calculator *, const sdlf_operation *op)
{
    return sums16_bytes(sums16_cut_of(op->in[0].shape.dim[0], op->in[0].shape.dim[1]));
}

/* A grid of threads, each with an 8 of channels and every so many rows: so numbers of channels are read once. UNROLL rows are loaded before
 * the first is used. */
struct rows16 {
    int64_t rows;
    int vectors; /* of 8 channels */
};

template <typename Body>
static __global__ void __launch_bounds__(THREADS, Body::BLOCKS) for_rows16(const Body body, const rows16 of)
{
    await_kernels();
    const int64_t thread = grid_first(), lines = grid_step() / of.vectors, line = thread / of.vectors;
    if (line >= lines) return;
    const int vector = static_cast<int>(thread - line * of.vectors);
    const typename Body::channel_numbers numbers = body.read(vector);
    for (int64_t row = line; row < of.rows; row += Body::UNROLL * lines) {
        typename Body::loaded in[Body::UNROLL];
#pragma unroll
        for (int u = 0; u < Body::UNROLL; u++) {
            if (row + u * lines < of.rows) in[u] = body.load((row + u * lines) * of.vectors + vector);
        }
#pragma unroll
        for (int u = 0; u < Body::UNROLL; u++) {
            if (row + u * lines < of.rows) body.run(numbers, in[u], (row + u * lines) * of.vectors + vector);
        }
    }
}

template <typename Body>
static void launch_rows16(const cuda_calculator *calculator, int64_t rows, int64_t channels, const Body &body)
{
    const rows16 of = {rows, static_cast<int>(channels / VECTOR16)};
    const int64_t least = (of.vectors + THREADS - 1) / THREADS, most = calculator->multiprocessors * Body::BLOCKS;
    int64_t blocks = (rows * of.vectors + Body::UNROLL * THREADS - 1) / (Body::UNROLL * THREADS);
    if (blocks > most) blocks = most;
    if (blocks < least) blocks = least;
    launch_overlapped(calculator, for_rows16<Body>, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0, body, of);
}

/* ---- forward ---- */

template <typename T> struct first_moments16 {
    static constexpr int UNROLL = 4, BLOCKS = 4;
    const T *x;
    struct channel_numbers {
        float8 origin;
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        return {load16(x, vector)};
    }
    typedef uint4 loaded;
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return load_bits16(x, i);
    }
    __device__ __forceinline__ void add(const channel_numbers &c, const loaded &in, float2 (&sums)[VECTOR16]) const
    {
        const float8 value = unpack16<T>(in);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const float distance = value.at[v] - c.origin.at[v];
            sums[v].x += distance;
            sums[v].y += distance * distance;
        }
    }
};

template <typename T> struct statistics16 {
    const T *x;
    float *saved_mean, *saved_inverse, *running_mean, *running_variance;
    double rows, epsilon, momentum;
    __device__ __forceinline__ void take(int64_t c, double2 sum) const
    {
        const double distance = sum.x / rows;
        double squares = fmax(sum.y - sum.x * distance, 0.0);
        if (sum.y != sum.y) squares = sum.y; /* fmax takes no NaN */
        const double mean = static_cast<double>(static_cast<float>(x[c])) + distance, variance = squares / rows;
        saved_mean[c] = static_cast<float>(mean);
        saved_inverse[c] = static_cast<float>(1 / sqrt(variance + epsilon));
        const double unbiased = rows > 1 ? squares / (rows - 1) : variance;
        running_mean[c] = static_cast<float>((1 - momentum) * running_mean[c] + momentum * mean);
        running_variance[c] = static_cast<float>((1 - momentum) * running_variance[c] + momentum * unbiased);
    }
};

/* y = act(factor x + offset + residual) */
template <typename T> struct apply_forward16 {
    static constexpr int UNROLL = 4, BLOCKS = 3;
    const T *x, *residual; /* NULL: none */
    const float *scale, *shift, *mean, *inverse;
    T *y;
    line_activation activation;
    struct channel_numbers {
        float factor[VECTOR16], offset[VECTOR16];
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const int at = vector * VECTOR16 + v;
            c.factor[v] = inverse[at] * scale[at];
            c.offset[v] = shift[at] - mean[at] * c.factor[v];
        }
        return c;
    }
    struct loaded {
        uint4 x, residual;
    };
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return {load_bits16(x, i), load_bits16(residual, i)};
    }
    __device__ __forceinline__ void run(const channel_numbers &c, const loaded &in, int64_t i) const
    {
        float8 value = unpack16<T>(in.x);
        const float8 more = unpack16<T>(in.residual);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++)
            value.at[v] = activation.value(value.at[v] * c.factor[v] + c.offset[v] + more.at[v]);
        store16(y, i, value);
    }
};

sdlf_status batch_norm2d_forward_storage16(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t rows = op->in[0].shape.dim[0], channels = op->in[0].shape.dim[1];
    float *mean = data_of<float>(op->out[1]), *inverse = data_of<float>(op->out[2]);
    with_storage(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *x = data_of<T>(op->in[0]);
        const statistics16<T> statistics = {x,
                                            mean,
                                            inverse,
                                            data_of<float>(op->out[3]),
                                            data_of<float>(op->out[4]),
                                            static_cast<double>(rows),
                                            static_cast<double>(op->batch_norm.epsilon),
                                            static_cast<double>(op->batch_norm.momentum)};
        launch_sums16(calculator, sums16_cut_of(rows, channels), first_moments16<T>{x}, statistics, op->workspace.data);
        launch_rows16(calculator, rows, channels,
                      apply_forward16<T>{x, optional<T>(op->in[3]), data_of<float>(op->in[1]),
                                         data_of<float>(op->in[2]), mean, inverse, data_of<T>(op->out[0]),
                                         line_activation_of(op->batch_norm.activation)});
    });
    return cuda_check_launch("batch_norm2d_forward");
}

/* ---- backward ---- */

/* x and g = dy act'(y), 8 at a time. */
template <typename T> struct gradient16 {
    const T *x, *dy, *y; /* y: NULL where there is no activation */
    line_activation activation;
    struct loaded {
        uint4 x, dy, y;
    };
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return {load_bits16(x, i), load_bits16(dy, i), load_bits16(y, i)};
    }
    __device__ __forceinline__ float8 gradient(const loaded &in) const
    {
        float8 gradient = unpack16<T>(in.dy);
        if (y == nullptr) return gradient;
        const float8 result = unpack16<T>(in.y);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) gradient.at[v] *= activation.derivative(result.at[v]);
        return gradient;
    }
};

template <typename T> struct gradient_moments16 {
    static constexpr int UNROLL = 2, BLOCKS = 3;
    typedef typename gradient16<T>::loaded loaded;
    gradient16<T> of;
    const float *mean;
    struct channel_numbers {
        float mean[VECTOR16];
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) c.mean[v] = mean[vector * VECTOR16 + v];
        return c;
    }
    __device__ __forceinline__ loaded load(int64_t i) const
    {
        return of.load(i);
    }
    __device__ __forceinline__ void add(const channel_numbers &c, const loaded &in, float2 (&sums)[VECTOR16]) const
    {
        const float8 value = unpack16<T>(in.x), gradient = of.gradient(in);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            sums[v].x += gradient.at[v];
            sums[v].y += gradient.at[v] * (value.at[v] - c.mean[v]);
        }
    }
};

struct gradients16 {
    const float *inverse;
    float *dscale, *dshift;
    __device__ __forceinline__ void take(int64_t c, double2 sum) const
    {
        dshift[c] = static_cast<float>(sum.x);
        dscale[c] = static_cast<float>(sum.y * static_cast<double>(inverse[c]));
    }
};

/* dx = factor g + slope x + offset */
template <typename T> struct apply_backward16 {
    static constexpr int UNROLL = 2, BLOCKS = 2;
    typedef typename gradient16<T>::loaded loaded;
    gradient16<T> of;
    const float *scale, *mean, *inverse, *dscale, *dshift;
    T *dx, *dresidual; /* NULL: not wanted */
    float share;       /* 1 / rows */
    struct channel_numbers {
        float factor[VECTOR16], slope[VECTOR16], offset[VECTOR16];
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const int at = vector * VECTOR16 + v;
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
        const float8 value = unpack16<T>(in.x);
        float8 gradient = of.gradient(in);
        if (dresidual != nullptr) store16(dresidual, i, gradient);
        if (dx == nullptr) return;
#pragma unroll
        for (int v = 0; v < VECTOR16; v++)
            gradient.at[v] = c.factor[v] * gradient.at[v] + (c.slope[v] * value.at[v] + c.offset[v]);
        store16(dx, i, gradient);
    }
};

sdlf_status batch_norm2d_backward_storage16(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const int64_t rows = op->in[0].shape.dim[0], channels = op->in[0].shape.dim[1];
    const float *mean = data_of<float>(op->in[2]), *inverse = data_of<float>(op->in[3]);
    float *dscale = data_of<float>(op->out[1]), *dshift = data_of<float>(op->out[2]);
    with_storage(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        const gradient16<T> of = {data_of<T>(op->in[0]), data_of<T>(op->in[4]), optional<T>(op->in[5]),
                                  line_activation_of(op->batch_norm.activation)};
        T *dx = optional<T>(op->out[0]), *dresidual = optional<T>(op->out[3]);
        launch_sums16(calculator, sums16_cut_of(rows, channels), gradient_moments16<T>{of, mean},
                      gradients16{inverse, dscale, dshift}, op->workspace.data);
        if (dx == nullptr && dresidual == nullptr) return;
        launch_rows16(calculator, rows, channels,
                      apply_backward16<T>{of, data_of<float>(op->in[1]), mean, inverse, dscale, dshift, dx, dresidual,
                                          static_cast<float>(1.0 / static_cast<double>(rows))});
    });
    return cuda_check_launch("batch_norm2d_backward");
}
