/* conv2d, ReLU and 2x2 max-pool as one operation, for 3x3 and 5x5 kernels with stride 1: the networks of MNIST.
 *
 * Forward: a thread a pooled position (p, q) of one image, for FILTERS filters: it keeps the (R+1)x(S+1) patch of x that its
 * four convolutions share in registers, and 4 sums a filter; the block's weights of one channel lie in shared memory, where
 * all lanes read one word at a time. 8 N K P Q C R S FLOPs; the convolution's own output, four times y, is never stored.
 *
 * Backward by the weights: a block a (k, c, chunk of images) adds, for every marked position, dy times its patch of x to R S
 * sums in registers, and leaves the block's sums in the workspace; a second kernel adds the chunks in order. Only marked
 * positions cost anything: a quarter of the dense work. Backward by the input: a thread an element of dx gathers. No atomics:
 * the bits depend on the shapes alone. */
#include <type_traits>

#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, FILTERS = 8, CHUNK = 8, WARP = 32 };

struct geometry {
    int64_t batch, channels, height, width, filters, out_height, out_width; /* out: pooled */
    int top, left;
    bool first; /* of tied maxima, the first alone */
};

static geometry geometry_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    geometry g;
    g.batch = x.shape.dim[0];
    g.channels = x.shape.dim[1];
    g.height = x.shape.dim[2];
    g.width = x.shape.dim[3];
    g.filters = y.shape.dim[1];
    g.out_height = y.shape.dim[2];
    g.out_width = y.shape.dim[3];
    g.top = op->conv2d_pool.window.padding_before[0];
    g.left = op->conv2d_pool.window.padding_before[1];
    g.first = op->conv2d_pool.ties == SDLF_TIES_FIRST;
    return g;
}

template <typename T> static __device__ T pixel(const T *image, const geometry &g, int64_t row, int64_t column)
{
    return row >= 0 && row < g.height && column >= 0 && column < g.width ? image[row * g.width + column] : T(0);
}

/* The largest of four convolutions and 0, and which attain it. */
template <typename T> static __device__ T pool_four(const T *four, bool first_alone, unsigned &marks)
{
    T largest = 0;
    marks = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (four[i] > largest || four[i] != four[i]) {
            largest = four[i];
            marks = 1u << i;
        } else if (four[i] == largest && four[i] > T(0) && !first_alone) {
            marks |= 1u << i;
        }
    }
    if (largest != largest) marks = 0;
    return largest;
}

/* Grid: x over positions, y over groups of FILTERS filters, z over images. */
template <typename T, int R, int S>
static __global__ void conv2d_pool_forward(const T *x, const T *w, const T *bias, T *y, uint8_t *mask, geometry g)
{
    __shared__ T weights[FILTERS][R * S];
    int64_t area = g.out_height * g.out_width, position = grid_first(), k0 = static_cast<int64_t>(blockIdx.y) * FILTERS;
    int64_t p = position / g.out_width, q = position % g.out_width;
    for (int64_t n = blockIdx.z; n < g.batch; n += gridDim.z) {
        T sums[FILTERS][4] = {};
        for (int64_t c = 0; c < g.channels; c++) {
            __syncthreads();
            for (int i = threadIdx.x; i < FILTERS * R * S; i += THREADS) {
                int64_t k = k0 + i / (R * S);
                weights[i / (R * S)][i % (R * S)] =
                    k < g.filters ? w[(k * g.channels + c) * (R * S) + i % (R * S)] : T(0);
            }
            __syncthreads();
            T patch[R + 1][S + 1];
            const T *image = x + (n * g.channels + c) * g.height * g.width;
#pragma unroll
            for (int r = 0; r <= R; r++) {
#pragma unroll
                for (int s = 0; s <= S; s++)
                    patch[r][s] = position < area ? pixel(image, g, 2 * p + r - g.top, 2 * q + s - g.left) : T(0);
            }
#pragma unroll
            for (int f = 0; f < FILTERS; f++) {
#pragma unroll
                for (int r = 0; r < R; r++) {
#pragma unroll
                    for (int s = 0; s < S; s++) {
                        T weight = weights[f][r * S + s];
                        sums[f][0] += patch[r][s] * weight;
                        sums[f][1] += patch[r][s + 1] * weight;
                        sums[f][2] += patch[r + 1][s] * weight;
                        sums[f][3] += patch[r + 1][s + 1] * weight;
                    }
                }
            }
        }
        if (position >= area) continue;
#pragma unroll
        for (int f = 0; f < FILTERS; f++) {
            int64_t k = k0 + f;
            if (k >= g.filters) break;
            T offset = bias != nullptr ? bias[k] : T(0);
            for (int i = 0; i < 4; i++) sums[f][i] += offset;
            unsigned marks;
            int64_t e = (n * g.filters + k) * area + position;
            y[e] = pool_four(sums[f], g.first, marks);
            if (mask != nullptr) mask[e] = static_cast<uint8_t>(marks);
        }
    }
}

/* Grid: x over chunks of images, y over k, z over c. parts[chunk][k][c][R S] and, from c = 0, bias_parts[chunk][k]. */
template <typename T, int R, int S>
static __global__ void conv2d_pool_weights(const T *x, const T *dy, const uint8_t *mask, T *parts, T *bias_parts,
                                           geometry g)
{
    __shared__ T shared[THREADS / WARP][R * S + 1];
    int64_t area = g.out_height * g.out_width, k = blockIdx.y, c = blockIdx.z;
    int64_t first = static_cast<int64_t>(blockIdx.x) * CHUNK,
            images = g.batch - first < CHUNK ? g.batch - first : CHUNK;
    T sums[R * S + 1] = {};
    for (int64_t i = threadIdx.x; i < images * area; i += THREADS) {
        int64_t n = first + i / area, p = i % area / g.out_width, q = i % g.out_width;
        int64_t e = (n * g.filters + k) * area + i % area;
        unsigned marks = mask[e];
        if (marks == 0) continue;
        T gradient = dy[e] / static_cast<T>(__popc(marks));
        const T *image = x + (n * g.channels + c) * g.height * g.width;
        for (; marks != 0; marks &= marks - 1) {
            int at = __ffs(static_cast<int>(marks)) - 1;
            int64_t row = 2 * p + at / 2 - g.top, column = 2 * q + at % 2 - g.left;
#pragma unroll
            for (int r = 0; r < R; r++) {
#pragma unroll
                for (int s = 0; s < S; s++) sums[r * S + s] += gradient * pixel(image, g, row + r, column + s);
            }
            sums[R * S] += gradient;
        }
    }
#pragma unroll
    for (int i = 0; i <= R * S; i++) {
        T sum = sums[i];
        for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP][i] = sum;
    }
    __syncthreads();
    int i = threadIdx.x;
    if (i > R * S) return;
    T sum = 0;
    for (int warp = 0; warp < THREADS / WARP; warp++) sum += shared[warp][i];
    int64_t block = static_cast<int64_t>(blockIdx.x) * g.filters + k;
    if (i < R * S)
        parts[(block * g.channels + c) * (R * S) + i] = sum;
    else if (c == 0)
        bias_parts[block] = sum;
}

template <typename T> static __global__ void sum_chunks(const T *parts, T *to, int64_t count, int64_t chunks)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        T sum = 0;
        for (int64_t i = 0; i < chunks; i++) sum += parts[i * count + e];
        to[e] = sum;
    }
}

template <typename T, int R, int S>
static __global__ void conv2d_pool_input(const T *w, const T *dy, const uint8_t *mask, T *dx, geometry g)
{
    int64_t count = g.batch * g.channels * g.height * g.width, area = g.out_height * g.out_width;
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t column = e % g.width, row = e / g.width % g.height;
        int64_t c = e / (g.width * g.height) % g.channels, n = e / (g.width * g.height * g.channels);
        T sum = 0;
        for (int64_t k = 0; k < g.filters; k++) {
            const T *weight = w + (k * g.channels + c) * (R * S);
            int64_t plane = (n * g.filters + k) * area;
            for (int r = 0; r < R; r++) {
                int64_t p = row + g.top - r;
                if (p < 0 || p / 2 >= g.out_height) continue;
                for (int s = 0; s < S; s++) {
                    int64_t q = column + g.left - s;
                    if (q < 0 || q / 2 >= g.out_width) continue;
                    int64_t at = plane + p / 2 * g.out_width + q / 2;
                    unsigned marks = mask[at];
                    if (marks >> (p % 2 * 2 + q % 2) & 1)
                        sum += dy[at] / static_cast<T>(__popc(marks)) * weight[r * S + s];
                }
            }
        }
        dx[e] = sum;
    }
}

/* ---- launching ---- */

/* Call with the kernel's size as constants: 3x3 or 5x5. */
template <typename Function> static void with_size(int size, Function function)
{
    if (size == 3)
        function(std::integral_constant<int, 3>());
    else
        function(std::integral_constant<int, 5>());
}

extern "C" bool conv2d_pool_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    const sdlf_window2d &window = op->conv2d_pool.window, &pool = op->conv2d_pool.pool;
    int size = window.size[0];
    bool fits = (size == 3 || size == 5) && window.size[1] == size && op->conv2d_pool.groups == 1;
    for (int i = 0; i < 2; i++)
        fits = fits && window.stride[i] == 1 && window.dilation[i] == 1 && pool.size[i] == 2 && pool.stride[i] == 2;
    return fits && op->in[0].shape.dim[1] <= 65535 && op->in[1].shape.dim[0] <= 65535;
}

extern "C" sdlf_status conv2d_relu_max_pool_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    if (sdlf_tensor_count(&y) == 0) return SDLF_OK;
    geometry g = geometry_of(op, x, y);
    dim3 grid((unsigned)((g.out_height * g.out_width + THREADS - 1) / THREADS),
              (unsigned)((g.filters + FILTERS - 1) / FILTERS), (unsigned)(g.batch < 65535 ? g.batch : 65535));
    uint8_t *mask = sdlf_tensor_present(&op->out[1]) ? data_of<uint8_t>(op->out[1]) : nullptr;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *bias = sdlf_tensor_present(&op->in[2]) ? data_of<T>(op->in[2]) : nullptr;
        with_size(op->conv2d_pool.window.size[0], [&](auto size) {
            conv2d_pool_forward<T, size.value, size.value><<<grid, THREADS, 0, cuda_stream(base)>>>(
                data_of<T>(x), data_of<T>(op->in[1]), bias, data_of<T>(y), mask, g);
        });
    });
    return cuda_check_launch("conv2d_relu_max_pool_forward");
}

static int64_t chunks_of(const sdlf_operation *op)
{
    return (op->in[0].shape.dim[0] + CHUNK - 1) / CHUNK;
}

extern "C" int64_t conv2d_pool_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    if (!sdlf_tensor_present(&op->out[0]) && !sdlf_tensor_present(&op->out[1])) return 0;
    int64_t filters = op->in[1].shape.dim[0];
    return chunks_of(op) * (sdlf_tensor_count(&op->in[1]) + filters) *
           static_cast<int64_t>(sdlf_dtype_size(op->in[1].dtype));
}

template <typename T> static void backward_weights(sdlf_calculator *base, const sdlf_operation *op, const geometry &g)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t chunks = chunks_of(op), count = sdlf_tensor_count(&op->in[1]);
    T *parts = static_cast<T *>(op->workspace.data), *bias_parts = parts + chunks * count;
    dim3 grid((unsigned)chunks, (unsigned)g.filters, (unsigned)g.channels);
    with_size(op->conv2d_pool.window.size[0], [&](auto size) {
        conv2d_pool_weights<T, size.value, size.value><<<grid, THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[2]), data_of<uint8_t>(op->in[3]), parts, bias_parts, g);
    });
    if (sdlf_tensor_present(&op->out[0]))
        sum_chunks<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            parts, data_of<T>(op->out[0]), count, chunks);
    if (sdlf_tensor_present(&op->out[1]))
        sum_chunks<T><<<cuda_blocks(calculator, g.filters, THREADS), THREADS, 0, calculator->stream>>>(
            bias_parts, data_of<T>(op->out[1]), g.filters, chunks);
}

extern "C" sdlf_status conv2d_relu_max_pool_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    geometry g = geometry_of(op, op->in[0], op->in[2]);
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        if (sdlf_tensor_present(&op->out[0]) || sdlf_tensor_present(&op->out[1])) backward_weights<T>(base, op, g);
        if (!sdlf_tensor_present(&op->out[2])) return;
        int64_t count = sdlf_tensor_count(&op->out[2]);
        with_size(op->conv2d_pool.window.size[0], [&](auto size) {
            conv2d_pool_input<T, size.value, size.value>
                <<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                    data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<uint8_t>(op->in[3]), data_of<T>(op->out[2]),
                    g);
        });
    });
    return cuda_check_launch("conv2d_relu_max_pool_backward");
}
