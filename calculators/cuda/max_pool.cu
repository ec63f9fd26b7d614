/* Max-pool over RxS windows. x (N,C,H,W) -> y (N,C,P,Q): a thread an output; a warp covers 32 neighbours in q, so that loads
 * coalesce. Moves 4 (NCHW + NCPQ) bytes. Backward gathers: a thread an input element visits the windows that hold it, and no
 * atomics are needed; windows that do not overlap are visited once each. Padding never wins, NaN does. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

struct pooling {
    int64_t planes, height, width, out_height, out_width;
    sdlf_window2d window;
    bool first; /* of tied maxima, the first alone */
};

static pooling pooling_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    return {x.shape.dim[0] * x.shape.dim[1],
            x.shape.dim[2],
            x.shape.dim[3],
            y.shape.dim[2],
            y.shape.dim[3],
            op->pool2d.window,
            op->pool2d.ties == SDLF_TIES_FIRST};
}

static __device__ bool same(double a, double b)
{
    return a == b || (a != a && b != b);
}

template <typename T> static __global__ void max_pool_forward(const T *x, T *y, pooling g)
{
    int64_t outputs = g.planes * g.out_height * g.out_width;
    const sdlf_window2d &window = g.window;
    for (int64_t e = grid_first(); e < outputs; e += grid_step()) {
        int64_t q = e % g.out_width, p = e / g.out_width % g.out_height, plane = e / (g.out_width * g.out_height);
        const T *image = x + plane * g.height * g.width;
        T largest = -INFINITY;
        for (int r = 0; r < window.size[0]; r++) {
            int64_t h = p * window.stride[0] + r * window.dilation[0] - window.padding_before[0];
            if (h < 0 || h >= g.height) continue;
            for (int s = 0; s < window.size[1]; s++) {
                int64_t w = q * window.stride[1] + s * window.dilation[1] - window.padding_before[1];
                if (w < 0 || w >= g.width) continue;
                T value = image[h * g.width + w];
                if (value > largest || value != value) largest = value;
            }
        }
        y[e] = largest;
    }
}

/* The share of window (p, q)'s gradient that input (h, w), which attains its maximum, gets. */
template <typename T>
static __device__ T share_of(const T *image, T largest, const pooling &g, int64_t p, int64_t q, int64_t h, int64_t w)
{
    const sdlf_window2d &window = g.window;
    int ties = 0;
    for (int r = 0; r < window.size[0]; r++) {
        int64_t row = p * window.stride[0] + r * window.dilation[0] - window.padding_before[0];
        if (row < 0 || row >= g.height) continue;
        for (int s = 0; s < window.size[1]; s++) {
            int64_t column = q * window.stride[1] + s * window.dilation[1] - window.padding_before[1];
            if (column < 0 || column >= g.width || !same(image[row * g.width + column], largest)) continue;
            if (g.first) return row == h && column == w ? T(1) : T(0);
            ties++;
        }
    }
    return T(1) / static_cast<T>(ties);
}

template <typename T> static __global__ void max_pool_backward(const T *x, const T *y, const T *dy, T *dx, pooling g)
{
    int64_t inputs = g.planes * g.height * g.width;
    const sdlf_window2d &window = g.window;
    for (int64_t e = grid_first(); e < inputs; e += grid_step()) {
        int64_t w = e % g.width, h = e / g.width % g.height, plane = e / (g.width * g.height);
        const T *image = x + plane * g.height * g.width;
        T value = x[e], sum = 0;
        for (int r = 0; r < window.size[0]; r++) {
            int64_t down = h + window.padding_before[0] - r * window.dilation[0];
            if (down < 0 || down % window.stride[0] != 0 || down / window.stride[0] >= g.out_height) continue;
            for (int s = 0; s < window.size[1]; s++) {
                int64_t right = w + window.padding_before[1] - s * window.dilation[1];
                if (right < 0 || right % window.stride[1] != 0 || right / window.stride[1] >= g.out_width) continue;
                int64_t p = down / window.stride[0], q = right / window.stride[1];
                int64_t at = (plane * g.out_height + p) * g.out_width + q;
                if (same(value, y[at])) sum += dy[at] * share_of(image, y[at], g, p, q, h, w);
            }
        }
        dx[e] = sum;
    }
}

extern "C" sdlf_status max_pool2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        max_pool_forward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(x), data_of<T>(y), pooling_of(op, x, y));
    });
    return cuda_check_launch("max_pool2d_forward");
}

extern "C" sdlf_status max_pool2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->in[1];
    int64_t count = sdlf_tensor_count(&x);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        max_pool_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(x), data_of<T>(y), data_of<T>(op->in[2]), data_of<T>(op->out[0]), pooling_of(op, x, y));
    });
    return cuda_check_launch("max_pool2d_backward");
}
