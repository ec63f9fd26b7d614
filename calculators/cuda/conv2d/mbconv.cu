/* SPDX-License-Identifier: MIT */
/* Fused MBConv: launches, and prepacking the weights. The kernel is in conv2d/mbconv.cuh. */
#include "calculators/cuda/conv2d/mbconv.cuh"

enum { PREPARE_THREADS = 256 };

static divider<int32_t> by(int count, int unit)
{
    return divider<int32_t>((count + unit - 1) / unit);
}

template <typename F, int STRIDE> static sdlf_status launch(const cuda_calculator *calculator, const mbconv_problem &g)
{
    auto kernel = inverted_residual<F, STRIDE>;
    const cuda_mbconv &p = g.p;
    const int64_t shared = shared_alone(calculator, static_cast<int64_t>(p.images) * p.bands * p.blocks, p.shared);
    sdlf_status status = allow_shared(kernel, shared);
    if (status == SDLF_OK) status = allow_cluster(kernel, p.blocks);
    if (status != SDLF_OK) return status;
    dim3 cluster(static_cast<unsigned>(p.blocks));
    dim3 blocks(cluster.x, static_cast<unsigned>(p.bands), static_cast<unsigned>(p.images));
    launch_cluster(calculator, kernel, blocks, dim3(static_cast<unsigned>(p.threads)), static_cast<int>(shared),
                   cluster, g);
    return cuda_check_launch("conv2d, inverted residual");
}

template <typename F> static sdlf_status launch_stride(const cuda_calculator *calculator, const mbconv_problem &g)
{
    return g.p.stride == 1 ? launch<F, 1>(calculator, g) : launch<F, 2>(calculator, g);
}

extern "C" sdlf_status cuda_mbconv_run(sdlf_calculator *base, const cuda_mbconv *problem)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    mbconv_problem g;
    g.p = *problem;
    g.width = by(g.p.width, 1);
    g.strips = by(g.p.out_width, g.p.strip);
    g.tiles_in = by(g.p.tiles_in, 1);
    g.groups_in = by(g.p.tiles_in, MBCONV_ACROSS);
    g.groups_out = by(g.p.tiles_out, MBCONV_ACROSS);
    g.quads = by(g.p.rows * g.p.out_width, 4);
    g.pairs = by(g.p.slice, 2);
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_stride<mbconv_fp16>(calculator, g);
    case SDLF_MATH_BF16: return launch_stride<mbconv_bf16>(calculator, g);
    default: return launch_stride<mbconv_tf32>(calculator, g);
    }
}

/* ---- weights ---- */

struct mbconv_weights {
    const float *w, *own, *last, *bias, *own_bias, *last_bias; /* biases may be NULL */
};

/* Word `at` of the A operands of a matrix (rows, columns) from `row`, `column` on, in tiles of 16 rows by one k-step:
 * lane 4 g + t has rows g and g + 8 of the t-th slot, half a slot a word. */
template <typename F>
static __device__ __forceinline__ uint32_t operands_at(const float *w, int rows, int columns, int row, int column,
                                                       int steps, int at)
{
    constexpr int HALF = F::SLOT / 2;
    const int word = at % 4, lane = at / 4 % MBCONV_WARP, step = at / 128 % steps;
    const int own = row + at / 128 / steps * 16 + lane / 4 + 8 * (word & 1);
    const int first = column + step * F::DEEP + lane % 4 * F::SLOT + word / 2 * HALF;
    float value[F::SLOT] = {};
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        if (own < rows && first + i < columns) value[i] = w[static_cast<int64_t>(own) * columns + first + i];
    }
    return F::slot(value).x;
}

/* One thread a word. */
template <typename F> static __global__ void make_ready(cuda_mbconv p, mbconv_weights from, uint32_t *to)
{
    constexpr int TAPS = MBCONV_SIDE * MBCONV_SIDE;
    const int words = p.chunk / 4, expanded = p.slice / 16 * p.deep_in * (MBCONV_TILE / 4);
    const int projected = p.filter_tiles * p.deep_out * (MBCONV_TILE / 4);
    for (int64_t e = grid_first(); e < static_cast<int64_t>(p.blocks) * words; e += grid_step()) {
        const int slice = static_cast<int>(e / words) * p.slice;
        int at = static_cast<int>(e % words);
        if (at < expanded) {
            to[e] = operands_at<F>(from.w, p.middle, p.channels, slice, 0, p.deep_in, at);
            continue;
        }
        at -= expanded;
        const int line = at / p.slice,
                  channel = slice + at % p.slice; /* line: bias, 9 taps, bias of a slice's channels */
        if (line < TAPS + 2) {
            const float *bias = line == 0 ? from.bias : from.own_bias;
            float value = 0;
            if (channel < p.middle && line > 0 && line <= TAPS)
                value = from.own[channel * TAPS + line - 1];
            else if (channel < p.middle && bias != nullptr)
                value = bias[channel];
            to[e] = __float_as_uint(value);
            continue;
        }
        at -= (TAPS + 2) * p.slice;
        if (at < projected) {
            to[e] = operands_at<F>(from.last, p.filters, p.middle, 0, slice, p.deep_out, at);
            continue;
        }
        at -= projected;
        to[e] = at < p.filters && from.last_bias != nullptr ? __float_as_uint(from.last_bias[at]) : 0;
    }
}

extern "C" sdlf_status cuda_mbconv_prepare(sdlf_calculator *base, const cuda_mbconv *problem, const sdlf_operation *op,
                                           void *to)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const mbconv_weights from = {optional<float>(op->in[3]), data_of<float>(op->in[1]),  data_of<float>(op->in[2]),
                                 optional<float>(op->in[4]), optional<float>(op->in[5]), optional<float>(op->in[6])};
    auto kernel = calculator->math == SDLF_MATH_FP16   ? make_ready<mbconv_fp16>
                  : calculator->math == SDLF_MATH_BF16 ? make_ready<mbconv_bf16>
                                                       : make_ready<mbconv_tf32>;
    int64_t count = static_cast<int64_t>(problem->blocks) * (problem->chunk / 4);
    kernel<<<cuda_blocks(calculator, count, PREPARE_THREADS), PREPARE_THREADS, 0, calculator->stream>>>(
        *problem, from, static_cast<uint32_t *>(to));
    return cuda_check_launch("conv2d, inverted residual, weights");
}
