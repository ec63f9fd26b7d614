/* batch_norm2d of x (M,C) in 16-bit storage, for training: one kernel sums (channel_sums16.cuh) and works out what follows from the sums,
 * a second applies it, a thread 8 channels of every so many rows. Forward moves x twice and y once, backward x and dy twice and dx once. The variance
 * is that of x less the channel's first number, so that a large mean cancels beforehand. */
#include "calculators/cuda/storage16/channel_sums16.cuh"
#include "calculators/cuda/storage16/storage16.h"

enum { THREADS = 256 };

int64_t batch_norm2d_workspace_storage16(const sdlf_calculator *, const sdlf_operation *op)
{
    return sums16_bytes(sums16_cut_of(op->in[0].shape.dim[0], op->in[0].shape.dim[1]));
}

/* A grid of threads, each with an 8 of channels and every so many rows: so numbers of channels are read once. */
struct rows16 {
    int64_t rows;
    int vectors; /* of 8 channels */
};

template <typename Body> static __global__ void __launch_bounds__(THREADS) for_rows16(const Body body, const rows16 of)
{
    await_kernels();
    const int64_t thread = grid_first(), lines = grid_step() / of.vectors, line = thread / of.vectors;
    if (line >= lines) return;
    const int vector = static_cast<int>(thread - line * of.vectors);
    const typename Body::channel_numbers numbers = body.read(vector);
#pragma unroll 4
    for (int64_t row = line; row < of.rows; row += lines) body.run(numbers, row * of.vectors + vector);
}

template <typename Body>
static void launch_rows16(const cuda_calculator *calculator, int64_t rows, int64_t channels, const Body &body)
{
    const rows16 of = {rows, static_cast<int>(channels / VECTOR16)};
    int64_t blocks = cuda_blocks(calculator, rows * of.vectors, THREADS), least = (of.vectors + THREADS - 1) / THREADS;
    if (blocks < least) blocks = least;
    launch_overlapped(calculator, for_rows16<Body>, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0, body, of);
}

/* ---- forward ---- */

template <typename T> struct first_moments16 {
    const T *x;
    int64_t vectors;
    __device__ __forceinline__ void add(int64_t row, int64_t vector, float2 (&sums)[VECTOR16]) const
    {
        const float8 value = load16(x, row * vectors + vector), origin = load16(x, vector);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const float distance = value.at[v] - origin.at[v];
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

template <typename T> struct apply_forward16 {
    const T *x;
    const float *scale, *shift, *mean, *inverse;
    T *y;
    struct channel_numbers {
        float mean[VECTOR16], factor[VECTOR16], shift[VECTOR16];
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const int at = vector * VECTOR16 + v;
            c.mean[v] = mean[at];
            c.factor[v] = inverse[at] * scale[at];
            c.shift[v] = shift[at];
        }
        return c;
    }
    __device__ __forceinline__ void run(const channel_numbers &c, int64_t i) const
    {
        float8 value = load16(x, i);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) value.at[v] = (value.at[v] - c.mean[v]) * c.factor[v] + c.shift[v];
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
        launch_sums16(calculator, sums16_cut_of(rows, channels), first_moments16<T>{x, channels / VECTOR16}, statistics,
                      op->workspace.data);
        launch_rows16(calculator, rows, channels,
                      apply_forward16<T>{x, data_of<float>(op->in[1]), data_of<float>(op->in[2]), mean, inverse,
                                         data_of<T>(op->out[0])});
    });
    return cuda_check_launch("batch_norm2d_forward");
}

/* ---- backward ---- */

template <typename T> struct gradient_moments16 {
    const T *x, *dy;
    const float *mean, *inverse;
    int64_t vectors;
    __device__ __forceinline__ void add(int64_t row, int64_t vector, float2 (&sums)[VECTOR16]) const
    {
        const float8 value = load16(x, row * vectors + vector), gradient = load16(dy, row * vectors + vector);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const float distance = value.at[v] - mean[vector * VECTOR16 + v];
            sums[v].x += gradient.at[v];
            sums[v].y += gradient.at[v] * distance * inverse[vector * VECTOR16 + v];
        }
    }
};

struct gradients16 {
    float *dscale, *dshift;
    __device__ __forceinline__ void take(int64_t c, double2 sum) const
    {
        dshift[c] = static_cast<float>(sum.x);
        dscale[c] = static_cast<float>(sum.y);
    }
};

template <typename T> struct apply_backward16 {
    const T *x, *dy;
    const float *scale, *mean, *inverse, *dscale, *dshift;
    T *dx;
    float share; /* 1 / rows */
    struct channel_numbers {
        float mean[VECTOR16], factor[VECTOR16], of_distance[VECTOR16], of_shift[VECTOR16];
    };
    __device__ __forceinline__ channel_numbers read(int vector) const
    {
        channel_numbers c;
#pragma unroll
        for (int v = 0; v < VECTOR16; v++) {
            const int at = vector * VECTOR16 + v;
            c.mean[v] = mean[at];
            c.factor[v] = scale[at] * inverse[at];
            c.of_distance[v] = inverse[at] * share * dscale[at];
            c.of_shift[v] = share * dshift[at];
        }
        return c;
    }
    __device__ __forceinline__ void run(const channel_numbers &c, int64_t i) const
    {
        const float8 value = load16(x, i);
        float8 gradient = load16(dy, i);
#pragma unroll
        for (int v = 0; v < VECTOR16; v++)
            gradient.at[v] =
                c.factor[v] * (gradient.at[v] - c.of_shift[v] - (value.at[v] - c.mean[v]) * c.of_distance[v]);
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
        const T *x = data_of<T>(op->in[0]), *dy = data_of<T>(op->in[4]);
        launch_sums16(calculator, sums16_cut_of(rows, channels),
                      gradient_moments16<T>{x, dy, mean, inverse, channels / VECTOR16}, gradients16{dscale, dshift},
                      op->workspace.data);
        if (!sdlf_tensor_present(&op->out[0])) return;
        launch_rows16(calculator, rows, channels,
                      apply_backward16<T>{x, dy, data_of<float>(op->in[1]), mean, inverse, dscale, dshift,
                                          data_of<T>(op->out[0]), static_cast<float>(1.0 / static_cast<double>(rows))});
    });
    return cuda_check_launch("batch_norm2d_backward");
}
