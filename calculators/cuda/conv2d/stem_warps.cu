/* SPDX-License-Identifier: MIT */
/* Stem convolutions on tensor cores, row-major: 3x3 windows with strides 1 and 2 over up to 3 channels, as stem_nhwc.cu, but with row-major
 * images and results.
 *
 * The 27 elements of a window, padded to 32, are K. A warp computes 8 quads of neighbouring pixels by 32 filters with mma (mma.cuh; lane =
 * 4 g + t): the lanes with the same g share a quad, whose four pixels are column g of four mma, and each of them loads elements t, t + 4, ... of
 * the four windows straight from the image, zeros outside. All 32 loads of a lane are in flight at once; what windows share comes from the
 * first-level cache. Of a filter, lanes get the results of columns 2 t and 2 t + 1, which are assigned to quads t and t + 4, so that stores are
 * 16 bytes wide and contiguous across lanes. Weights are in shared memory in the order in which lanes read them; a block puts them there once,
 * and its warps go from tile to tile.
 *
 * Loads x once for every 32 filters, stores y once. Operands are tf32. From compute capability 8.0 on. */
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/conv2d/stem.cuh"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum {
    STEM_WARPS_SIDE = 3,
    STEM_WARPS_STEPS = 4, /* k-steps, 8 elements each */
    STEM_WARPS_ROWS = 2,  /* tiles of 16 filters, of a warp */
    STEM_WARPS = 4,       /* warps of a block */
    STEM_WARPS_BLOCKS = 4 /* resident blocks of a multiprocessor */
};

struct stem_warps_problem {
    stem_problem<float> p;
    divider<int32_t> image, row; /* divisors: quads of an image, and of a row of it */
    int quads, tiles;            /* of all images; tiles of 8 quads */
    float low, high;
};

/* A lane's quad: the corner of its first window in the image, and its offset in y for filter 0; -1: it does not exist. */
struct stem_warps_place {
    const float *from;
    int top, left, to;
};

template <int STRIDE>
static __device__ __forceinline__ stem_warps_place stem_warps_place_of(const stem_warps_problem &g, int quad)
{
    const stem_problem<float> &p = g.p;
    int rest, column, image = divide<int32_t>(quad < g.quads ? quad : 0, g.image, rest);
    const int row = divide<int32_t>(rest, g.row, column);
    const int top = row * STRIDE - p.padding[0], left = column * 4 * STRIDE - p.padding[1];
    const int to = (image * p.filters * p.out_height + row) * p.out_width + column * 4;
    return {p.x + static_cast<int64_t>(image) * p.channels * p.height * p.width + top * p.width + left, top, left,
            quad < g.quads ? to : -1};
}

template <int STRIDE> struct stem_warps_tile {
    static constexpr int FILTERS = 16 * STEM_WARPS_ROWS, TAPS = 2 * STEM_WARPS_STEPS;
    int offset[TAPS], tap[TAPS]; /* for each tap of the lane: offset from a window's corner; row + 4 column, or -1 */

    __device__ __forceinline__ explicit stem_warps_tile(const stem_problem<float> &p)
    {
#pragma unroll
        for (int i = 0; i < TAPS; i++) {
            constexpr int AREA = STEM_WARPS_SIDE * STEM_WARPS_SIDE;
            const int number = 4 * i + static_cast<int>(threadIdx.x) % 4, at = number % AREA;
            const int row = at / STEM_WARPS_SIDE, column = at % STEM_WARPS_SIDE;
            tap[i] = number < p.channels * AREA ? row + 4 * column : -1;
            offset[i] = (number / AREA * p.height + row) * p.width + column;
        }
    }

    __device__ __forceinline__ void read(float (&b)[TAPS][4], const stem_problem<float> &p, const stem_warps_place &at)
    {
#pragma unroll
        for (int i = 0; i < TAPS; i++) {
            const int row = at.top + (tap[i] & 3), column = at.left + (tap[i] >> 2);
            const bool inside =
                at.to >= 0 && tap[i] >= 0 && static_cast<unsigned>(row) < static_cast<unsigned>(p.height);
            const float *from = at.from + offset[i];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                b[i][j] = 0;
                if (inside && static_cast<unsigned>(column + j * STRIDE) < static_cast<unsigned>(p.width))
                    b[i][j] = __ldg(from + j * STRIDE);
            }
        }
    }

    static __device__ __forceinline__ void multiply(float (&sum)[STEM_WARPS_ROWS][4][4], const float (&b)[TAPS][4],
                                                    const float4 *w)
    {
#pragma unroll
        for (int s = 0; s < STEM_WARPS_STEPS; s++) {
            uint32_t x[4][2];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                x[j][0] = operand_bits<SDLF_MATH_TF32>(b[2 * s][j]);
                x[j][1] = operand_bits<SDLF_MATH_TF32>(b[2 * s + 1][j]);
            }
#pragma unroll
            for (int m = 0; m < STEM_WARPS_ROWS; m++) {
                const float4 four = w[(m * STEM_WARPS_STEPS + s) * 32];
                const uint32_t a[4] = {__float_as_uint(four.x), __float_as_uint(four.y), __float_as_uint(four.z),
                                       __float_as_uint(four.w)};
#pragma unroll
                for (int j = 0; j < 4; j++) mma_tf32(sum[m][j], a, x[j]);
            }
        }
    }
};

static __device__ __forceinline__ void stem_warps_keep(const stem_warps_problem &g, int to, float shift, float4 four)
{
    float4 more = {};
    if (g.p.residual != nullptr) more = *reinterpret_cast<const float4 *>(g.p.residual + to);
    *reinterpret_cast<float4 *>(g.p.y + to) =
        make_float4(clamp(four.x + shift + more.x, g.low, g.high), clamp(four.y + shift + more.y, g.low, g.high),
                    clamp(four.z + shift + more.z, g.low, g.high), clamp(four.w + shift + more.w, g.low, g.high));
}

template <int STRIDE>
static __global__ void __launch_bounds__(32 * STEM_WARPS, STEM_WARPS_BLOCKS)
    stem_warps(const __grid_constant__ stem_warps_problem g)
{
    using tile_of = stem_warps_tile<STRIDE>;
    __shared__ float4 w[STEM_WARPS_ROWS * STEM_WARPS_STEPS * 32];
    __shared__ float shifts[tile_of::FILTERS];
    const stem_problem<float> &p = g.p;
    const int first_filter = static_cast<int>(blockIdx.y) * tile_of::FILTERS, area = p.out_height * p.out_width;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int tile = static_cast<int>(blockIdx.x) * STEM_WARPS + static_cast<int>(threadIdx.x) / 32;
    const int own_quad = lane / 4 % 2 * 4 + lane / 8; /* of column lane / 4 */
    tile_of own(p);
    float b[tile_of::TAPS][4];
    wait_and_launch_dependent_grids();
    stem_warps_place at = stem_warps_place_of<STRIDE>(g, tile * 8 + own_quad);
    own.read(b, p, at);
    for (int e = threadIdx.x; e < STEM_WARPS_ROWS * STEM_WARPS_STEPS * 32; e += blockDim.x) {
        const int step = e / 32 % STEM_WARPS_STEPS,
                  filter = first_filter + e / (32 * STEM_WARPS_STEPS) * 16 + e % 32 / 4;
        const int depth = p.channels * STEM_WARPS_SIDE * STEM_WARPS_SIDE, number = step * 8 + e % 4;
        float four[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = filter + i % 2 * 8, n = number + i / 2 * 4;
            const float weight = k < p.filters && n < depth ? __ldg(p.w + k * depth + n) : 0;
            four[i] = __uint_as_float(operand_bits<SDLF_MATH_TF32>(weight));
        }
        w[e] = make_float4(four[0], four[1], four[2], four[3]);
    }
    for (int e = threadIdx.x; e < tile_of::FILTERS; e += blockDim.x)
        shifts[e] = p.bias != nullptr && first_filter + e < p.filters ? __ldg(p.bias + first_filter + e) : 0;
    __syncthreads();
    for (; tile < g.tiles; tile += static_cast<int>(gridDim.x) * STEM_WARPS) {
        float sum[STEM_WARPS_ROWS][4][4] = {};
        tile_of::multiply(sum, b, w + lane);
        const int to[2] = {__shfl_sync(0xffffffffu, at.to, lane % 4 * 8),
                           __shfl_sync(0xffffffffu, at.to, lane % 4 * 8 + 4)};
        at = stem_warps_place_of<STRIDE>(g, (tile + static_cast<int>(gridDim.x) * STEM_WARPS) * 8 + own_quad);
        own.read(b, p, at);
#pragma unroll
        for (int m = 0; m < STEM_WARPS_ROWS; m++) {
#pragma unroll
            for (int i = 0; i < 4; i++) { /* accumulator i */
                const int filter = m * 16 + lane / 4 + i / 2 * 8;
                if (to[i % 2] < 0 || first_filter + filter >= p.filters) continue;
                stem_warps_keep(g, to[i % 2] + (first_filter + filter) * area, shifts[filter],
                                make_float4(sum[m][0][i], sum[m][1][i], sum[m][2][i], sum[m][3][i]));
            }
        }
    }
}

/* True if this kernel supports the convolution, addresses aside. */
static inline bool stem_warps_takes(const cuda_calculator *calculator, const cuda_conv2d &g,
                                    const sdlf_activation &activation)
{
    float low, high;
    for (int i = 0; i < 2; i++) {
        if (g.window.size[i] != STEM_WARPS_SIDE || g.window.dilation[i] != 1 ||
            g.window.stride[i] != g.window.stride[0])
            return false;
    }
    const int64_t quads = g.batch * g.out_height * g.out_width / 4;
    return calculator->math != SDLF_MATH_FP32 && cuda_has_tensor_cores(calculator) && g.window.stride[0] <= 2 &&
           g.groups == 1 && g.channels <= 3 && g.filters >= 16 && g.out_width % 4 == 0 &&
           g.batch * g.channels * g.height * g.width <= INT32_MAX / 2 &&
           quads * 4 * (g.filters + 64) <= INT32_MAX / 2 && activation_range(&activation, &low, &high);
}

template <int STRIDE>
static void stem_warps_launch(const cuda_calculator *calculator, const stem_problem<float> &p, int64_t images)
{
    stem_warps_problem g = {};
    g.p = p;
    activation_range(&p.activation, &g.low, &g.high);
    g.image = divider<int32_t>(static_cast<int64_t>(p.out_height) * (p.out_width / 4));
    g.row = divider<int32_t>(p.out_width / 4);
    g.quads = static_cast<int>(images) * p.out_height * (p.out_width / 4);
    g.tiles = (g.quads + 7) / 8;
    const int needed = (g.tiles + STEM_WARPS - 1) / STEM_WARPS;
    const int groups = (p.filters + 16 * STEM_WARPS_ROWS - 1) / (16 * STEM_WARPS_ROWS);
    const int most = (calculator->multiprocessors * STEM_WARPS_BLOCKS + groups - 1) / groups;
    launch_overlapped(calculator, stem_warps<STRIDE>,
                      dim3(static_cast<unsigned>(needed < most ? needed : most), static_cast<unsigned>(groups)),
                      dim3(32 * STEM_WARPS), 0, g);
}

/* True in modes with tensor cores, where results can be stored 16 bytes at a time. */
extern "C" bool cuda_stem_warps_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = reinterpret_cast<const cuda_calculator *>(base);
    if (op->kind != SDLF_CONV2D_FORWARD || op->out[0].dtype != SDLF_FLOAT32) return false;
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(op->out[0].data) | reinterpret_cast<uintptr_t>(optional<float>(op->in[3]));
    return places % 16 == 0 && stem_warps_takes(calculator, cuda_conv2d_geometry(op), op->conv2d.activation);
}

extern "C" sdlf_status conv2d_stem_warps_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const cuda_conv2d g = cuda_conv2d_geometry(op);
    const stem_problem<float> p = stem_problem_of<float>(op, g);
    if (g.window.stride[0] == 1)
        stem_warps_launch<1>(calculator, p, g.batch);
    else
        stem_warps_launch<2>(calculator, p, g.batch);
    return cuda_check_launch("conv2d, few channels, by warps");
}
