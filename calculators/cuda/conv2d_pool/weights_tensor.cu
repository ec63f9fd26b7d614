/* SPDX-License-Identifier: MIT */
/* The gradients of conv2d + ReLU + max-pool by weights and biases on tensor cores, factors rounded to tf32, float16 or bfloat16 (see
 * conv2d_pool/weights.cu; biases' are exact sums of dy).
 *
 * A product: da (32 filters, positions) x patches (positions, R R taps), where da, the convolution's gradient, is dy at marked
 * positions and 0 elsewhere; dense, for that is less work here than to pick one of four positions for every filter. A warp takes 16
 * windows at a time: a thread reads 4 neighbouring windows' dy and mask of 4 filters, which are its share of da for all four
 * positions, while the ones before are multiplied. Rows of x lie in shared memory (conv2d_pool/pieces.cuh), in lines whose length
 * keeps the lanes on different banks. The block's warps add up in shared memory, in order. 8 N K P Q C R R FLOPs, and 5 N K P Q bytes for
 * every channel: 8 us at 4 TB/s for the 32 MB of simple_cnn's layer at batch 1,024. */
#include "calculators/cuda/conv2d_pool/pieces.cuh"
#include "calculators/cuda/conv2d_pool/weights.cuh"
#include "calculators/cuda/launch.cuh"

enum {
    THREADS = 256,
    BLOCKS = 2 /* on a multiprocessor */,
    WARP = 32,
    WARPS = THREADS / WARP,
    FILTERS = 32,
    UNIT = 16
};
enum { MOST_WINDOWS = 256 /* of a piece */, MOST_MEMORY = 100 << 10 };

struct pool_product {
    const float *x, *dy;
    const uint8_t *mask;
    float *parts; /* (blocks, K C R R + K): dw, then db */
    pool_geometry g;
};

/* Four neighbouring windows of a filter. */
struct window_quad {
    float dy[4];
    unsigned marks; /* a byte a window */
};

static __device__ __forceinline__ window_quad load_quad(const pool_product &p, const pool_pieces &l, const int *place,
                                                        int k)
{
    window_quad quad = {};
    int area = p.g.out_height * p.g.out_width;
    if (k >= p.g.filters || (l.quads && place[0] < 0)) return quad;
    if (l.quads) {
        int at = place[0] + k * area;
        float4 dy = *reinterpret_cast<const float4 *>(p.dy + at);
        return {{dy.x, dy.y, dy.z, dy.w}, *reinterpret_cast<const unsigned *>(p.mask + at)};
    }
#pragma unroll
    for (int w = 0; w < 4; w++) {
        if (place[w] < 0) continue;
        quad.dy[w] = p.dy[place[w] + k * area];
        quad.marks |= static_cast<unsigned>(p.mask[place[w] + k * area]) << 8 * w;
    }
    return quad;
}

/* Windows without a mark have no gradient, and several marks share it. */
static __device__ __forceinline__ void settle(window_quad &quad)
{
    unsigned m = quad.marks;
    bool several = (((m | 0x10101010u) - 0x01010101u) & m & 0x0f0f0f0fu) != 0;
#pragma unroll
    for (int w = 0; w < 4; w++) quad.dy[w] = (m >> 8 * w & 15) != 0 ? quad.dy[w] : 0.0f;
    if (!several) return;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        unsigned marks = m >> 8 * w & 15; /* all four: where the image is blank */
        if (marks == 15)
            quad.dy[w] *= 0.25f;
        else if (marks != 0)
            quad.dy[w] /= static_cast<float>(__popc(marks));
    }
}

/* The sum of marked windows' dy. */
static __device__ __forceinline__ float count_marked(const window_quad &quad)
{
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 4; w++) sum += (quad.marks >> 8 * w & 15) != 0 ? quad.dy[w] : 0.0f;
    return sum;
}

/* All ones where the BYTE of marks has its highest bit set, else 0. */
template <int BYTE> static __device__ __forceinline__ uint32_t spread(unsigned marks)
{
    uint32_t ones;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(ones) : "r"(marks), "n"(0x1111 * (8 + BYTE)));
    return ones;
}

/* Grid: x over blocks of pieces, y over groups of filters, z over channels. */
template <sdlf_math MATH, int R>
static __global__ void __launch_bounds__(THREADS, BLOCKS) conv2d_pool_weights_tensor(pool_product p, pool_pieces l)
{
    const int taps = R * R, tiles = (taps + 7) / 8;
    extern __shared__ __align__(16) uint32_t x[];
    int *corner = reinterpret_cast<int *>(x + l.pieces_each * l.zone), *place = corner + l.windows;
    const pool_geometry &g = p.g;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4, k0 = blockIdx.y * FILTERS,
        c = blockIdx.z;
    int offset[tiles];
    float sums[2][tiles][4] = {}, db[4] = {};
    await_kernels();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        int tap = j * 8 + group;
        offset[j] = tap < taps ? tap / R * l.line + tap % R : 0;
    }
    for (int first = blockIdx.x * l.pieces_each; first < g.batch * l.pieces; first += gridDim.x * l.pieces_each) {
        __syncthreads();
        list_windows<THREADS>(g, l, first, corner, place);
        load_pieces<MATH, THREADS, 4>(p.x, g, l, first, c, 1, x);
        __syncthreads();
        window_quad next[4];
        int unit = warp * UNIT;
        if (unit < l.windows) {
#pragma unroll
            for (int f = 0; f < 4; f++) next[f] = load_quad(p, l, place + unit + 4 * t, k0 + f * 8 + group);
        }
        for (; unit < l.windows; unit += WARPS * UNIT) {
            uint32_t dy[4][4];
            unsigned marks[4];
#pragma unroll
            for (int f = 0; f < 4; f++) {
                marks[f] = next[f].marks;
                db[f] += count_marked(next[f]);
                settle(next[f]);
#pragma unroll
                for (int w = 0; w < 4; w++) dy[f][w] = factor_bits<MATH>(next[f].dy[w]);
            }
            int following = unit + WARPS * UNIT;
            if (following < l.windows) {
#pragma unroll
                for (int f = 0; f < 4; f++) next[f] = load_quad(p, l, place + following + 4 * t, k0 + f * 8 + group);
            }
            int4 corners = *reinterpret_cast<const int4 *>(corner + unit + 4 * t);
            const uint32_t *from[4] = {x + corners.x, x + corners.y, x + corners.z, x + corners.w};
#pragma unroll
            for (int position = 0; position < 4; position++) {
                int shift = position / 2 * l.line + position % 2;
#pragma unroll
                for (int pair = 0; pair < 2; pair++) {
                    uint32_t a[2][4];
#pragma unroll
                    for (int i = 0; i < 2; i++) {
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int f = 2 * i + e % 2;
                            unsigned top = marks[f] << (7 - position);
                            uint32_t ones = pair == 0 ? (e < 2 ? spread<0>(top) : spread<1>(top))
                                                      : (e < 2 ? spread<2>(top) : spread<3>(top));
                            a[i][e] = dy[f][2 * pair + e / 2] & ones;
                        }
                    }
#pragma unroll
                    for (int j = 0; j < tiles; j++) {
                        uint32_t b[2] = {from[2 * pair][shift + offset[j]], from[2 * pair + 1][shift + offset[j]]};
                        mma_tf32(sums[0][j], a[0], b);
                        mma_tf32(sums[1][j], a[1], b);
                    }
                }
            }
        }
    }
    /* the block's sum: warp by warp */
    const int width = tiles * 8 + 1; /* taps, and the bias in the last */
    float *shared = reinterpret_cast<float *>(x);
    __syncthreads();
#pragma unroll
    for (int f = 0; f < 4; f++) {
        db[f] += __shfl_xor_sync(0xffffffffu, db[f], 1);
        db[f] += __shfl_xor_sync(0xffffffffu, db[f], 2);
        float *line = shared + (warp * 32 + f * 8 + group) * width;
        if (t == 0) line[tiles * 8] = db[f];
#pragma unroll
        for (int j = 0; j < tiles; j++) {
            line[j * 8 + 2 * t] = sums[f / 2][j][f % 2 * 2];
            line[j * 8 + 2 * t + 1] = sums[f / 2][j][f % 2 * 2 + 1];
        }
    }
    __syncthreads();
    int64_t count = static_cast<int64_t>(g.filters) * g.channels * taps;
    float *parts = p.parts + blockIdx.x * (count + g.filters);
    for (int e = threadIdx.x; e < 32 * (taps + 1); e += THREADS) {
        int filter = e / (taps + 1), i = e % (taps + 1);
        if (k0 + filter >= g.filters) break;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += shared[(w * 32 + filter) * width + (i < taps ? i : tiles * 8)];
        if (i < taps)
            parts[(static_cast<int64_t>(k0 + filter) * g.channels + c) * taps + i] = sum;
        else if (c == 0)
            parts[count + k0 + filter] = sum;
    }
}

/* ---- launching ---- */

/* Blocks that fill the device once, each with as many pieces at a time as it takes in all, where there is memory for them; and no fewer
 * than keep all its warps busy, unless that leaves multiprocessors without work. */
static pool_pieces pieces_of(const cuda_calculator *calculator, const pool_geometry &g, int side, int *blocks)
{
    int64_t others = static_cast<int64_t>(g.channels) * ((g.filters + FILTERS - 1) / FILTERS);
    int rows = pool_piece_rows(g, others, UNIT, MOST_WINDOWS, calculator->multiprocessors),
        line = 2 * g.out_width + side - 1;
    while (line > 20 && line % 32 != side) line++;
    int64_t all = static_cast<int64_t>(g.batch) * ((g.out_height + rows - 1) / rows);
    int64_t most = (BLOCKS * calculator->multiprocessors + others - 1) / others, each = (all + most - 1) / most;
    while (each * rows * g.out_width * 2 <= WARPS * UNIT &&
           (all + 2 * each - 1) / (2 * each) * others * 8 >= calculator->multiprocessors * 7)
        each *= 2;
    *blocks = (int)((all + each - 1) / each);
    pool_pieces l = pool_pieces_of(g, side, 1, line, rows, 1, UNIT);
    int64_t fitting = MOST_MEMORY / pool_pieces_bytes(l);
    if (each > fitting) each = fitting > 1 ? fitting : 1;
    return pool_pieces_of(g, side, 1, line, rows, (int)each, UNIT);
}

static int64_t memory_of(const pool_pieces &l, int side)
{
    int64_t sums = static_cast<int64_t>(sizeof(float)) * WARPS * FILTERS * ((side * side + 7) / 8 * 8 + 1);
    return sums > pool_pieces_bytes(l) ? sums : pool_pieces_bytes(l);
}

static pool_product product_of(const sdlf_operation *op)
{
    const pool_operands operands = pool_operands_of(op);
    return {data_of<float>(operands.x), data_of<float>(operands.dy), data_of<uint8_t>(operands.mask),
            static_cast<float *>(op->workspace.data), pool_geometry_of(op, operands.x, operands.dy)};
}

bool cuda_conv2d_pool_weights_suits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int side = op->conv2d_pool.window.size[0], blocks = 0;
    return op->in[0].dtype == SDLF_FLOAT32 && calculator->math != SDLF_MATH_FP32 && cuda_has_tensor_cores(calculator) &&
           memory_of(pieces_of(calculator, product_of(op).g, side, &blocks), side) <= calculator->shared_most;
}

int cuda_conv2d_pool_weights_tensor_blocks(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int blocks = 0;
    pieces_of(calculator, product_of(op).g, op->conv2d_pool.window.size[0], &blocks);
    return blocks;
}

template <sdlf_math MATH, int R> static sdlf_status launch(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const pool_product p = product_of(op);
    int blocks = 0;
    pool_pieces l = pieces_of(calculator, p.g, R, &blocks);
    uintptr_t addresses = reinterpret_cast<uintptr_t>(p.dy) | reinterpret_cast<uintptr_t>(p.mask) * 4;
    l.quads = l.quads && addresses % 16 == 0;
    dim3 grid((unsigned)blocks, (unsigned)((p.g.filters + FILTERS - 1) / FILTERS), (unsigned)p.g.channels);
    const int64_t all = static_cast<int64_t>(grid.x) * grid.y * grid.z,
                  bytes = shared_alone(calculator, all, memory_of(l, R));
    sdlf_status status = allow_shared(conv2d_pool_weights_tensor<MATH, R>, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, conv2d_pool_weights_tensor<MATH, R>, grid, THREADS, (int)bytes, p, l);
    status = cuda_check_launch("conv2d_relu_max_pool_backward");
    return status == SDLF_OK ? cuda_conv2d_pool_finish(calculator, op, blocks) : status;
}

sdlf_status cuda_conv2d_pool_weights_tensor(const cuda_calculator *calculator, const sdlf_operation *op)
{
    sdlf_status status = SDLF_OK;
    with_side(op->conv2d_pool.window.size[0], [&](auto side) {
        switch (calculator->math) {
        case SDLF_MATH_FP16: status = launch<SDLF_MATH_FP16, side.value>(calculator, op); break;
        case SDLF_MATH_BF16: status = launch<SDLF_MATH_BF16, side.value>(calculator, op); break;
        default: status = launch<SDLF_MATH_TF32, side.value>(calculator, op);
        }
    });
    return status;
}
