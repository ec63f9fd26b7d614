/* SPDX-License-Identifier: MIT */
/* Stem convolutions of up to 3 channels on tensor cores, in tf32, with channels-last results: the first layer of a network that runs
 * channels last; 3x3, stride 1 or 2. x may be channels last or row-major. For compute capability 8.0 and newer.
 *
 *   y[pixel, k] = act(sum over (c,r,s) of x[pixel shifted by (r,s), c] w[k, (c,r,s)] + bias[k] + residual[pixel, k])
 *
 * A block has the part of the image that 64 x 4 pixels need, halo and padding included, in shared memory, one plane a channel; while it
 * computes them, the next part is loaded. A warp multiplies 16 neighbouring pixels by 32 filters, with K of up to 27 padded to 32 by zeros;
 * its weights, prepacked once, stay in registers. A lane ends with four neighbouring filters of a pixel. Loads x about once, stores y once. */
#include "calculators/cuda/conv2d/clip.cuh"
#include "calculators/cuda/conv2d/stem.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum {
    SIDE = STEM_LAST_SIDE,
    TAPS = SIDE * SIDE,
    WARPS = 8,
    THREADS = WARPS * WARP,
    ACROSS = 64, /* pixels of a tile */
    DOWN = 4,
    PIXELS = 16, /* M of an mma */
    PARTS = ACROSS * DOWN / PIXELS,
    FILTERS = 32, /* of a warp */
    QUADS = FILTERS / 16,
    STEPS = 4,                        /* k-steps of 8 */
    PLANES = STEM_TENSOR_CHANNELS + 1 /* the channels, then zeros */
};

struct stem_tensor_problem {
    const float *x, *w, *bias, *residual;
    float *y;
    sdlf_activation activation;
    int64_t image_step; /* strides of x in elements: image, channel, line, pixel */
    int channel_step, row_step, pixel_step;
    int channels, height, width, filters, out_height, out_width, padding[2];
    int tiles_across, tiles_down, tiles;
    int groups; /* of FILTERS filters in a block: 1 or 2 */
    bool wide;  /* four neighbouring filters of y may be stored at once */
    bool ready; /* w was prepacked before anything ran: for each FILTERS, k-step and quad, four elements a lane */
};

template <int STEP> struct stem_tensor_sizes {
    static constexpr int ROWS = (DOWN - 1) * STEP + SIDE, COLUMNS = (ACROSS - 1) * STEP + SIDE;
    static constexpr int ROW = (COLUMNS + 15) / 32 * 32 + 16,
                         PLANE = ROWS * ROW; /* lines begin half of the banks apart */
};

/* ---- weights ---- */

/* Weight k (c, r, s) of a filter; 0 where there is none. */
static __device__ __forceinline__ float weight_of(const float *w, int filters, int depth, int filter, int k)
{
    return filter < filters && k < depth ? w[filter * depth + k] : 0.0f;
}

/* A lane's four B elements: two of each of two mma. A column n is assigned to a filter such that a lane, which gets
 * columns 2t and 2t + 1 of both results, has four neighbouring filters. */
static __device__ __forceinline__ float4 weights_of(const float *w, int filters, int depth, int first, int step,
                                                    int quad, int lane)
{
    const int column = lane / 4, filter = first + quad * 16 + column / 2 * 4 + column % 2, k = step * 8 + lane % 4;
    return make_float4(weight_of(w, filters, depth, filter, k), weight_of(w, filters, depth, filter, k + 4),
                       weight_of(w, filters, depth, filter + 2, k), weight_of(w, filters, depth, filter + 2, k + 4));
}

static __device__ __forceinline__ float4 rounded(float4 v)
{
    return make_float4(
        __uint_as_float(operand_bits<SDLF_MATH_TF32>(v.x)), __uint_as_float(operand_bits<SDLF_MATH_TF32>(v.y)),
        __uint_as_float(operand_bits<SDLF_MATH_TF32>(v.z)), __uint_as_float(operand_bits<SDLF_MATH_TF32>(v.w)));
}

/* Prepack the weights; one thread four elements. */
static __global__ void stem_tensor_prepare(const float *w, float4 *to, int filters, int depth, int64_t count)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int lane = static_cast<int>(e % WARP), quad = static_cast<int>(e / WARP % QUADS);
        int step = static_cast<int>(e / (WARP * QUADS) % STEPS), group = static_cast<int>(e / (WARP * QUADS * STEPS));
        to[e] = rounded(weights_of(w, filters, depth, group * FILTERS, step, quad, lane));
    }
}

/* ---- the kernel ---- */

/* Issue the copies of the part of the image that a tile needs. */
template <int STEP>
static __device__ __forceinline__ void load_image(const stem_tensor_problem &p, float *image, int tile)
{
    using sizes = stem_tensor_sizes<STEP>;
    constexpr int AREA = sizes::ROWS * sizes::COLUMNS;
    const int across = tile % p.tiles_across, rest = tile / p.tiles_across;
    const int left = across * ACROSS * STEP - p.padding[1], top = rest % p.tiles_down * DOWN * STEP - p.padding[0];
    const float *x = p.x + rest / p.tiles_down * p.image_step;
    const bool last = p.channel_step == 1;
    for (int e = static_cast<int>(threadIdx.x); e < AREA * p.channels; e += THREADS) {
        int c = last ? e % p.channels : e / AREA, at = last ? e / p.channels : e % AREA;
        int row = at / sizes::COLUMNS, column = at % sizes::COLUMNS, h = top + row, w = left + column;
        bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) &&
                      static_cast<unsigned>(w) < static_cast<unsigned>(p.width);
        const float *from = inside ? x + (c * p.channel_step + h * p.row_step + w * p.pixel_step) : p.x;
        copy_async_number(image + c * sizes::PLANE + row * sizes::ROW + column, from, inside);
    }
    cp_async_commit();
}

/* Store four neighbouring filters of a pixel. */
template <bool CLIPS>
static __device__ __forceinline__ void store(const stem_tensor_problem &p, int64_t at, const float4 &bias, float a,
                                             float b, float c, float d)
{
    float value[4] = {a + bias.x, b + bias.y, c + bias.z, d + bias.w};
    stem_store(p, at, value, [&](float x) { return activate_known<CLIPS>(p.activation, x); });
}

template <int STEP, bool CLIPS>
static __global__ void __launch_bounds__(THREADS, 2) stem_tensor(const __grid_constant__ stem_tensor_problem p)
{
    using sizes = stem_tensor_sizes<STEP>;
    extern __shared__ __align__(16) float memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
    const int group = static_cast<int>(blockIdx.y) * p.groups + warp % p.groups, first = group * FILTERS;
    const int depth = p.channels * TAPS, step = static_cast<int>(gridDim.x);

    launch_dependent_grids();
    if (!p.ready) wait_on_dependent_grids();
    float4 weights[STEPS][QUADS];
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
#pragma unroll
        for (int j = 0; j < QUADS; j++)
            weights[i][j] = p.ready
                                ? reinterpret_cast<const float4 *>(p.w)[((group * STEPS + i) * QUADS + j) * WARP + lane]
                                : rounded(weights_of(p.w, p.filters, depth, first, i, j, lane));
    }
    int offset[STEPS][2]; /* of a lane's two elements of a k-step, from the window's first */
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int k = i * 8 + j * 4 + lane % 4;
            offset[i][j] = k / TAPS * sizes::PLANE + k % TAPS / SIDE * sizes::ROW + k % SIDE;
        }
    }
    for (int turn = 0; turn < 2; turn++) { /* the zero planes */
        for (int e = p.channels * sizes::PLANE + thread; e < PLANES * sizes::PLANE; e += THREADS)
            memory[turn * PLANES * sizes::PLANE + e] = 0;
    }
    if (p.ready) wait_on_dependent_grids();

    int turn = 0;
    load_image<STEP>(p, memory, static_cast<int>(blockIdx.x));
    float4 bias[QUADS]; /* may have been written by the previous kernel */
#pragma unroll
    for (int j = 0; j < QUADS; j++) {
        int filter = first + j * 16 + lane % 4 * 4;
        bias[j] = make_float4(0, 0, 0, 0);
        if (p.bias != nullptr && filter < p.filters)
            bias[j] = make_float4(p.bias[filter], p.bias[filter + 1], p.bias[filter + 2], p.bias[filter + 3]);
    }
    for (int tile = static_cast<int>(blockIdx.x); tile < p.tiles; tile += step, turn ^= 1) {
        cp_async_wait<0>();
        __syncthreads(); /* the image is complete, and nobody reads the previous one */
        if (tile + step < p.tiles) load_image<STEP>(p, memory + (turn ^ 1) * PLANES * sizes::PLANE, tile + step);
        const float *image = memory + turn * PLANES * sizes::PLANE;
        const int across = tile % p.tiles_across, rest = tile / p.tiles_across;
        const int first_row = rest % p.tiles_down * DOWN, first_column = across * ACROSS, n = rest / p.tiles_down;
        for (int part = warp / p.groups; part < PARTS; part += WARPS / p.groups) {
            const int row = part / (ACROSS / PIXELS), column = part % (ACROSS / PIXELS) * PIXELS;
            if (first_row + row >= p.out_height || first_column + column >= p.out_width || first >= p.filters) continue;
            const float *from = image + row * STEP * sizes::ROW + (column + lane / 4) * STEP;
            float sum[2 * QUADS][4] = {};
#pragma unroll
            for (int i = 0; i < STEPS; i++) {
                uint32_t pixel[4];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    pixel[j] = operand_bits<SDLF_MATH_TF32>(from[offset[i][j / 2] + j % 2 * 8 * STEP]);
#pragma unroll
                for (int j = 0; j < QUADS; j++) {
                    const float4 w = weights[i][j];
                    const uint32_t low[2] = {__float_as_uint(w.x), __float_as_uint(w.y)};
                    const uint32_t high[2] = {__float_as_uint(w.z), __float_as_uint(w.w)};
                    mma_tf32(sum[2 * j], pixel, low);
                    mma_tf32(sum[2 * j + 1], pixel, high);
                }
            }
            const int x = first_column + column + lane / 4;
            const int64_t line = (static_cast<int64_t>(n) * p.out_height + first_row + row) * p.out_width;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                if (x + half * 8 >= p.out_width) continue;
#pragma unroll
                for (int j = 0; j < QUADS; j++) {
                    int filter = first + j * 16 + lane % 4 * 4;
                    const float(&low)[4] = sum[2 * j], (&high)[4] = sum[2 * j + 1];
                    if (filter < p.filters)
                        store<CLIPS>(p, (line + x + half * 8) * p.filters + filter, bias[j], low[2 * half],
                                     low[2 * half + 1], high[2 * half], high[2 * half + 1]);
                }
            }
        }
    }
}

/* ---- prepacked weights ---- */

/* Groups of FILTERS filters, for blocks of one or two groups. */
static int64_t filter_groups(const sdlf_operation *op)
{
    int64_t groups = (op->in[1].shape.dim[0] + FILTERS - 1) / FILTERS;
    return groups > 1 ? (groups + 1) / 2 * 2 : groups;
}

extern "C" int64_t cuda_stem_tensor_prepared(const sdlf_operation *op)
{
    return filter_groups(op) * STEPS * QUADS * WARP * 16;
}

/* Waits for its kernel, since the one that reads the weights does not wait. */
extern "C" sdlf_status conv2d_stem_tensor_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &w = op->in[1];
    int64_t count = filter_groups(op) * STEPS * QUADS * WARP;
    stem_tensor_prepare<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
        data_of<float>(w), static_cast<float4 *>(op->prepared.data), static_cast<int>(w.shape.dim[0]),
        static_cast<int>(w.shape.dim[1]) * TAPS, count);
    sdlf_status status = cuda_check_launch("conv2d, few channels on tensor cores, prepacked weights");
    if (status != SDLF_OK) return status;
    return cuda_check(cudaStreamSynchronize(calculator->stream), "conv2d, few channels, prepacked weights");
}

/* ---- launching ---- */

/* A block for each tile, or as many as are resident if there are more tiles. */
template <int STEP, bool CLIPS>
static sdlf_status launch(const cuda_calculator *calculator, const stem_tensor_problem &p)
{
    int64_t bytes = 2 * PLANES * stem_tensor_sizes<STEP>::PLANE * static_cast<int64_t>(sizeof(float));
    sdlf_status status = allow_shared(stem_tensor<STEP, CLIPS>, bytes);
    if (status != SDLF_OK) return status;
    const int most = 2 * calculator->multiprocessors, per = p.groups * FILTERS;
    dim3 blocks(static_cast<unsigned>(p.tiles < most ? p.tiles : most),
                static_cast<unsigned>((p.filters + per - 1) / per));
    launch_overlapped(calculator, stem_tensor<STEP, CLIPS>, blocks, dim3(THREADS), static_cast<int>(bytes), p);
    return cuda_check_launch("conv2d, few channels on tensor cores");
}

extern "C" sdlf_status conv2d_stem_tensor_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    stem_tensor_problem p = stem_last_problem_of<stem_tensor_problem>(op, g);
    const bool last = sdlf_tensor_is_channels_last(&op->in[0]);
    p.image_step = g.channels * g.height * g.width;
    p.channel_step = last ? 1 : p.height * p.width;
    p.row_step = last ? p.width * p.channels : p.width;
    p.pixel_step = last ? p.channels : 1;
    p.tiles_across = (p.out_width + ACROSS - 1) / ACROSS;
    p.tiles_down = (p.out_height + DOWN - 1) / DOWN;
    p.tiles = static_cast<int>(g.batch * p.tiles_across * p.tiles_down);
    p.groups = p.filters > FILTERS ? 2 : 1;
    const bool clips = make_clip(&p.activation);
    if (g.window.stride[0] == 1) return clips ? launch<1, true>(calculator, p) : launch<1, false>(calculator, p);
    return clips ? launch<2, true>(calculator, p) : launch<2, false>(calculator, p);
}
