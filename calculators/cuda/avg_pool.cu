/* avg_pool2d and global_avg_pool2d. A thread an output (forward) or an input (backward, which gathers: no atomics); global
 * averages take a warp a channel. Every tensor is moved once, but for overlapping windows, which hit the cache. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, WARP = 32 };

struct pooling {
    int64_t planes, height, width, out_height, out_width;
    sdlf_window2d window;
    bool count_padding;
};

static pooling pooling_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    return {x.shape.dim[0] * x.shape.dim[1],
            x.shape.dim[2],
            x.shape.dim[3],
            y.shape.dim[2],
            y.shape.dim[3],
            op->pool2d.window,
            op->pool2d.count_padding};
}

/* Positions of window p along an axis that lie inside the input. */
static __device__ int inside(const sdlf_window2d &window, int axis, int64_t p, int64_t side)
{
    int count = 0;
    for (int r = 0; r < window.size[axis]; r++) {
        int64_t at = p * window.stride[axis] + r * window.dilation[axis] - window.padding_before[axis];
        count += at >= 0 && at < side;
    }
    return count;
}

static __device__ int divisor(const pooling &g, int64_t p, int64_t q)
{
    if (g.count_padding) return g.window.size[0] * g.window.size[1];
    return inside(g.window, 0, p, g.height) * inside(g.window, 1, q, g.width);
}

template <typename T> static __global__ void avg_pool_forward(const T *x, T *y, pooling g)
{
    int64_t outputs = g.planes * g.out_height * g.out_width;
    const sdlf_window2d &window = g.window;
    for (int64_t e = grid_first(); e < outputs; e += grid_step()) {
        int64_t q = e % g.out_width, p = e / g.out_width % g.out_height, plane = e / (g.out_width * g.out_height);
        const T *image = x + plane * g.height * g.width;
        T sum = 0;
        for (int r = 0; r < window.size[0]; r++) {
            int64_t h = p * window.stride[0] + r * window.dilation[0] - window.padding_before[0];
            if (h < 0 || h >= g.height) continue;
            for (int s = 0; s < window.size[1]; s++) {
                int64_t w = q * window.stride[1] + s * window.dilation[1] - window.padding_before[1];
                if (w >= 0 && w < g.width) sum += image[h * g.width + w];
            }
        }
        y[e] = sum / static_cast<T>(divisor(g, p, q));
    }
}

template <typename T> static __global__ void avg_pool_backward(const T *dy, T *dx, pooling g)
{
    int64_t inputs = g.planes * g.height * g.width;
    const sdlf_window2d &window = g.window;
    for (int64_t e = grid_first(); e < inputs; e += grid_step()) {
        int64_t w = e % g.width, h = e / g.width % g.height, plane = e / (g.width * g.height);
        T sum = 0;
        for (int r = 0; r < window.size[0]; r++) {
            int64_t down = h + window.padding_before[0] - r * window.dilation[0];
            if (down < 0 || down % window.stride[0] != 0 || down / window.stride[0] >= g.out_height) continue;
            for (int s = 0; s < window.size[1]; s++) {
                int64_t right = w + window.padding_before[1] - s * window.dilation[1];
                if (right < 0 || right % window.stride[1] != 0 || right / window.stride[1] >= g.out_width) continue;
                int64_t p = down / window.stride[0], q = right / window.stride[1];
                sum += dy[(plane * g.out_height + p) * g.out_width + q] / static_cast<T>(divisor(g, p, q));
            }
        }
        dx[e] = sum;
    }
}

template <typename T> static __global__ void global_avg_pool_forward(const T *x, T *y, int64_t planes, int64_t area)
{
    int64_t lane = threadIdx.x % WARP;
    for (int64_t plane = grid_first() / WARP; plane < planes; plane += grid_step() / WARP) {
        T sum = 0;
        for (int64_t i = lane; i < area; i += WARP) sum += x[plane * area + i];
        for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) y[plane] = sum / static_cast<T>(area);
    }
}

template <typename T> static __global__ void global_avg_pool_backward(const T *dy, T *dx, int64_t count, int64_t area)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) dx[e] = dy[e / area] / static_cast<T>(area);
}

extern "C" sdlf_status avg_pool2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        avg_pool_forward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(x), data_of<T>(y), pooling_of(op, x, y));
    });
    return cuda_check_launch("avg_pool2d_forward");
}

extern "C" sdlf_status avg_pool2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[0], &dx = op->out[0];
    int64_t count = sdlf_tensor_count(&dx);
    if (count == 0) return SDLF_OK;
    with_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        avg_pool_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(dy), data_of<T>(dx), pooling_of(op, dx, dy));
    });
    return cuda_check_launch("avg_pool2d_backward");
}

extern "C" sdlf_status global_avg_pool2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    int64_t area = x.shape.dim[2] * x.shape.dim[3], planes = sdlf_tensor_count(&op->out[0]);
    if (planes == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        global_avg_pool_forward<T><<<cuda_blocks(calculator, planes * WARP, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(x), data_of<T>(op->out[0]), planes, area);
    });
    return cuda_check_launch("global_avg_pool2d_forward");
}

extern "C" sdlf_status global_avg_pool2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dx = op->out[0];
    int64_t area = dx.shape.dim[2] * dx.shape.dim[3], count = sdlf_tensor_count(&dx);
    if (count == 0) return SDLF_OK;
    with_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        global_avg_pool_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(dx), count, area);
    });
    return cuda_check_launch("global_avg_pool2d_backward");
}
