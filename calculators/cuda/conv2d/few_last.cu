/* SPDX-License-Identifier: MIT */
/* Convolutions of up to 4 channels that lie last, such as the first layer of a network whose others want them so: 3x3, in IEEE single
 * precision.
 *
 *   y[pixel, k] = act(sum over (c,r,s) of x[pixel shifted by (r,s), c] w[k, (c,r,s)] + bias[k] + residual[pixel, k])
 *
 * A block makes 32 x 4 pixels of up to 64 filters. It has the rectangle of the image that these need, halo and padding included, and the
 * weights in shared memory, a channel a plane. As in conv2d/few_channels.cu a thread makes 4 neighbouring pixels of 8 filters; lanes are 8 x 4 groups of
 * pixels, warps are filters. Results change places through shared memory, so that a pixel's filters are written side by side. Weights are made
 * ready once, in the order in which they lie there, and fetched before the kernel before this one is over. Moves x about once, y once. */
#include "calculators/cuda/conv2d/few.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum {
    SIDE = FEW_LAST_SIDE,
    TAPS = SIDE * SIDE,
    ACROSS = 32, /* pixels of a block */
    DOWN = 4,
    PIXELS = ACROSS * DOWN,
    FILTERS = 64,
    OWN_PIXELS = 4, /* of a thread */
    OWN = 8,
    THREADS = FILTERS / OWN * WARP,
    PITCH = FILTERS + 4 /* of a pixel's results in shared memory */
};

struct few_last_problem {
    const float *x, *w, *bias, *residual;
    float *y;
    sdlf_activation activation;
    int channels, height, width, filters, out_height, out_width, padding[2];
    int blocks_across, blocks_down, filter_blocks;
    bool wide;  /* four neighbouring filters of y may be written at once */
    bool ready; /* w: (filter block, c, r, s, FILTERS), made ready before anything ran */
};

template <int STEP> struct few_last_sizes {
    static constexpr int ROWS = (DOWN - 1) * STEP + SIDE, COLUMNS = (ACROSS - 1) * STEP + SIDE;
    static constexpr int ROW = (COLUMNS + 3) / 4 * 4, READ = ((OWN_PIXELS - 1) * STEP + SIDE + 3) / 4 * 4;
    /* numbers of shared memory: weights and image, or results in their place */
    static int64_t shared(int channels)
    {
        int64_t factors = static_cast<int64_t>(channels) * (TAPS * FILTERS + ROWS * ROW);
        return factors > PIXELS * PITCH ? factors : static_cast<int64_t>(PIXELS * PITCH);
    }
};

/* All of a block's weights: FILTERS of each channel and tap. */
static __device__ __forceinline__ void load_weights(const few_last_problem &p, float *weights, int first)
{
    const int depth = p.channels * TAPS;
    if (p.ready) {
        const float *from = p.w + static_cast<int64_t>(first) * depth;
        for (int e = static_cast<int>(threadIdx.x) * 4; e < depth * FILTERS; e += THREADS * 4)
            copy_async(weights + e, from + e, true);
        return;
    }
    for (int e = static_cast<int>(threadIdx.x); e < depth * FILTERS; e += THREADS) {
        int filter = first + e % FILTERS, at = e / FILTERS;
        bool exists = filter < p.filters;
        copy_async_number(weights + e, exists ? p.w + static_cast<int64_t>(filter) * depth + at : p.w, exists);
    }
}

template <int STEP>
static __global__ void __launch_bounds__(THREADS, 4) few_last(const __grid_constant__ few_last_problem p)
{
    using sizes = few_last_sizes<STEP>;
    extern __shared__ __align__(16) float memory[];
    float *weights = memory, *image = weights + p.channels * TAPS * FILTERS;
    unsigned block = blockIdx.x;
    const int first_filter = static_cast<int>(block % p.filter_blocks) * FILTERS;
    block /= p.filter_blocks;
    const int first_column = static_cast<int>(block % p.blocks_across) * ACROSS;
    block /= p.blocks_across;
    const int first_row = static_cast<int>(block % p.blocks_down) * DOWN, n = static_cast<int>(block / p.blocks_down);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;

    let_next_start();
    if (!p.ready) await_inputs();
    load_weights(p, weights, first_filter);
    if (p.ready) await_inputs();
    const int top = first_row * STEP - p.padding[0], left = first_column * STEP - p.padding[1];
    const float *x = p.x + static_cast<int64_t>(n) * p.height * p.width * p.channels;
    for (int e = thread; e < sizes::ROWS * sizes::COLUMNS * p.channels; e += THREADS) {
        int c = e % p.channels, column = e / p.channels % sizes::COLUMNS, row = e / p.channels / sizes::COLUMNS;
        bool inside = static_cast<unsigned>(top + row) < static_cast<unsigned>(p.height) &&
                      static_cast<unsigned>(left + column) < static_cast<unsigned>(p.width);
        int64_t from = (static_cast<int64_t>(top + row) * p.width + left + column) * p.channels + c;
        copy_async_number(image + (c * sizes::ROWS + row) * sizes::ROW + column, inside ? x + from : x, inside);
    }
    close_copies();
    await_copies<0>();
    __syncthreads();

    const float *from = image + lane / 8 * STEP * sizes::ROW + lane % 8 * OWN_PIXELS * STEP,
                *own = weights + warp * OWN;
    float sum[OWN_PIXELS][OWN] = {};
#pragma unroll 1
    for (int c = 0; c < p.channels; c++, from += sizes::ROWS * sizes::ROW) {
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            float pixel[sizes::READ];
#pragma unroll
            for (int j = 0; j < sizes::READ; j += 4) {
                float4 four = *reinterpret_cast<const float4 *>(from + r * sizes::ROW + j);
                pixel[j] = four.x;
                pixel[j + 1] = four.y;
                pixel[j + 2] = four.z;
                pixel[j + 3] = four.w;
            }
#pragma unroll
            for (int s = 0; s < SIDE; s++, own += FILTERS) {
                float4 low = *reinterpret_cast<const float4 *>(own), high = *reinterpret_cast<const float4 *>(own + 4);
                const float factor[OWN] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int j = 0; j < OWN_PIXELS; j++) {
#pragma unroll
                    for (int i = 0; i < OWN; i++) sum[j][i] += factor[i] * pixel[j * STEP + s];
                }
            }
        }
    }
    __syncthreads(); /* nobody reads weights or image any more */
#pragma unroll
    for (int j = 0; j < OWN_PIXELS; j++) { /* pixel j of each lane together: lanes meet all banks */
        float4 *to = reinterpret_cast<float4 *>(memory + (j * WARP + lane) * PITCH + warp * OWN);
        to[0] = make_float4(sum[j][0], sum[j][1], sum[j][2], sum[j][3]);
        to[1] = make_float4(sum[j][4], sum[j][5], sum[j][6], sum[j][7]);
    }
    __syncthreads();
    const int filter = first_filter + thread % (FILTERS / 4) * 4;
    if (filter >= p.filters) return;
    float4 bias = make_float4(0, 0, 0, 0);
    if (p.bias != nullptr)
        bias = make_float4(p.bias[filter], p.bias[filter + 1], p.bias[filter + 2], p.bias[filter + 3]);
#pragma unroll 4
    for (int slot = thread / (FILTERS / 4); slot < PIXELS; slot += THREADS / (FILTERS / 4)) {
        int row = first_row + slot % WARP / 8, column = first_column + slot % 8 * OWN_PIXELS + slot / WARP;
        if (row >= p.out_height || column >= p.out_width) continue;
        int64_t at = ((static_cast<int64_t>(n) * p.out_height + row) * p.out_width + column) * p.filters + filter;
        float4 four = *reinterpret_cast<const float4 *>(memory + slot * PITCH + filter - first_filter);
        float value[4] = {four.x + bias.x, four.y + bias.y, four.z + bias.z, four.w + bias.w};
        few_store(p, at, value, [&](float x) { return activate_often(p.activation, x); });
    }
}

/* ---- weights made ready ---- */

static int64_t padded_filters(const sdlf_operation *op)
{
    return (op->in[1].shape.dim[0] + FILTERS - 1) / FILTERS * FILTERS;
}

extern "C" int64_t cuda_few_exact_prepared(const sdlf_operation *op)
{
    return padded_filters(op) * op->in[1].shape.dim[1] * TAPS * 4;
}

/* A thread a number. */
static __global__ void few_last_prepare(const float *w, float *to, int filters, int depth, int64_t count)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t at = e / FILTERS % depth, filter = e / FILTERS / depth * FILTERS + e % FILTERS;
        to[e] = filter < filters ? w[filter * depth + at] : 0.0f;
    }
}

/* Waits until they are: the kernel that reads them does not. */
extern "C" sdlf_status conv2d_few_exact_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &w = op->in[1];
    int depth = static_cast<int>(w.shape.dim[1]) * TAPS;
    int64_t count = padded_filters(op) * depth;
    few_last_prepare<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
        data_of<float>(w), data_of<float>(op->prepared), static_cast<int>(w.shape.dim[0]), depth, count);
    sdlf_status status = cuda_check_launch("conv2d, few channels, weights made ready");
    if (status != SDLF_OK) return status;
    return cuda_check(cudaStreamSynchronize(calculator->stream), "conv2d, few channels, weights made ready");
}

/* ---- launching ---- */

template <int STEP>
static sdlf_status launch(const cuda_calculator *calculator, const few_last_problem &p, int64_t images)
{
    int64_t blocks = images * p.blocks_across * p.blocks_down * p.filter_blocks;
    int64_t bytes = few_last_sizes<STEP>::shared(p.channels) * 4;
    sdlf_status status = allow_shared(few_last<STEP>, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, few_last<STEP>, dim3(static_cast<unsigned>(blocks)), dim3(THREADS),
                      static_cast<int>(bytes), p);
    return cuda_check_launch("conv2d, few channels, channels last");
}

extern "C" sdlf_status conv2d_few_exact_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    few_last_problem p = few_last_problem_of<few_last_problem>(op, g);
    p.blocks_across = (p.out_width + ACROSS - 1) / ACROSS;
    p.blocks_down = (p.out_height + DOWN - 1) / DOWN;
    p.filter_blocks = (p.filters + FILTERS - 1) / FILTERS;
    return g.window.stride[0] == 1 ? launch<1>(calculator, p, g.batch) : launch<2>(calculator, p, g.batch);
}
