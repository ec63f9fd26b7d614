/* Rows of spmm_csr that are cut (spmm/spmm.cuh): a block adds up the parts of one after the other, and finishes the row. The block's threads
 * are STRANDS times the columns (a power of two, up to 32); strand i adds parts i, i + STRANDS, ..., and the strands are added
 * in order through shared memory. */
#include "calculators/cuda/spmm/spmm.cuh"

enum { THREADS = 128, BLOCKS = 16 /* a multiprocessor */, BATCH = 16 };

/* log_softmax of a row of y, by a warp; each lane reads what it wrote. */
template <typename T> static __device__ void log_softmax_written(T *y, int width)
{
    const int lane = threadIdx.x % SPMM_WARP;
    T largest = -INFINITY, sum = 0;
    for (int j = lane; j < width; j += SPMM_WARP) largest = y[j] > largest ? y[j] : largest;
    largest = max_of_group<T, SPMM_WARP>(largest);
    for (int j = lane; j < width; j += SPMM_WARP) sum += exp(y[j] - largest);
    const T logarithm = log(sum_of_group<T, SPMM_WARP>(sum));
    for (int j = lane; j < width; j += SPMM_WARP) y[j] = (y[j] - largest) - logarithm;
}

/* The same where a lane holds its number, if that is `valid`. */
template <typename T> static __device__ T log_softmax_held(T value, bool valid)
{
    const T largest = max_of_group<T, SPMM_WARP>(valid ? value : -INFINITY);
    const T sum = sum_of_group<T, SPMM_WARP>(valid ? exp(value - largest) : T(0));
    return (value - largest) - log(sum);
}

template <typename T> static __device__ void add_cut(const spmm_csr &s, const spmm_cut &cut, int across, T *sums)
{
    const int strands = THREADS / across, strand = threadIdx.x / across;
    const T *parts = static_cast<const T *>(s.parts) + cut.part * s.width;
    T *y = static_cast<T *>(s.y) + static_cast<int64_t>(cut.row) * s.width;
    for (int j0 = 0; j0 < s.width; j0 += across) {
        const int j = j0 + threadIdx.x % across, last = j < s.width ? cut.count : 0;
        T sum = 0;
        for (int i = strand; i < last; i += BATCH * strands) {
            T part[BATCH];
#pragma unroll
            for (int u = 0; u < BATCH; u++) {
                const int64_t at = i + u * strands;
                part[u] = at < last ? parts[at * s.width + j] : T(0);
            }
#pragma unroll
            for (int u = 0; u < BATCH; u++) sum += part[u];
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < SPMM_WARP) {
            const int most = cut.count < strands ? cut.count : strands;
            for (int i = 1; strand == 0 && i < most; i++) sum += sums[i * across + threadIdx.x];
            sum = spmm_finish<T, true>(s, sum, j < s.width ? j : 0);
            const bool mine = strand == 0 && j < s.width;
            if (s.log_softmax && s.width <= across) sum = log_softmax_held(sum, mine);
            if (mine) y[j] = sum;
        }
        __syncthreads();
    }
    if (s.log_softmax && s.width > across && threadIdx.x < SPMM_WARP) log_softmax_written(y, s.width);
}

template <typename T> static __global__ void __launch_bounds__(THREADS) add_cuts(const __grid_constant__ spmm_csr s)
{
    __shared__ T sums[THREADS];
    if (!s.ready) await_kernels();
    const int across = s.width <= 4    ? 4
                       : s.width <= 8  ? 8
                       : s.width <= 16 ? 16
                                       : SPMM_WARP,
              last = s.stream.counts->cuts;
    int i = static_cast<int>(blockIdx.x);
    if (i > 0 && i >= last) return; /* block 0 waits in any case */
    spmm_cut cut = i < last ? s.stream.cuts[i] : spmm_cut{};
    if (s.ready) await_kernels();
    while (i < last) {
        add_cut(s, cut, across, sums);
        i += static_cast<int>(gridDim.x);
        if (i < last) cut = s.stream.cuts[i];
    }
}

void spmm_add_cuts(const cuda_calculator *calculator, const spmm_csr *s, sdlf_dtype dtype)
{
    const int64_t most = static_cast<int64_t>(calculator->multiprocessors) * BLOCKS;
    const unsigned blocks = static_cast<unsigned>(s->stream.cut_most < most ? s->stream.cut_most : most);
    if (blocks == 0) return; /* there are too few elements for a row that is cut */
    with_float(dtype,
               [&](auto zero) { launch_overlapped(calculator, add_cuts<decltype(zero)>, blocks, THREADS, 0, *s); });
}
