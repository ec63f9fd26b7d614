/* resample and its gradient. A thread an element of the result, striding; what an output is made of is worked out by its thread,
 * in float64. Backward, a thread walks the outputs that its element can have a part in, in order. */
#include "calculators/cuda/kernels.cuh"
#include "calculators/resample.h"

enum { THREADS = 256 };

struct axis_sizes {
    int64_t length, outputs, inner;
};

template <typename T>
static __global__ void resample(const T *x, T *y, int64_t count, axis_sizes at, sdlf_resample_options options)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t i = e % at.inner, j = e / at.inner % at.outputs, o = e / at.inner / at.outputs;
        sdlf_resample_taps taps = sdlf_resample_at(&options, at.length, at.outputs, j);
        double sum = 0;
        for (int64_t k = 0; k < taps.count; k++) {
            int64_t l = sdlf_resample_index(&taps, at.length, k);
            sum += sdlf_resample_weight(&options, &taps, at.length, k) *
                   static_cast<double>(x[(o * at.length + l) * at.inner + i]);
        }
        y[e] = static_cast<T>(taps.outside ? static_cast<double>(options.outside) : sum);
    }
}

/* One input for each output, whatever its type. */
template <typename T>
static __global__ void resample_moves(const T *x, T *y, int64_t count, axis_sizes at, sdlf_resample_options options)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t i = e % at.inner, j = e / at.inner % at.outputs, o = e / at.inner / at.outputs;
        sdlf_resample_taps taps = sdlf_resample_at(&options, at.length, at.outputs, j);
        y[e] = x[(o * at.length + taps.first) * at.inner + i];
    }
}

/* Coordinates grow evenly with j: between which outputs do those lie that touch element l? All, where they do not grow. */
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
    if (l > 0 && low > 0) *first = static_cast<int64_t>(low); /* the first and the last stand for all beyond */
    if (l < at.length - 1 && high < static_cast<double>(*last)) *last = static_cast<int64_t>(high);
}

template <typename T>
static __global__ void resample_backward(const T *dy, T *dx, int64_t count, axis_sizes at,
                                         sdlf_resample_options options)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t i = e % at.inner, l = e / at.inner % at.length, o = e / at.inner / at.length, first, last;
        double sum = 0;
        outputs_around(options, at, l, &first, &last);
        for (int64_t j = first; j <= last; j++) {
            sdlf_resample_taps taps = sdlf_resample_at(&options, at.length, at.outputs, j);
            for (int64_t k = 0; k < taps.count && !taps.outside; k++) {
                if (sdlf_resample_index(&taps, at.length, k) != l) continue;
                sum += sdlf_resample_weight(&options, &taps, at.length, k) *
                       static_cast<double>(dy[(o * at.outputs + j) * at.inner + i]);
            }
        }
        dx[e] = static_cast<T>(sum);
    }
}

static axis_sizes sizes_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    int axis = op->resample.axis;
    return {x.shape.dim[axis], y.shape.dim[axis], sdlf_shape_span(x.shape, axis + 1, x.shape.rank)};
}

extern "C" sdlf_status resample_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    axis_sizes at = sizes_of(op, x, y);
    unsigned blocks = cuda_blocks(calculator, count, THREADS);
    bool weighs = op->resample.mode == SDLF_RESAMPLE_LINEAR || op->resample.mode == SDLF_RESAMPLE_CUBIC;
    if (weighs || op->resample.extrapolates) {
        with_float(x.dtype, [&](auto zero) {
            using T = decltype(zero);
            resample<T>
                <<<blocks, THREADS, 0, calculator->stream>>>(data_of<T>(x), data_of<T>(y), count, at, op->resample);
        });
        return cuda_check_launch("resample");
    }
    auto launch = [&](auto zero) {
        using T = decltype(zero);
        resample_moves<T>
            <<<blocks, THREADS, 0, calculator->stream>>>(data_of<T>(x), data_of<T>(y), count, at, op->resample);
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
        resample_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(dy), data_of<T>(dx), count, at, op->resample);
    });
    return cuda_check_launch("resample_backward");
}
