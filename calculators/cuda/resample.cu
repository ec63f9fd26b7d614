/* SPDX-License-Identifier: MIT */
/* resample and its gradient. The taps of an output depend only on its position along the axis; they are computed in float64 by the functions
 * of framework/operations/resample_taps.h. A thread therefore keeps one position of the plane (axis, inner) and iterates over the planes of
 * the outer axes, PLANES at a time, with the weights in registers if there are at most TAPS (forward) or SHARES (backward). With more
 * (antialiasing, strong upscaling) it recomputes them for every element. Adjacent threads access adjacent elements. In the backward pass, a
 * thread visits, in order, the outputs that may read its element. */
#include "calculators/cuda/divider.cuh"
#include "framework/operations/resample_taps.h"

enum {
    THREADS = 256,
    TAPS = 4,
    SHARES = 12,
    PLANES = 4 /* processed at once by a thread: all loads first, then the stores */
};

struct axis_sizes {
    int64_t outer, length, outputs, inner;
};

/* Positions of a plane along x, planes along y: a block has as many threads along x as a plane can use. */
struct cover {
    dim3 grid, block;
};

template <typename Kernel>
static cover cover_of(const cuda_calculator *calculator, Kernel *kernel, int64_t plane, int64_t outer)
{
    int fit =
        0; /* resident blocks per multiprocessor; the grid is no larger than one wave, so that blocks keep their weights */
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, THREADS, 0) != cudaSuccess || fit < 1) fit = 1;
    unsigned wide = 1;
    while (wide < THREADS && wide < plane) wide *= 2;
    unsigned high = THREADS / wide;
    int64_t across = (plane + wide - 1) / wide, down = (outer + high - 1) / high;
    int64_t most = fit * (int64_t)calculator->multiprocessors / across;
    if (down > most) down = most > 0 ? most : 1;
    if (down > 65535) down = 65535;
    return {dim3((unsigned)across, (unsigned)down), dim3(wide, high)};
}

/* The indices of the next planes o, o + step, ...; the last plane is repeated past the end. */
static __device__ __forceinline__ void next_planes(int64_t (&plane)[PLANES], int64_t o, int64_t step, int64_t outer)
{
#pragma unroll
    for (int p = 0; p < PLANES; p++) plane[p] = o + p * step < outer ? o + p * step : outer - 1;
}

static __device__ __forceinline__ int64_t first_plane()
{
    return static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    resample(const T *x, T *y, axis_sizes at, sdlf_resample_options options)
{
    int64_t place = grid_first(), plane = at.outputs * at.inner, input = at.length * at.inner;
    int64_t j = place / at.inner, i = place % at.inner, step = static_cast<int64_t>(gridDim.y) * blockDim.y;
    if (place >= plane) return;
    sdlf_resample_taps taps = sdlf_resample_at(&options, at.length, at.outputs, j);
    int64_t from[TAPS] = {};
    double weight[TAPS] = {};
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        if (k >= taps.count) break;
        from[k] = sdlf_resample_index(&taps, at.length, k) * at.inner + i;
        weight[k] = sdlf_resample_weight(&options, &taps, at.length, k);
    }
    for (int64_t o = first_plane(); o < at.outer; o += PLANES * step) {
        int64_t of[PLANES];
        double sum[PLANES] = {};
        next_planes(of, o, step, at.outer);
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            if (k >= taps.count) break;
#pragma unroll
            for (int p = 0; p < PLANES; p++) sum[p] += weight[k] * static_cast<double>(x[of[p] * input + from[k]]);
        }
        for (int64_t k = TAPS; k < taps.count; k++) {
            double share = sdlf_resample_weight(&options, &taps, at.length, k);
            int64_t place_of = sdlf_resample_index(&taps, at.length, k) * at.inner + i;
#pragma unroll
            for (int p = 0; p < PLANES; p++) sum[p] += share * static_cast<double>(x[of[p] * input + place_of]);
        }
#pragma unroll
        for (int p = 0; p < PLANES; p++) {
            if (o + p * step < at.outer)
                y[of[p] * plane + place] = static_cast<T>(taps.outside ? static_cast<double>(options.outside) : sum[p]);
        }
    }
}

/* One input per output, for any element type (moved as raw bits). */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    resample_moves(const T *x, T *y, axis_sizes at, sdlf_resample_options options)
{
    int64_t place = grid_first(), plane = at.outputs * at.inner, input = at.length * at.inner;
    int64_t step = static_cast<int64_t>(gridDim.y) * blockDim.y;
    if (place >= plane) return;
    int64_t from =
        sdlf_resample_at(&options, at.length, at.outputs, place / at.inner).first * at.inner + place % at.inner;
    for (int64_t o = first_plane(); o < at.outer; o += PLANES * step) {
        int64_t of[PLANES];
        T value[PLANES];
        next_planes(of, o, step, at.outer);
#pragma unroll
        for (int p = 0; p < PLANES; p++) value[p] = x[of[p] * input + from];
#pragma unroll
        for (int p = 0; p < PLANES; p++) {
            if (o + p * step < at.outer) y[of[p] * plane + place] = value[p];
        }
    }
}

/* The range of outputs that may read element l, as source coordinates grow linearly with j; all outputs if they do not grow. */
static __device__ void outputs_around(const sdlf_resample_options &options, const axis_sizes &at, int64_t l,
                                      int64_t *first, int64_t *last)
{
    *first = 0;
    *last = at.outputs - 1;
    if (options.mode > SDLF_RESAMPLE_CUBIC || at.outputs < 2) return;
    double start = sdlf_resample_coordinate(&options, at.length, at.outputs, 0);
    double step = sdlf_resample_coordinate(&options, at.length, at.outputs, 1) - start;
    double reach = 3 + (options.antialias && options.scale < 1 ? 2 / options.scale : 0);
    if (!(step > 1e-12)) return;
    double low = floor((static_cast<double>(l) - reach - start) / step);
    double high = ceil((static_cast<double>(l) + reach - start) / step);
    if (l > 0 && low > 0)
        *first = static_cast<int64_t>(low); /* the first and last elements also serve all outputs beyond the border */
    if (l < at.length - 1 && high < static_cast<double>(*last)) *last = static_cast<int64_t>(high);
}

/* Call use(j, weight) for each tap through which an output j reads element l, in order. */
template <typename Use>
static __device__ __forceinline__ void for_shares(const sdlf_resample_options &options, const axis_sizes &at, int64_t l,
                                                  Use use)
{
    int64_t first, last;
    outputs_around(options, at, l, &first, &last);
    for (int64_t j = first; j <= last; j++) {
        sdlf_resample_taps taps = sdlf_resample_at(&options, at.length, at.outputs, j);
        for (int64_t k = 0; k < taps.count && !taps.outside; k++) {
            if (sdlf_resample_index(&taps, at.length, k) == l)
                use(j, sdlf_resample_weight(&options, &taps, at.length, k));
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    resample_backward(const T *dy, T *dx, axis_sizes at, sdlf_resample_options options)
{
    int64_t place = grid_first(), plane = at.length * at.inner, output = at.outputs * at.inner;
    int64_t l = place / at.inner, i = place % at.inner, step = static_cast<int64_t>(gridDim.y) * blockDim.y;
    if (place >= plane) return;
    int64_t from[SHARES] = {};
    double weight[SHARES] = {};
    int count = 0;
    for_shares(options, at, l, [&](int64_t j, double w) {
#pragma unroll
        for (int k = 0; k < SHARES; k++) { /* indexed statically, so that both arrays stay in registers */
            if (k == count) {
                from[k] = j * at.inner + i;
                weight[k] = w;
            }
        }
        count++;
    });
    for (int64_t o = first_plane(); o < at.outer; o += PLANES * step) {
        int64_t of[PLANES];
        double sum[PLANES] = {};
        next_planes(of, o, step, at.outer);
        if (count <= SHARES) {
#pragma unroll
            for (int k = 0; k < SHARES; k++) {
                if (k >= count) break;
#pragma unroll
                for (int p = 0; p < PLANES; p++)
                    sum[p] += weight[k] * static_cast<double>(dy[of[p] * output + from[k]]);
            }
        } else {
            for_shares(options, at, l, [&](int64_t j, double w) {
#pragma unroll
                for (int p = 0; p < PLANES; p++)
                    sum[p] += w * static_cast<double>(dy[of[p] * output + j * at.inner + i]);
            });
        }
#pragma unroll
        for (int p = 0; p < PLANES; p++) {
            if (o + p * step < at.outer) dx[of[p] * plane + place] = static_cast<T>(sum[p]);
        }
    }
}

static axis_sizes sizes_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    int axis = op->resample.axis;
    return {sdlf_shape_span(x.shape, 0, axis), x.shape.dim[axis], y.shape.dim[axis],
            sdlf_shape_span(x.shape, axis + 1, x.shape.rank)};
}

extern "C" sdlf_status resample_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    axis_sizes at = sizes_of(op, x, y);
    bool weighs = op->resample.mode == SDLF_RESAMPLE_LINEAR || op->resample.mode == SDLF_RESAMPLE_CUBIC;
    if (weighs || op->resample.extrapolates) {
        with_float(x.dtype, [&](auto zero) {
            using T = decltype(zero);
            const cover over = cover_of(calculator, resample<T>, at.outputs * at.inner, at.outer);
            resample<T>
                <<<over.grid, over.block, 0, calculator->stream>>>(data_of<T>(x), data_of<T>(y), at, op->resample);
        });
        return cuda_check_launch("resample");
    }
    auto launch = [&](auto zero) {
        using T = decltype(zero);
        const cover over = cover_of(calculator, resample_moves<T>, at.outputs * at.inner, at.outer);
        resample_moves<T>
            <<<over.grid, over.block, 0, calculator->stream>>>(data_of<T>(x), data_of<T>(y), at, op->resample);
    };
    switch (sdlf_dtype_size(x.dtype)) {
    case 1: launch(uint8_t(0)); break;
    case 2: launch(uint16_t(0)); break;
    case 4: launch(uint32_t(0)); break;
    default: launch(uint64_t(0)); break;
    }
    return cuda_check_launch("resample");
}

extern "C" sdlf_status resample_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[0], &dx = op->out[0];
    int64_t count = sdlf_tensor_count(&dx);
    if (count == 0) return SDLF_OK;
    axis_sizes at = sizes_of(op, dx, dy);
    with_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        const cover over = cover_of(calculator, resample_backward<T>, at.length * at.inner, at.outer);
        resample_backward<T>
            <<<over.grid, over.block, 0, calculator->stream>>>(data_of<T>(dy), data_of<T>(dx), at, op->resample);
    });
    return cuda_check_launch("resample_backward");
}
