/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool's gradient by the input on tensor cores: factors rounded to tf32, float16 or bfloat16 (see
 * conv2d_pool/input.cu for the formula).
 *
 * A product: da (positions of dx, filters and taps) x weights (filters and taps, 16 channels). A block makes one image's dx of
 * 16 channels: it unpools da of all filters, with zeros around them, and brings the channels' weights to shared memory; a warp
 * makes 16 positions at a time, tap by tap, eight filters a step. Planes of da are longer than they need be, so that the lanes
 * of a step meet no bank twice. 2 N C H W K R R FLOPs. */
#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"
#include "calculators/cuda/mma.cuh"

enum { WARP = 32, MOST_WARPS = 16, CHANNELS = 16, WEIGHT_LINE = CHANNELS + 8 };

struct input_product {
    const float *w, *dy;
    const uint8_t *mask;
    float *dx;
    pool_geometry g;
    int filters;            /* K, up to a multiple of 8 */
    int line, lines, plane; /* of a filter's da in shared memory */
};

/* All of da: line i is row top - (R - 1) + i, column j is left - (R - 1) + j. */
template <sdlf_math MATH, int R> static __device__ void unpool(const input_product &p, uint32_t *da, int n)
{
    const pool_geometry &g = p.g;
    int area = g.out_height * g.out_width;
    for (int e = threadIdx.x; e < p.filters * p.plane; e += blockDim.x) da[e] = 0;
    __syncthreads();
    for (int window = threadIdx.x % WARP; window < area; window += WARP) {
        int line = 2 * (window / g.out_width) + R - 1 - g.top, column = 2 * (window % g.out_width) + R - 1 - g.left;
        for (int k = threadIdx.x / WARP; k < g.filters; k += blockDim.x / WARP) {
            int64_t at = (static_cast<int64_t>(n) * g.filters + k) * area + window;
            unsigned marks = p.mask[at];
            uint32_t value = marks != 0 ? factor_bits<MATH>(p.dy[at] / static_cast<float>(__popc(marks))) : 0u;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = line + i / 2, j = column + i % 2;
                if ((marks >> i & 1) != 0 && row >= 0 && row < p.lines && j >= 0 && j < p.line)
                    da[k * p.plane + row * p.line + j] = value;
            }
        }
    }
}

template <sdlf_math MATH, int R> static __device__ void load_weights(const input_product &p, uint32_t *weights, int c0)
{
    const pool_geometry &g = p.g;
    for (int e = threadIdx.x; e < p.filters * CHANNELS * R * R; e += blockDim.x) {
        int tap = e % (R * R), c = e / (R * R) % CHANNELS, k = e / (R * R) / CHANNELS;
        bool valid = k < g.filters && c0 + c < g.channels;
        float w = valid ? p.w[(k * g.channels + c0 + c) * (R * R) + tap] : 0.0f;
        weights[(tap * p.filters + k) * WEIGHT_LINE + c] = factor_bits<MATH>(w);
    }
}

/* Grid: x over images, y over groups of channels. */
template <sdlf_math MATH, int R>
static __global__ void __launch_bounds__(WARP *MOST_WARPS) conv2d_pool_input_tensor(input_product p)
{
    extern __shared__ __align__(16) uint32_t shared[];
    const pool_geometry &g = p.g;
    uint32_t *weights = shared, *da = shared + R * R * p.filters * WEIGHT_LINE;
    int lane = threadIdx.x % WARP, group = lane / 4, t = lane % 4, n = blockIdx.x, c0 = blockIdx.y * CHANNELS;
    int area = g.height * g.width;
    load_weights<MATH, R>(p, weights, c0);
    unpool<MATH, R>(p, da, n);
    __syncthreads();
    for (int m = threadIdx.x / WARP * 16; m < area; m += blockDim.x / WARP * 16) {
        int low = min(m + group, area - 1), high = min(m + group + 8, area - 1);
        const uint32_t *from[2] = {da + low / g.width * p.line + low % g.width,
                                   da + high / g.width * p.line + high % g.width};
        float sums[2][4] = {};
        for (int tap = 0; tap < R * R; tap++) {
            int shift = (R - 1 - tap / R) * p.line + R - 1 - tap % R;
#pragma unroll 4
            for (int k = 0; k < p.filters; k += 8) {
                int first = (k + t) * p.plane + shift, second = first + 4 * p.plane;
                uint32_t a[4] = {from[0][first], from[1][first], from[0][second], from[1][second]};
                const uint32_t *w = weights + (tap * p.filters + k + t) * WEIGHT_LINE + group;
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    uint32_t b[2] = {w[j * 8], w[j * 8 + 4 * WEIGHT_LINE]};
                    mma_tf32(sums[j], a, b);
                }
            }
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int c = c0 + j * 8 + 2 * t + e % 2, at = m + group + e / 2 * 8;
                if (c < g.channels && at < area)
                    p.dx[static_cast<int64_t>(n * g.channels + c) * area + at] = sums[j][e];
            }
        }
    }
}

static input_product product_of(const sdlf_operation *op, const sdlf_tensor &dy)
{
    input_product p = {};
    int side = op->conv2d_pool.window.size[0];
    p.g = pool_geometry_of(op, op->in[0], dy);
    p.filters = (p.g.filters + 7) / 8 * 8;
    p.line = p.g.width + side - 1;
    p.lines = p.g.height + side - 1;
    p.plane = p.line * p.lines;
    while (p.plane % 32 != 8) p.plane++;
    return p;
}

static int64_t memory_of(const input_product &p, int side)
{
    return (static_cast<int64_t>(side) * side * p.filters * WEIGHT_LINE + static_cast<int64_t>(p.filters) * p.plane) *
           4;
}

extern "C" bool cuda_conv2d_pool_input_suits(const cuda_calculator *calculator, const sdlf_operation *op,
                                             const sdlf_tensor *dy)
{
    return op->in[0].dtype == SDLF_FLOAT32 && calculator->math != SDLF_MATH_FP32 && cuda_has_tensor_cores(calculator) &&
           memory_of(product_of(op, *dy), op->conv2d_pool.window.size[0]) <= calculator->shared_most;
}

template <sdlf_math MATH> static sdlf_status launch(const cuda_calculator *calculator, const input_product &p, int side)
{
    int tiles = (p.g.height * p.g.width + 15) / 16, warps = tiles < MOST_WARPS ? tiles : MOST_WARPS;
    const int bytes = (int)memory_of(p, side);
    dim3 grid((unsigned)p.g.batch, (unsigned)((p.g.channels + CHANNELS - 1) / CHANNELS));
    sdlf_status status = SDLF_OK;
    with_side(side, [&](auto r) {
        status = allow_shared(conv2d_pool_input_tensor<MATH, r.value>, bytes);
        if (status == SDLF_OK)
            conv2d_pool_input_tensor<MATH, r.value><<<grid, warps * WARP, bytes, calculator->stream>>>(p);
    });
    return status == SDLF_OK ? cuda_check_launch("conv2d_relu_max_pool_backward") : status;
}

extern "C" sdlf_status cuda_conv2d_pool_input_tensor(sdlf_calculator *base, const sdlf_operation *op,
                                                     const sdlf_tensor *w, const sdlf_tensor *dy,
                                                     const sdlf_tensor *mask, const sdlf_tensor *dx)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    input_product p = product_of(op, *dy);
    int side = op->conv2d_pool.window.size[0];
    p.w = data_of<float>(*w);
    p.dy = data_of<float>(*dy);
    p.mask = data_of<uint8_t>(*mask);
    p.dx = data_of<float>(*dx);
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch<SDLF_MATH_FP16>(calculator, p, side);
    case SDLF_MATH_BF16: return launch<SDLF_MATH_BF16>(calculator, p, side);
    default: return launch<SDLF_MATH_TF32>(calculator, p, side);
    }
}
