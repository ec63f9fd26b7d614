/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_forward on tensor cores for small images of several channels: a second layer, whose few windows would leave most of
 * the device without work.
 *
 * The convolution is a GEMM: weights (32 filters, taps) x patches (taps, positions), computed sliced-K: a block's warps share the taps. Each
 * warp keeps its slice of the weights in registers, up to 7 k-steps of 8 taps, and multiplies it by the patches of all four positions of 8
 * windows. The slices' sums are added in shared memory, in order, and a thread pools one window of one filter. 8 N K P Q C R R FLOPs. */
#include "calculators/cuda/conv2d_pool/batch_tiles.cuh"
#include "calculators/cuda/conv2d_pool/forward.cuh"

enum { THREADS = 256, WARP = 32, WARPS = 8, FILTERS = 32, UNIT = 8 /* windows */, POSITIONS = 4, MOST_STEPS = 7 };

/* The block's sums: slice, position, filter, window. */
typedef float slice_sums[WARPS][POSITIONS][FILTERS][UNIT];

/* Pool and store. `place`: index in y of the unit's first window, for filter 0; `count`: windows that exist. */
static __device__ __forceinline__ void store_window(const pool_forward<float> &p, const slice_sums &sums, int place,
                                                    int count, int k0)
{
    int k = threadIdx.x / UNIT, window = threadIdx.x % UNIT;
    float four[POSITIONS];
    if (window >= count || k0 + k >= p.g.filters) return;
#pragma unroll
    for (int i = 0; i < POSITIONS; i++) {
        four[i] = p.bias != nullptr ? p.bias[k0 + k] : 0.0f;
#pragma unroll
        for (int slice = 0; slice < WARPS; slice++) four[i] += sums[slice][i][k][window];
    }
    unsigned marks;
    int to = place + (k0 + k) * p.g.out_height * p.g.out_width + window;
    p.y[to] = pool_four(four, p.g.first, marks);
    if (p.mask != nullptr) p.mask[to] = static_cast<uint8_t>(marks);
}

/* Grid: x over tiles, y over groups of filters. STEPS: k-steps of 8 taps in a slice. */
template <sdlf_math MATH, int R, int STEPS>
static __global__ void __launch_bounds__(THREADS) conv2d_pool_forward_sliced(pool_forward<float> p, batch_tiles l)
{
    extern __shared__ __align__(16) uint32_t shared[];
    slice_sums &results = *reinterpret_cast<slice_sums *>(shared);
    uint32_t *x = shared + sizeof(slice_sums) / sizeof(uint32_t);
    int *corner = reinterpret_cast<int *>(x + l.zone);
    const pool_geometry &g = p.g;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4, k0 = blockIdx.y * FILTERS;
    int taps = g.channels * R * R, steps = (taps + 7) / 8;
    float raw[STEPS][8];
    list_corners<THREADS>(g, l, corner);
    wait_and_launch_dependent_grids();
    uint32_t weights[STEPS][2][4];
    int offset[STEPS][2]; /* -1: no such tap */
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
#pragma unroll
        for (int e = 0; e < 8; e++) { /* e: filters group + 8 (e % 4), taps t + 4 (e / 4) */
            int k = k0 + e % 4 * 8 + group, tap = (warp + i * WARPS) * 8 + e / 4 * 4 + t;
            raw[i][e] = tap < taps && k < g.filters ? p.w[k * taps + tap] : 0.0f;
        }
    }
    load_tiles<MATH, THREADS, 8>(p.x, g, l, blockIdx.x, 0, g.channels, x);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            int tap = (warp + i * WARPS) * 8 + e * 4 + t;
            offset[i][e] = tap < taps ? (tap / (R * R) * l.lines + tap / R % R) * l.line + tap % R : -1;
        }
#pragma unroll
        for (int e = 0; e < 8; e++) weights[i][e % 4 / 2][e % 2 + 2 * (e / 4)] = operand_bits<MATH>(raw[i][e]);
    }
    __syncthreads();
    int p0 = blockIdx.x % l.tiles * l.tile_rows, windows = min(l.tile_rows, g.out_height - p0) * g.out_width;
    int base = static_cast<int>(blockIdx.x) / l.tiles * g.filters * g.out_height * g.out_width + p0 * g.out_width;
    for (int unit = 0; unit < windows; unit += UNIT) {
        const uint32_t *from = x + corner[unit + group];
        float sums[2][POSITIONS][4] = {};
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            if (warp + i * WARPS >= steps) break;
            uint32_t b[POSITIONS][2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const uint32_t *at = from + offset[i][e];
                bool valid = offset[i][e] >= 0;
                b[0][e] = valid ? at[0] : 0u;
                b[1][e] = valid ? at[1] : 0u;
                b[2][e] = valid ? at[l.line] : 0u;
                b[3][e] = valid ? at[l.line + 1] : 0u;
            }
#pragma unroll
            for (int position = 0; position < POSITIONS; position++) {
                mma_tf32(sums[0][position], weights[i][0], b[position]);
                mma_tf32(sums[1][position], weights[i][1], b[position]);
            }
        }
#pragma unroll
        for (int e = 0; e < 4; e++) { /* filters group + 8 e */
#pragma unroll
            for (int position = 0; position < POSITIONS; position++)
                *reinterpret_cast<float2 *>(&results[warp][position][e * 8 + group][2 * t]) =
                    make_float2(sums[e / 2][position][e % 2 * 2], sums[e / 2][position][e % 2 * 2 + 1]);
        }
        __syncthreads();
        store_window(p, results, base + unit, windows - unit, k0);
        __syncthreads();
    }
}

static batch_tiles tiles_of(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    int rows = pool_tile_rows(g, (g.filters + FILTERS - 1) / FILTERS, UNIT, INT32_MAX, calculator->multiprocessors);
    return batch_tiles_of(g, side, g.channels, 2 * g.out_width + side - 1, rows, 1, UNIT);
}

static int64_t memory_of(const batch_tiles &l)
{
    return batch_tiles_bytes(l) + static_cast<int64_t>(sizeof(slice_sums));
}

/* With larger images, each warp of a block has enough windows of its own. */
bool cuda_conv2d_pool_forward_sliced_suits(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    return calculator->math != SDLF_MATH_FP32 && cuda_has_tensor_cores(calculator) &&
           g.out_height * g.out_width <= 64 && g.channels * side * side <= MOST_STEPS * WARPS * 8 &&
           memory_of(tiles_of(calculator, g, side)) <= calculator->shared_most;
}

template <sdlf_math MATH, int R, int STEPS>
static sdlf_status launch(const cuda_calculator *calculator, const pool_forward<float> &p)
{
    const batch_tiles l = tiles_of(calculator, p.g, R);
    dim3 grid((unsigned)(p.g.batch * l.tiles), (unsigned)((p.g.filters + FILTERS - 1) / FILTERS));
    const int bytes = (int)shared_alone(calculator, static_cast<int64_t>(grid.x) * grid.y, memory_of(l));
    sdlf_status status = allow_shared(conv2d_pool_forward_sliced<MATH, R, STEPS>, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, conv2d_pool_forward_sliced<MATH, R, STEPS>, grid, THREADS, bytes, p, l);
    return cuda_check_launch("conv2d_relu_max_pool_forward");
}

template <sdlf_math MATH>
static sdlf_status launch_math(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    bool few = p.g.channels * side * side <= 3 * WARPS * 8;
    if (side == 5) return few ? launch<MATH, 5, 3>(calculator, p) : launch<MATH, 5, MOST_STEPS>(calculator, p);
    return few ? launch<MATH, 3, 3>(calculator, p) : launch<MATH, 3, MOST_STEPS>(calculator, p);
}

sdlf_status cuda_conv2d_pool_forward_sliced(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_math<SDLF_MATH_FP16>(calculator, p, side);
    case SDLF_MATH_BF16: return launch_math<SDLF_MATH_BF16>(calculator, p, side);
    default: return launch_math<SDLF_MATH_TF32>(calculator, p, side);
    }
}
