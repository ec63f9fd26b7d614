/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_forward on tensor cores, operands rounded to tf32, float16 or bfloat16, for few taps: C R R up to 32, a network's
 * first layer.
 *
 * The convolution is a GEMM: weights (filters, taps) x patches (taps, positions). All weights stay in a warp's registers. A warp
 * computes units of 16 windows and 32 filters; it multiplies the patches of the four positions of its windows one after the other, so
 * that a thread has the four sums of 4 neighbouring windows of a filter, pools them by itself and stores 16 bytes of y and 4 of the
 * mask at once. 8 N K P Q C R R FLOPs, 1.3 GFLOP for simple_cnn's layer at batch 1,024; moves 5 N K P Q bytes, 32 MB, 8 us at 4
 * TB/s. */
#include "calculators/cuda/conv2d_pool/batch_tiles.cuh"
#include "calculators/cuda/conv2d_pool/forward.cuh"

enum {
    THREADS = 256,
    BLOCKS = 2 /* on a multiprocessor */,
    WARP = 32,
    WARPS = THREADS / WARP,
    FILTERS = 32,
    UNIT = 16,
    MOST_WINDOWS = 256
};

/* As pool_four, but the marks are added to others at bit `shift`. */
static __device__ __forceinline__ float pool_marked(const float *four, bool first_alone, int shift, unsigned &marks)
{
    float largest = larger(larger(four[0], four[1]), larger(four[2], four[3]));
    float key = largest > 0.0f ? largest : NAN; /* equals nothing */
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) found |= four[i] == key ? 1u << (shift + i) : 0u;
    marks |= first_alone ? found & (0u - found) : found;
    return larger(largest, 0.0f);
}

/* Grid: x over blocks that share the tiles, y over groups of FILTERS filters. GROUPS: groups of 16 filters in a warp. */
template <sdlf_math MATH, int R, int CHANNELS, int GROUPS>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv2d_pool_forward_first(pool_forward<float> p, batch_tiles l)
{
    const int taps = CHANNELS * R * R, steps = (taps + 7) / 8;
    extern __shared__ __align__(16) uint32_t x[];
    int *corner = reinterpret_cast<int *>(x + l.zone);
    const pool_geometry &g = p.g;
    int lane = threadIdx.x % WARP, group = lane / 4, t = lane % 4, k0 = blockIdx.y * FILTERS;
    float raw[GROUPS * 2][2 * steps], bias[GROUPS * 2];
    list_corners<THREADS>(g, l, corner);
    wait_and_launch_dependent_grids();
    uint32_t weights[GROUPS][steps][4];
    int offset[steps][2];
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
        int k = k0 + i * 8 + group;
        bias[i] = p.bias != nullptr && k < g.filters ? p.bias[k] : 0.0f;
#pragma unroll
        for (int e = 0; e < 2 * steps; e++)
            raw[i][e] = 4 * e + t < taps && k < g.filters ? p.w[k * taps + 4 * e + t] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < 2 * steps; e++) {
        int tap = 4 * e + t;
        offset[e / 2][e % 2] = tap < taps ? (tap / (R * R) * l.lines + tap / R % R) * l.line + tap % R : 0;
#pragma unroll
        for (int i = 0; i < GROUPS * 2; i++) weights[i / 2][e / 2][i % 2 + 2 * (e % 2)] = operand_bits<MATH>(raw[i][e]);
    }
    int area = g.out_height * g.out_width;
    for (int tile = blockIdx.x; tile < g.batch * l.tiles; tile += gridDim.x) {
        int p0 = tile % l.tiles * l.tile_rows, windows = min(l.tile_rows, g.out_height - p0) * g.out_width;
        int base = tile / l.tiles * g.filters * area + p0 * g.out_width;
        __syncthreads();
        load_tiles<MATH, THREADS, 4>(p.x, g, l, tile, 0, CHANNELS, x);
        __syncthreads();
        for (int unit = threadIdx.x / WARP * UNIT; unit < windows; unit += WARPS * UNIT) {
            float pooled[GROUPS * 2][4]; /* windows 4 t ... of filters group, group + 8, ... */
            unsigned marks[GROUPS * 2] = {};
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint32_t *from = x + corner[unit + group / 2 * 4 + half * 2 + group % 2];
                float sums[GROUPS][4][4];
#pragma unroll
                for (int e = 0; e < GROUPS * 16; e++) sums[e / 16][e / 4 % 4][e % 4] = bias[e / 16 * 2 + e % 4 / 2];
#pragma unroll
                for (int step = 0; step < steps; step++) {
                    uint32_t b[4][2];
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const uint32_t *at = from + offset[step][e];
                        bool some = step * 8 + 4 * e < taps, valid = step * 8 + 4 * e + t < taps;
                        b[0][e] = some && valid ? at[0] : 0u;
                        b[1][e] = some && valid ? at[1] : 0u;
                        b[2][e] = some && valid ? at[l.line] : 0u;
                        b[3][e] = some && valid ? at[l.line + 1] : 0u;
                    }
#pragma unroll
                    for (int i = 0; i < GROUPS; i++) {
#pragma unroll
                        for (int position = 0; position < 4; position++)
                            mma_tf32(sums[i][position], weights[i][step], b[position]);
                    }
                }
#pragma unroll
                for (int e = 0; e < GROUPS * 4; e++) {
                    int i = e / 4, c = e % 4;
                    const float four[4] = {sums[i][0][c], sums[i][1][c], sums[i][2][c], sums[i][3][c]};
                    pooled[e / 2][half * 2 + e % 2] = pool_marked(four, g.first, 16 * half + 8 * (e % 2), marks[e / 2]);
                }
            }
            int w = unit + 4 * t;
            if (w >= windows) continue;
#pragma unroll
            for (int i = 0; i < GROUPS * 2; i++) {
                int k = k0 + i * 8 + group, to = base + k * area + w;
                if (k >= g.filters) continue;
                if (l.quads) {
                    *reinterpret_cast<float4 *>(p.y + to) =
                        make_float4(pooled[i][0], pooled[i][1], pooled[i][2], pooled[i][3]);
                    if (p.mask != nullptr) *reinterpret_cast<unsigned *>(p.mask + to) = marks[i];
                    continue;
                }
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    if (w + e >= windows) continue;
                    p.y[to + e] = pooled[i][e];
                    if (p.mask != nullptr) p.mask[to + e] = static_cast<uint8_t>(marks[i] >> 8 * e);
                }
            }
        }
    }
}

static batch_tiles tiles_of(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    int rows = pool_tile_rows(g, (g.filters + FILTERS - 1) / FILTERS, UNIT, MOST_WINDOWS, calculator->multiprocessors);
    return batch_tiles_of(g, side, g.channels, 2 * g.out_width + side - 1, rows, 1, UNIT);
}

bool cuda_conv2d_pool_forward_first_suits(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    bool few = g.channels == 1 || (g.channels == 3 && side == 3);
    return few && calculator->math != SDLF_MATH_FP32 && cuda_has_tensor_cores(calculator) &&
           batch_tiles_bytes(tiles_of(calculator, g, side)) <= calculator->shared_most;
}

template <sdlf_math MATH, int R, int CHANNELS, int GROUPS>
static sdlf_status launch(const cuda_calculator *calculator, const pool_forward<float> &p, batch_tiles l)
{
    uintptr_t addresses = reinterpret_cast<uintptr_t>(p.y) | reinterpret_cast<uintptr_t>(p.mask) * 4;
    l.quads = l.quads && addresses % 16 == 0;
    int tiles = p.g.batch * l.tiles, most = BLOCKS * calculator->multiprocessors;
    dim3 grid((unsigned)(tiles < most ? tiles : most), (unsigned)((p.g.filters + FILTERS - 1) / FILTERS));
    const int bytes = (int)shared_alone(calculator, static_cast<int64_t>(grid.x) * grid.y, batch_tiles_bytes(l));
    sdlf_status status = allow_shared(conv2d_pool_forward_first<MATH, R, CHANNELS, GROUPS>, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, conv2d_pool_forward_first<MATH, R, CHANNELS, GROUPS>, grid, THREADS, bytes, p, l);
    return cuda_check_launch("conv2d_relu_max_pool_forward");
}

template <sdlf_math MATH>
static sdlf_status launch_math(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    const batch_tiles l = tiles_of(calculator, p.g, side);
    bool two = p.g.filters > 16;
    if (side == 5) return two ? launch<MATH, 5, 1, 2>(calculator, p, l) : launch<MATH, 5, 1, 1>(calculator, p, l);
    if (p.g.channels == 1)
        return two ? launch<MATH, 3, 1, 2>(calculator, p, l) : launch<MATH, 3, 1, 1>(calculator, p, l);
    return two ? launch<MATH, 3, 3, 2>(calculator, p, l) : launch<MATH, 3, 3, 1>(calculator, p, l);
}

sdlf_status cuda_conv2d_pool_forward_first(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_math<SDLF_MATH_FP16>(calculator, p, side);
    case SDLF_MATH_BF16: return launch_math<SDLF_MATH_BF16>(calculator, p, side);
    default: return launch_math<SDLF_MATH_TF32>(calculator, p, side);
    }
}
