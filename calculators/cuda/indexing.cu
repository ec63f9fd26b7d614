/* SPDX-License-Identifier: MIT */
/* gather and gather_backward; x is viewed as (outer, L, inner). gather: one thread per 16 bytes of y, or per element. */
#include "calculators/cuda/divider.cuh"

enum { THREADS = 256, WARP = 32 };

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

/* The element that index m selects, in [0, length); -1 if it is out of range. */
static __device__ int64_t target_of(const indices &index, int64_t m, int64_t length)
{
    int64_t target =
        index.wide ? static_cast<const int64_t *>(index.data)[m] : static_cast<const int32_t *>(index.data)[m];
    if (target < 0) target += length;
    return target >= 0 && target < length ? target : -1;
}

template <typename Bits, typename Index>
static __global__ void gather(const Bits *x, indices index, Bits *y, int64_t count, int64_t length,
                              divider<Index> inner, divider<Index> picked)
{
#pragma unroll 2
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        Index i, m, o = divide(divide(static_cast<Index>(e), inner, i), picked, m);
        int64_t from = target_of(index, m, length);
        y[e] = from < 0 ? Bits{} : x[(o * length + from) * inner.number + i];
    }
}

extern "C" sdlf_status gather_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int axis = op->index.axis;
    int64_t length = x.shape.dim[axis], inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    int64_t count = sdlf_tensor_count(&y);
    size_t size = sdlf_dtype_size(x.dtype);
    if (count == 0) return SDLF_OK;
    const indices index = indices_of(op->in[1]);
    auto launch = [&](auto zero) {
        using Bits = decltype(zero);
        with_narrow_index(count, [&](auto narrow) {
            using Index = decltype(narrow);
            gather<Bits, Index><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                data_of<Bits>(x), index, data_of<Bits>(y), count, length, divider<Index>(inner),
                divider<Index>(index.count));
        });
    };
    uintptr_t addresses = reinterpret_cast<uintptr_t>(x.data) | reinterpret_cast<uintptr_t>(y.data);
    if (inner * (int64_t)size % 16 == 0 && addresses % 16 == 0) { /* units of 16 bytes */
        count /= 16 / (int64_t)size;
        inner /= 16 / (int64_t)size;
        size = 16;
    }
    switch (size) {
    case 1: launch(uint8_t(0)); break;
    case 2: launch(uint16_t(0)); break;
    case 4: launch(uint32_t(0)); break;
    case 8: launch(uint64_t(0)); break;
    default: launch(make_uint4(0, 0, 0, 0)); break;
    }
    return cuda_check_launch("gather");
}

/* ---- gather_backward: a block owns ROWS adjacent l and some columns (o, i). It scans the indices in order, 256 at a time, compacts
 * those that select one of its l, in their order, and accumulates the corresponding rows of dy; a thread always has the same columns.
 * No atomics; deterministic. Every block reads all indices, from cache. ---- */

enum { ROWS = 32 };

struct scatter {
    indices index;
    int64_t length, inner, columns; /* columns: outer inner */
};

/* Compact the indices m0 ... that select [l0, l0 + rows), in order, into `kept` as (m - m0, l - l0); returns how many there are. */
static __device__ int keep_those(const scatter &s, int64_t m0, int64_t l0, int64_t rows, int2 *kept, int *counts)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t m = m0 + threadIdx.x, target = m < s.index.count ? target_of(s.index, m, s.length) : -1;
    bool mine = target >= l0 && target < l0 + rows;
    unsigned votes = __ballot_sync(0xffffffffu, mine);
    __syncthreads(); /* the previous ones have been used */
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < THREADS / WARP; w++) {
        before += w < warp ? counts[w] : 0;
        all += counts[w];
    }
    if (mine)
        kept[before + __popc(votes & ((1u << lane) - 1))] =
            make_int2(static_cast<int>(threadIdx.x), static_cast<int>(target - l0));
    __syncthreads();
    return all;
}

/* Grid: x over groups of l, y over groups of columns. */
template <typename T>
static __global__ void __launch_bounds__(THREADS) gather_backward(const T *dy, T *dx, scatter s, int64_t rows)
{
    __shared__ int2 kept[THREADS];
    __shared__ int counts[THREADS / WARP];
    int64_t l0 = blockIdx.x * rows, mine = min(rows, s.length - l0);
    int64_t first = static_cast<int64_t>(blockIdx.y) * THREADS + threadIdx.x,
            step = static_cast<int64_t>(gridDim.y) * THREADS;
    for (int64_t column = first; column < s.columns; column += step) {
        T *to = dx + (column / s.inner * s.length + l0) * s.inner + column % s.inner;
        for (int64_t l = 0; l < mine; l++) to[l * s.inner] = T(0);
    }
    for (int64_t m0 = 0; m0 < s.index.count; m0 += THREADS) {
        int count = keep_those(s, m0, l0, mine, kept, counts);
        for (int64_t column = first; count > 0 && column < s.columns; column += step) {
            int64_t o = column / s.inner, i = column % s.inner;
            T *to = dx + (o * s.length + l0) * s.inner + i;
            const T *from = dy + (o * s.index.count + m0) * s.inner + i;
            for (int k = 0; k < count; k++) to[kept[k].y * s.inner] += from[kept[k].x * s.inner];
        }
    }
}

extern "C" sdlf_status gather_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[0], &dx = op->out[0];
    int axis = op->index.axis;
    int64_t length = dx.shape.dim[axis], inner = sdlf_shape_span(dx.shape, axis + 1, dx.shape.rank);
    if (sdlf_tensor_count(&dx) == 0) return SDLF_OK;
    const scatter s = {indices_of(op->in[1]), length, inner, sdlf_shape_span(dx.shape, 0, axis) * inner};
    int64_t rows = length / (4 * (int64_t)calculator->multiprocessors);
    if (rows > ROWS) rows = ROWS;
    if (rows < 1) rows = 1;
    if (length / rows >= INT32_MAX) rows = length / INT32_MAX + 1;
    int64_t groups = (s.columns + THREADS - 1) / THREADS, blocks = (length + rows - 1) / rows;
    int64_t wanted = 8 * (int64_t)calculator->multiprocessors / blocks + 1;
    dim3 grid((unsigned)blocks, (unsigned)(groups < wanted ? groups : wanted < 65535 ? wanted : 65535));
    with_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        gather_backward<T><<<grid, THREADS, 0, calculator->stream>>>(data_of<T>(dy), data_of<T>(dx), s, rows);
    });
    return cuda_check_launch("gather_backward");
}
