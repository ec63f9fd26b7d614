/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_forward: the convolution's own output, four times the size of y, is never stored.
 *
 * A thread computes one window of FILTERS filters: four accumulators a filter in registers, and of each channel the (R+1) x (R+1) patch
 * of x that its four convolutions share. The block's weights are in shared memory, filters innermost, where all lanes read the same
 * vector at a time: FILTERS / 4 vectors for 4 FILTERS multiply-adds. 8 N K P Q C R R FLOPs, 1.3 GFLOP for simple_cnn's layer at batch
 * 1,024: 26 us at 50 TFLOP/s, and 9 us for its 35 MB. */
#include "calculators/cuda/conv2d_pool/forward.cuh"

enum { THREADS = 128, CHANNELS = 16 /* of weights in shared memory at once */ };

/* Load the weights of filters k0 ... and channels c0 ... to shared memory, 0 past the last filter. */
template <typename T, int R, int FILTERS>
static __device__ void load_weights(T (*to)[R * R][FILTERS], const pool_forward<T> &p, int k0, int c0, int channels)
{
    for (int e = threadIdx.x; e < FILTERS * channels * R * R; e += THREADS) {
        int tap = e % (R * R), c = e / (R * R) % channels, f = e / (R * R) / channels;
        bool valid = k0 + f < p.g.filters;
        to[c][tap][f] = valid ? p.w[((k0 + f) * p.g.channels + c0 + c) * (R * R) + tap] : T(0);
    }
}

/* Grid: x over windows, y over groups of filters. */
template <typename T, int R, int FILTERS>
static __global__ void __launch_bounds__(THREADS) conv2d_pool_forward(pool_forward<T> p)
{
    __shared__ __align__(16) T weights[CHANNELS][R * R][FILTERS];
    const pool_geometry &g = p.g;
    int area = g.out_height * g.out_width, window = blockIdx.x * THREADS + threadIdx.x, k0 = blockIdx.y * FILTERS;
    bool valid = window < g.batch * area;
    int n = valid ? window / area : 0, at = valid ? window % area : 0;
    int row = 2 * (at / g.out_width) - g.top, column = 2 * (at % g.out_width) - g.left;
    T sums[FILTERS][4];
    wait_and_launch_dependent_grids();
#pragma unroll
    for (int f = 0; f < FILTERS; f++) {
        T offset = p.bias != nullptr && k0 + f < g.filters ? p.bias[k0 + f] : T(0);
        for (int i = 0; i < 4; i++) sums[f][i] = offset;
    }
    for (int c = 0; c < g.channels; c++) {
        if (c % CHANNELS == 0) {
            __syncthreads();
            load_weights<T, R, FILTERS>(weights, p, k0, c, min(CHANNELS, g.channels - c));
            __syncthreads();
        }
        const T *corner =
            p.x + ((n * g.channels + c) * g.height + row) * g.width + column; /* may be outside the image */
        T patch[R + 1][R + 1];
#pragma unroll
        for (int r = 0; r <= R; r++) {
            bool inside = row + r >= 0 && row + r < g.height;
#pragma unroll
            for (int s = 0; s <= R; s++)
                patch[r][s] = inside && column + s >= 0 && column + s < g.width ? corner[r * g.width + s] : T(0);
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int s = 0; s < R; s++) {
#pragma unroll
                for (int f = 0; f < FILTERS; f++) {
                    T weight = weights[c % CHANNELS][r * R + s][f];
                    sums[f][0] += patch[r][s] * weight;
                    sums[f][1] += patch[r][s + 1] * weight;
                    sums[f][2] += patch[r + 1][s] * weight;
                    sums[f][3] += patch[r + 1][s + 1] * weight;
                }
            }
        }
    }
#pragma unroll
    for (int f = 0; f < FILTERS; f++) {
        int k = k0 + f;
        if (!valid || k >= g.filters) break;
        unsigned marks;
        int64_t e = (static_cast<int64_t>(n) * g.filters + k) * area + at;
        p.y[e] = pool_four(sums[f], g.first, marks);
        if (p.mask != nullptr) p.mask[e] = static_cast<uint8_t>(marks);
    }
}

template <typename T, int R, int FILTERS>
static void launch(const cuda_calculator *calculator, const pool_forward<T> &p)
{
    int windows = p.g.batch * p.g.out_height * p.g.out_width;
    dim3 grid((unsigned)((windows + THREADS - 1) / THREADS), (unsigned)((p.g.filters + FILTERS - 1) / FILTERS));
    launch_overlapped(calculator, conv2d_pool_forward<T, R, FILTERS>, grid, THREADS, 0, p);
}

/* Eight filters a thread, or fewer where that would leave multiprocessors without work. */
extern "C" sdlf_status conv2d_relu_max_pool_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_count(&y) == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const pool_forward<T> p = {data_of<T>(x), data_of<T>(op->in[1]),         optional<T>(op->in[2]),
                                   data_of<T>(y), optional<uint8_t>(op->out[1]), pool_geometry_of(op, x, y)};
        int side_size = conv2d_pool_options_of(op)->window.size[0];
        if constexpr (sizeof(T) == sizeof(float)) {
            if (cuda_conv2d_pool_forward_first_suits(calculator, p.g, side_size)) {
                status = cuda_conv2d_pool_forward_first(calculator, p, side_size);
                return;
            }
            if (cuda_conv2d_pool_forward_sliced_suits(calculator, p.g, side_size)) {
                status = cuda_conv2d_pool_forward_sliced(calculator, p, side_size);
                return;
            }
        }
        int64_t threads = static_cast<int64_t>(THREADS) * calculator->multiprocessors; /* one block each */
        with_side(side_size, [&](auto side) {
            if (sdlf_tensor_count(&y) < 4 * threads)
                launch<T, side.value, 2>(calculator, p);
            else if (sdlf_tensor_count(&y) < 32 * threads)
                launch<T, side.value, 4>(calculator, p);
            else
                launch<T, side.value, 8>(calculator, p);
        });
    });
    return status == SDLF_OK ? cuda_check_launch("conv2d_relu_max_pool_forward") : status;
}

static bool is_forward(const sdlf_operation *op)
{
    return op->fused.fusion == &sdlf_conv2d_pool_forward_fusion;
}

/* The operands of forward and backward; forward has y in the place of dy. */
static conv2d_pool_operands operands_of(const sdlf_operation *op)
{
    if (!is_forward(op)) return conv2d_pool_operands_of(op);
    return {&op->in[0], &op->in[1], &op->out[0], &op->out[1], nullptr};
}

/* Without a mask this is inference. With a long K, a convolution followed by a separate pooling, which reads y from the
 * L2 cache, is then faster: implicit GEMM can split K and use tensor cores. */
enum { LONGEST_UNMASKED = 256 };

/* Tensor-core kernels exist for few taps and for small images; larger layers are faster as a convolution and a separate pooling. */
static bool suits_math(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const int side = conv2d_pool_options_of(op)->window.size[0];
    const conv2d_pool_operands operands = operands_of(op);
    if (operands.dy->dtype != SDLF_FLOAT32 || calculator->math == SDLF_MATH_FP32) return true;
    const pool_geometry g = pool_geometry_of(op, *operands.x, *operands.dy);
    return cuda_conv2d_pool_forward_first_suits(calculator, g, side) ||
           cuda_conv2d_pool_forward_sliced_suits(calculator, g, side);
}

extern "C" bool conv2d_pool_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_window2d &window = conv2d_pool_options_of(op)->window, &pool = conv2d_pool_options_of(op)->pool;
    const conv2d_pool_operands operands = operands_of(op);
    int side = window.size[0];
    bool fits = (side == 3 || side == 5) && window.size[1] == side && conv2d_pool_options_of(op)->groups == 1;
    if (is_forward(op) && !sdlf_tensor_present(&op->out[1]))
        fits = fits && op->in[0].shape.dim[1] * side * side <= LONGEST_UNMASKED;
    for (int i = 0; i < 2; i++)
        fits = fits && window.stride[i] == 1 && window.dilation[i] == 1 && pool.size[i] == 2 && pool.stride[i] == 2;
    return fits && pool_counts_fit(*operands.x, *operands.w, *operands.dy) &&
           suits_math(reinterpret_cast<const cuda_calculator *>(base), op);
}
