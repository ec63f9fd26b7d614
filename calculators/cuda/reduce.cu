/* reduce: y[o,i] = sum | mean | max | sum of squares | min | product over j of x[o,j,i]. Reads x once.
 *
 * Columns (inner >= 32): a block of 32 x 8 threads makes 32 neighbouring outputs i of one o, so that loads along i coalesce;
 * its 8 rows of threads take every 8th j. Lines (otherwise): a block of 256 threads makes one output. Partial sums are
 * double and meet in a fixed order: the bits of the result depend on the shape alone. */
#include "calculators/cuda/kernels.cuh"

enum { COLUMNS = 32, ROWS = 8, THREADS = 256 };

struct partial {
    double sum, largest;
};

/* What a reduction of nothing would be. A minimum is the largest of the negated. */
static __device__ partial start_of(sdlf_reduction function)
{
    return {function == SDLF_REDUCE_PRODUCT ? 1.0 : 0.0, -INFINITY};
}

static __device__ void take(partial &to, double value, sdlf_reduction function)
{
    if (function == SDLF_REDUCE_MIN) value = -value;
    if (function == SDLF_REDUCE_PRODUCT)
        to.sum *= value;
    else
        to.sum += function == SDLF_REDUCE_SUM_SQUARES ? value * value : value;
    if (value > to.largest || value != value) to.largest = value;
}

static __device__ void merge(partial &to, const partial &from, sdlf_reduction function)
{
    to.sum = function == SDLF_REDUCE_PRODUCT ? to.sum * from.sum : to.sum + from.sum;
    if (from.largest > to.largest || from.largest != from.largest) to.largest = from.largest;
}

static __device__ double finish(const partial &all, int64_t length, sdlf_reduction function)
{
    switch (function) {
    case SDLF_REDUCE_MEAN: return all.sum / static_cast<double>(length);
    case SDLF_REDUCE_MAX: return all.largest;
    case SDLF_REDUCE_MIN: return -all.largest;
    default: return all.sum;
    }
}

/* Tiles of 32 outputs are counted through all o: tile t is tile t % tiles of o = t / tiles. */
template <typename T>
static __global__ void reduce_columns(const T *x, T *y, int64_t outer, int64_t length, int64_t inner,
                                      sdlf_reduction function)
{
    __shared__ partial parts[ROWS][COLUMNS];
    int64_t tiles = (inner + COLUMNS - 1) / COLUMNS;
    for (int64_t tile = blockIdx.x; tile < outer * tiles; tile += gridDim.x) {
        int64_t o = tile / tiles, i = tile % tiles * COLUMNS + threadIdx.x;
        partial mine = start_of(function);
        for (int64_t j = threadIdx.y; i < inner && j < length; j += ROWS)
            take(mine, static_cast<double>(x[(o * length + j) * inner + i]), function);
        parts[threadIdx.y][threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.y == 0 && i < inner) {
            for (int row = 1; row < ROWS; row++) merge(mine, parts[row][threadIdx.x], function);
            y[o * inner + i] = static_cast<T>(finish(mine, length, function));
        }
        __syncthreads();
    }
}

template <typename T>
static __global__ void reduce_lines(const T *x, T *y, int64_t outputs, int64_t length, int64_t inner,
                                    sdlf_reduction function)
{
    __shared__ partial parts[THREADS];
    for (int64_t e = blockIdx.x; e < outputs; e += gridDim.x) {
        int64_t first = e / inner * length * inner + e % inner;
        partial mine = start_of(function);
        for (int64_t j = threadIdx.x; j < length; j += THREADS)
            take(mine, static_cast<double>(x[first + j * inner]), function);
        parts[threadIdx.x] = mine;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) merge(parts[threadIdx.x], parts[threadIdx.x + half], function);
            __syncthreads();
        }
        if (threadIdx.x == 0) y[e] = static_cast<T>(finish(parts[0], length, function));
        __syncthreads();
    }
}

extern "C" sdlf_status reduce_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int axis = op->reduce.axis;
    int64_t outer = sdlf_shape_span(x.shape, 0, axis), length = x.shape.dim[axis];
    int64_t inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    if (outer * inner == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        if (inner >= COLUMNS) {
            int64_t tiles = outer * ((inner + COLUMNS - 1) / COLUMNS);
            reduce_columns<T><<<cuda_blocks(calculator, tiles, 1), dim3(COLUMNS, ROWS), 0, calculator->stream>>>(
                data_of<T>(x), data_of<T>(y), outer, length, inner, op->reduce.function);
        } else {
            reduce_lines<T><<<cuda_blocks(calculator, outer * inner, 1), THREADS, 0, calculator->stream>>>(
                data_of<T>(x), data_of<T>(y), outer * inner, length, inner, op->reduce.function);
        }
    });
    return cuda_check_launch("reduce");
}
