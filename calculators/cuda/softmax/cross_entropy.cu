/* SPDX-License-Identifier: MIT */
/* softmax_cross_entropy: probabilities, mean loss, metrics and, if requested, the gradient, in one pass over the logits (N,C); moves
 * 2 NC elements, or 3 NC with the gradient.
 *
 * Few classes and rows (a training step): one thread per row, in one launch: up to 256 rows are one block; more are blocks of 128,
 * of which the last to end adds the sums that each has written to the workspace. Otherwise one warp per row; blocks of 32 warps
 * process chunks of 64 rows, write one partial sum each to the workspace, and a final block of one warp adds those in order; the
 * block of a single chunk finishes by itself. Sums of losses are double. */
#include "calculators/cuda/softmax/cross_entropy.cuh"

enum { WARPS = 32, CHUNK = 64, FEW_CLASSES = 16, FEW_ROWS = 4096, BLOCK_ROWS = 128, ONE_BLOCK = 256 };

/* ---- one thread per row ---- */

/* One block. */
template <int MOST, typename T>
static __global__ void __launch_bounds__(ONE_BLOCK) cross_entropy_few(cross_entropy<T> e)
{
    __shared__ row_sums sums[WARPS];
    wait_and_launch_dependent_grids();
    row_sums mine = {};
    double3 before = threadIdx.x == 0 ? metrics_before(e) : make_double3(0, 0, 0);
    for (int64_t n = threadIdx.x; n < e.rows; n += blockDim.x) {
        add(mine, row_of_thread<MOST>(e, n));
    }
    mine = add_warp(mine);
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    mine = {};
    if (threadIdx.x < blockDim.x / WARP) mine = sums[threadIdx.x];
    if (blockDim.x > WARP) mine = add_warp(mine);
    if (threadIdx.x == 0) finish(e, mine, before);
}

/* Several blocks: each writes its sum to `partials`, and the last to do so adds them in order. */
template <int MOST, typename T>
static __global__ void __launch_bounds__(BLOCK_ROWS)
    cross_entropy_blocks(cross_entropy<T> e, row_sums *partials, unsigned *ticket)
{
    __shared__ row_sums sums[BLOCK_ROWS / WARP];
    wait_and_launch_dependent_grids();
    int64_t n = static_cast<int64_t>(blockIdx.x) * BLOCK_ROWS + threadIdx.x;
    row_sums mine = {};
    if (n < e.rows) mine = row_of_thread<MOST>(e, n);
    mine = add_warp(mine);
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < BLOCK_ROWS / WARP; warp++) {
            add(mine, sums[warp]);
        }
        partials[blockIdx.x] = mine;
    }
    if (!is_last_block(ticket, static_cast<int>(gridDim.x)) || threadIdx.x >= WARP) return;
    mine = {};
    for (unsigned b = threadIdx.x; b < gridDim.x; b += WARP) {
        const row_sums other = {__ldcg(&partials[b].loss), __ldcg(&partials[b].weighted),
                                __ldcg(reinterpret_cast<const long long *>(&partials[b].correct)),
                                __ldcg(reinterpret_cast<const long long *>(&partials[b].counted))};
        add(mine, other);
    }
    mine = add_warp(mine);
    if (threadIdx.x == 0) finish(e, mine, metrics_before(e));
}

/* ---- one warp per row ---- */

/* A NaN counts as the largest only in the first class, as in a sequential search. */
template <typename T> static __device__ row_sums row_of_warp(const cross_entropy<T> &e, int64_t n)
{
    int64_t lane = threadIdx.x % WARP, best = e.classes;
    const row_terms<T> row = terms_of(e, n);
    const T *x = e.logits + n * e.classes;
    T largest = -INFINITY;
    for (int64_t j = lane; j < e.classes; j += WARP) {
        if (x[j] > largest || (best == e.classes && !isnan(x[j]))) {
            largest = x[j];
            best = j;
        }
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(0xffffffffu, largest, step);
        int64_t at = __shfl_xor_sync(0xffffffffu, best, step);
        if (at < e.classes && (best == e.classes || other > largest || (other == largest && at < best))) {
            largest = other;
            best = at;
        }
    }
    if (isnan(x[0])) best = 0;
    T sum = 0;
    for (int64_t j = lane; j < e.classes; j += WARP) sum += exp(x[j] - largest);
    for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    T logarithm = log(sum);
    double loss = 0;
    for (int64_t j = lane; j < e.classes; j += WARP) loss += finish_element(e, row, n, j, x[j] - largest - logarithm);
    for (int step = WARP / 2; step > 0; step /= 2) loss += __shfl_xor_sync(0xffffffffu, loss, step);
    return close_row(e, row, loss, best);
}

template <typename T>
static __global__ void __launch_bounds__(WARP *WARPS) cross_entropy_chunks(cross_entropy<T> e, row_sums *partials)
{
    __shared__ row_sums sums[CHUNK];
    int64_t first = static_cast<int64_t>(blockIdx.x) * CHUNK;
    for (int64_t r = threadIdx.x / WARP; r < CHUNK && first + r < e.rows; r += WARPS) {
        row_sums mine = row_of_warp(e, first + r);
        if (threadIdx.x % WARP == 0) sums[r] = mine;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    row_sums all = {};
    for (int64_t r = 0; r < CHUNK && first + r < e.rows; r++) {
        add(all, sums[r]);
    }
    if (gridDim.x == 1)
        finish(e, all, metrics_before(e));
    else
        partials[blockIdx.x] = all;
}

template <typename T>
static __global__ void cross_entropy_finish(cross_entropy<T> e, const row_sums *partials, int64_t blocks)
{
    row_sums all = {};
    for (int64_t b = threadIdx.x; b < blocks; b += WARP) {
        add(all, partials[b]);
    }
    all = add_warp(all);
    if (threadIdx.x == 0) finish(e, all, metrics_before(e));
}

/* Only dlogits, from p; one thread per element. */
template <typename T> static __global__ void cross_entropy_backward(cross_entropy<T> e)
{
    for (int64_t i = grid_first(); i < e.rows * e.classes; i += grid_step()) {
        int64_t n = i / e.classes;
        const row_terms<T> row = terms_of(e, n);
        T target = i % e.classes == row.label ? e.most_rounded : e.share_rounded;
        e.dlogits[i] = row.weight != T(0) ? (e.p[i] - target) * row.scale : T(0);
    }
}

static bool is_small(const sdlf_operation *op)
{
    return op->in[0].shape.dim[0] <= FEW_ROWS && op->in[0].shape.dim[1] <= FEW_CLASSES;
}

static int64_t chunks_of(const sdlf_operation *op)
{
    return (op->in[0].shape.dim[0] + CHUNK - 1) / CHUNK;
}

/* The number of blocks for small operations. */
static int64_t blocks_of(const sdlf_operation *op)
{
    int64_t rows = op->in[0].shape.dim[0];
    return rows <= ONE_BLOCK ? 1 : (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

template <int MOST, typename T>
static void launch_small(const cuda_calculator *calculator, const cross_entropy<T> &e, row_sums *partials,
                         unsigned blocks)
{
    unsigned threads = (unsigned)((e.rows + WARP - 1) / WARP * WARP);
    if (blocks == 1)
        launch_overlapped(calculator, cross_entropy_few<MOST, T>, 1, threads, 0, e);
    else
        launch_overlapped(calculator, cross_entropy_blocks<MOST, T>, blocks, BLOCK_ROWS, 0, e, partials,
                          calculator->tickets);
}

extern "C" int64_t softmax_cross_entropy_forward_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    int64_t chunks = is_small(op) ? blocks_of(op) : chunks_of(op);
    return chunks == 1 ? 0 : chunks * static_cast<int64_t>(sizeof(row_sums));
}

extern "C" sdlf_status softmax_cross_entropy_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cudaStream_t stream = calculator->stream;
    row_sums *partials = static_cast<row_sums *>(op->workspace.data);
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        cross_entropy<T> e = {.logits = data_of<T>(op->in[0]),
                              .dloss = optional<T>(op->in[2]),
                              .weights = optional<T>(op->in[3]),
                              .labels = data_of<int32_t>(op->in[1]),
                              .p = data_of<T>(op->out[0]),
                              .loss = data_of<T>(op->out[1]),
                              .dlogits = optional<T>(op->out[3]),
                              .metrics = optional<double>(op->out[2]),
                              .rows = op->in[0].shape.dim[0],
                              .classes = op->in[0].shape.dim[1]};
        set_targets(e, op->cross_entropy.smoothing);
        if (is_small(op)) {
            unsigned blocks = (unsigned)blocks_of(op);
            if (e.classes <= 10)
                launch_small<10, T>(calculator, e, partials, blocks);
            else
                launch_small<FEW_CLASSES, T>(calculator, e, partials, blocks);
            return;
        }
        int64_t chunks = chunks_of(op);
        cross_entropy_chunks<T><<<(unsigned)chunks, WARPS * WARP, 0, stream>>>(e, partials);
        if (chunks > 1) cross_entropy_finish<T><<<1, WARP, 0, stream>>>(e, partials, chunks);
    });
    return cuda_check_launch("softmax_cross_entropy_forward");
}

extern "C" sdlf_status softmax_cross_entropy_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &p = op->in[0];
    with_float(p.dtype, [&](auto zero) {
        using T = decltype(zero);
        cross_entropy<T> e = {.dloss = data_of<T>(op->in[2]),
                              .weights = optional<T>(op->in[3]),
                              .labels = data_of<int32_t>(op->in[1]),
                              .p = data_of<T>(p),
                              .dlogits = data_of<T>(op->out[0]),
                              .rows = p.shape.dim[0],
                              .classes = p.shape.dim[1]};
        set_targets(e, op->cross_entropy.smoothing);
        cross_entropy_backward<T><<<cuda_blocks(calculator, e.rows * e.classes, 256), 256, 0, calculator->stream>>>(e);
    });
    return cuda_check_launch("softmax_cross_entropy_backward");
}
