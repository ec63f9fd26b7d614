/* arg_reduce, gather, gather_backward, top_k: x seen as (outer, L, inner).
 *
 * arg_reduce: where lines are long and contiguous a warp takes one, else a thread; equal elements are settled by their index, so
 * that the order of comparing does not matter. gather: a thread an element of y. gather_backward: a thread an element of
 * dx, which walks all indices in order and adds what points to it: no atomics, the same bits every time. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, WARP = 32, LONG = 64 };

/* ---- arg_reduce ---- */

template <typename T> struct candidate {
    T value;
    int64_t index; /* -1: none */
};

/* Is b before a? */
template <typename T>
static __device__ bool beats(const candidate<T> &b, const candidate<T> &a, const sdlf_arg_reduce_options &options)
{
    if (b.index < 0 || a.index < 0) return a.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return b_nan;
    if (!a_nan && a.value != b.value) return options.smallest ? b.value < a.value : b.value > a.value;
    return options.last ? b.index > a.index : b.index < a.index;
}

template <typename T>
static __global__ void arg_reduce_threads(const T *x, int64_t *y, int64_t count, int64_t length, int64_t inner,
                                          sdlf_arg_reduce_options options)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        const T *line = x + e / inner * length * inner + e % inner;
        candidate<T> best = {line[0], 0};
        for (int64_t j = 1; j < length; j++) {
            candidate<T> next = {line[j * inner], j};
            if (beats(next, best, options)) best = next;
        }
        y[e] = best.index;
    }
}

template <typename T>
static __global__ void arg_reduce_warps(const T *x, int64_t *y, int64_t count, int64_t length,
                                        sdlf_arg_reduce_options options)
{
    int lane = threadIdx.x % WARP;
    int64_t warps = grid_step() / WARP;
    for (int64_t e = grid_first() / WARP; e < count; e += warps) {
        candidate<T> best = {T(0), -1};
        for (int64_t j = lane; j < length; j += WARP) {
            candidate<T> next = {x[e * length + j], j};
            if (beats(next, best, options)) best = next;
        }
        for (int half = WARP / 2; half > 0; half /= 2) {
            candidate<T> other;
            other.value = __shfl_xor_sync(0xffffffffu, best.value, half);
            other.index = __shfl_xor_sync(0xffffffffu, static_cast<long long>(best.index), half);
            if (beats(other, best, options)) best = other;
        }
        if (lane == 0) y[e] = best.index;
    }
}

extern "C" sdlf_status arg_reduce_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    int axis = op->arg_reduce.axis;
    int64_t length = x.shape.dim[axis], inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        if (inner == 1 && length >= LONG)
            arg_reduce_warps<T><<<cuda_blocks(calculator, count * WARP, THREADS), THREADS, 0, calculator->stream>>>(
                data_of<T>(x), data_of<int64_t>(op->out[0]), count, length, op->arg_reduce);
        else
            arg_reduce_threads<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                data_of<T>(x), data_of<int64_t>(op->out[0]), count, length, inner, op->arg_reduce);
    });
    return cuda_check_launch("arg_reduce");
}

/* ---- gather ---- */

struct indices {
    const void *data;
    bool wide; /* int64 */
    int64_t count;
};

static indices indices_of(const sdlf_tensor &index)
{
    return {index.data, index.dtype == SDLF_INT64, sdlf_tensor_count(&index)};
}

/* Where index m points, in [0, length); -1: nowhere. */
static __device__ int64_t target_of(const indices &index, int64_t m, int64_t length)
{
    int64_t target =
        index.wide ? static_cast<const int64_t *>(index.data)[m] : static_cast<const int32_t *>(index.data)[m];
    if (target < 0) target += length;
    return target >= 0 && target < length ? target : -1;
}

template <typename T>
static __global__ void gather(const T *x, indices index, T *y, int64_t count, int64_t length, int64_t inner)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t i = e % inner, m = e / inner % index.count, o = e / inner / index.count;
        int64_t from = target_of(index, m, length);
        y[e] = from < 0 ? T(0) : x[(o * length + from) * inner + i];
    }
}

extern "C" sdlf_status gather_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int axis = op->index.axis;
    int64_t length = x.shape.dim[axis], inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    auto launch = [&](auto zero) {
        using T = decltype(zero);
        gather<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(x), indices_of(op->in[1]), data_of<T>(y), count, length, inner);
    };
    switch (sdlf_dtype_size(x.dtype)) {
    case 1: launch(uint8_t(0)); break;
    case 2: launch(uint16_t(0)); break;
    case 4: launch(uint32_t(0)); break;
    default: launch(uint64_t(0)); break;
    }
    return cuda_check_launch("gather");
}

template <typename T>
static __global__ void gather_backward(const T *dy, indices index, T *dx, int64_t count, int64_t length, int64_t inner)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t i = e % inner, l = e / inner % length, o = e / inner / length;
        T sum = T(0);
        for (int64_t m = 0; m < index.count; m++) {
            if (target_of(index, m, length) == l) sum += dy[(o * index.count + m) * inner + i];
        }
        dx[e] = sum;
    }
}

extern "C" sdlf_status gather_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[0], &dx = op->out[0];
    int axis = op->index.axis;
    int64_t length = dx.shape.dim[axis], inner = sdlf_shape_span(dx.shape, axis + 1, dx.shape.rank);
    int64_t count = sdlf_tensor_count(&dx);
    if (count == 0) return SDLF_OK;
    with_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        gather_backward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(dy), indices_of(op->in[1]), data_of<T>(dx), count, length, inner);
    });
    return cuda_check_launch("gather_backward");
}

/* ---- top_k: a warp a line, rank after rank the first of those that stand behind the one before ---- */

template <typename T>
static __global__ void top_k(const T *x, T *y, int64_t *index, int64_t lines, int64_t length, int64_t k, int64_t inner,
                             sdlf_arg_reduce_options options)
{
    int lane = threadIdx.x % WARP;
    int64_t warps = grid_step() / WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += warps) {
        const T *from = x + line / inner * length * inner + line % inner;
        int64_t to = line / inner * k * inner + line % inner;
        candidate<T> last = {T(0), -1};
        for (int64_t rank = 0; rank < k; rank++, to += inner) {
            candidate<T> best = {T(0), -1};
            for (int64_t j = lane; j < length; j += WARP) {
                candidate<T> next = {from[j * inner], j};
                if (last.index >= 0 && !beats(last, next, options)) continue;
                if (beats(next, best, options)) best = next;
            }
            for (int half = WARP / 2; half > 0; half /= 2) {
                candidate<T> other;
                other.value = __shfl_xor_sync(0xffffffffu, best.value, half);
                other.index = __shfl_xor_sync(0xffffffffu, static_cast<long long>(best.index), half);
                if (beats(other, best, options)) best = other;
            }
            last = best;
            if (lane == 0) {
                y[to] = best.value;
                index[to] = best.index;
            }
        }
    }
}

extern "C" sdlf_status top_k_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int axis = op->top_k.axis;
    int64_t length = x.shape.dim[axis], k = y.shape.dim[axis];
    int64_t inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    int64_t lines = sdlf_shape_span(x.shape, 0, axis) * inner;
    if (lines * k == 0) return SDLF_OK;
    sdlf_arg_reduce_options order = {};
    order.smallest = op->top_k.smallest;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        top_k<T><<<cuda_blocks(calculator, lines * WARP, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(x), data_of<T>(y), data_of<int64_t>(op->out[1]), lines, length, k, inner, order);
    });
    return cuda_check_launch("top_k");
}
