/* softmax_cross_entropy: probabilities, mean loss and metrics in one pass over the logits (N,C); moves 2 NC elements.
 *
 * A warp a row; blocks of 8 warps take fixed chunks of rows, leave one partial sum each in the workspace, and a last block of
 * one warp adds those in order. Up to 64 rows there is one block, which finishes by itself. Sums of losses are double. */
#include "calculators/cuda/kernels.cuh"

enum { WARP = 32, WARPS = 8, CHUNK = 64 };

struct row_sums {
    double loss;
    int64_t correct;
};

/* Sums over the batch become the mean loss and are added to the metrics. */
template <typename T> static __device__ void finish(row_sums all, int64_t rows, T *loss, double *metrics)
{
    *loss = static_cast<T>(all.loss / static_cast<double>(rows));
    if (metrics == nullptr) return;
    metrics[0] += all.loss;
    metrics[1] += static_cast<double>(all.correct);
    metrics[2] += static_cast<double>(rows);
}

/* The row of one warp: writes p; lane 0 returns the row's loss and whether its label has the largest logit. */
template <typename T>
static __device__ row_sums compute_row(const T *x, int32_t label, T *p, int64_t classes, double smoothing)
{
    int64_t lane = threadIdx.x % WARP;
    T largest = -INFINITY;
    int64_t best = classes;
    for (int64_t j = lane; j < classes; j += WARP) {
        if (x[j] > largest || best == classes) {
            largest = x[j];
            best = j;
        }
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(0xffffffffu, largest, step);
        int64_t at = __shfl_xor_sync(0xffffffffu, best, step);
        if (at < classes && (best == classes || other > largest || (other == largest && at < best))) {
            largest = other;
            best = at;
        }
    }
    T sum = 0;
    for (int64_t j = lane; j < classes; j += WARP) sum += exp(x[j] - largest);
    for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    T logarithm = log(sum);
    double loss = 0;
    for (int64_t j = lane; j < classes; j += WARP) {
        T log_p = x[j] - largest - logarithm;
        double target = (j == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
        p[j] = exp(log_p);
        if (target != 0) loss -= target * static_cast<double>(log_p);
    }
    for (int step = WARP / 2; step > 0; step /= 2) loss += __shfl_xor_sync(0xffffffffu, loss, step);
    bool valid = label >= 0 && label < classes;
    return {valid ? loss : static_cast<double>(NAN), best == label};
}

template <typename T>
static __global__ void cross_entropy_forward(const T *logits, const int32_t *labels, T *p, int64_t rows,
                                             int64_t classes, double smoothing, row_sums *partials, T *loss,
                                             double *metrics)
{
    __shared__ row_sums sums[CHUNK];
    int64_t first = static_cast<int64_t>(blockIdx.x) * CHUNK;
    for (int64_t r = threadIdx.x / WARP; r < CHUNK && first + r < rows; r += WARPS) {
        int64_t n = first + r;
        row_sums mine = compute_row(logits + n * classes, labels[n], p + n * classes, classes, smoothing);
        if (threadIdx.x % WARP == 0) sums[r] = mine;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    row_sums all = {0, 0};
    for (int64_t r = 0; r < CHUNK && first + r < rows; r++) {
        all.loss += sums[r].loss;
        all.correct += sums[r].correct;
    }
    if (gridDim.x == 1)
        finish(all, rows, loss, metrics);
    else
        partials[blockIdx.x] = all;
}

template <typename T>
static __global__ void cross_entropy_finish(const row_sums *partials, int64_t blocks, int64_t rows, T *loss,
                                            double *metrics)
{
    row_sums all = {0, 0};
    for (int64_t b = threadIdx.x; b < blocks; b += WARP) {
        all.loss += partials[b].loss;
        all.correct += partials[b].correct;
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        all.loss += __shfl_xor_sync(0xffffffffu, all.loss, step);
        all.correct += __shfl_xor_sync(0xffffffffu, all.correct, step);
    }
    if (threadIdx.x == 0) finish(all, rows, loss, metrics);
}

/* dlogits = (p - t) dloss / N; a thread an element. */
template <typename T>
static __global__ void cross_entropy_backward(const T *p, const int32_t *labels, const T *dloss, T *dlogits,
                                              int64_t count, int64_t classes, T smoothing, T rows)
{
    T each = *dloss / rows;
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        T target = (i % classes == labels[i / classes] ? 1 - smoothing : T(0)) + smoothing / static_cast<T>(classes);
        dlogits[i] = (p[i] - target) * each;
    }
}

static int64_t blocks_for(const sdlf_operation *op)
{
    return (op->in[0].shape.dim[0] + CHUNK - 1) / CHUNK;
}

extern "C" int64_t softmax_cross_entropy_forward_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    int64_t blocks = blocks_for(op);
    return blocks > 1 ? blocks * static_cast<int64_t>(sizeof(row_sums)) : 0;
}

extern "C" bool softmax_cross_entropy_forward_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    /* the gradient is a kernel of its own */
    return !sdlf_tensor_present(&op->out[3]) && !sdlf_tensor_present(&op->in[3]);
}

extern "C" bool softmax_cross_entropy_backward_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return !sdlf_tensor_present(&op->in[3]);
}

extern "C" sdlf_status softmax_cross_entropy_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &logits = op->in[0];
    int64_t rows = logits.shape.dim[0], classes = logits.shape.dim[1], blocks = blocks_for(op);
    row_sums *partials = static_cast<row_sums *>(op->workspace.data);
    double *metrics = sdlf_tensor_present(&op->out[2]) ? data_of<double>(op->out[2]) : nullptr;
    with_float(logits.dtype, [&](auto zero) {
        using T = decltype(zero);
        cross_entropy_forward<T><<<(unsigned)blocks, WARPS * WARP, 0, calculator->stream>>>(
            data_of<T>(logits), data_of<int32_t>(op->in[1]), data_of<T>(op->out[0]), rows, classes,
            op->cross_entropy.smoothing, partials, data_of<T>(op->out[1]), metrics);
        if (blocks > 1)
            cross_entropy_finish<T>
                <<<1, WARP, 0, calculator->stream>>>(partials, blocks, rows, data_of<T>(op->out[1]), metrics);
    });
    return cuda_check_launch("softmax_cross_entropy_forward");
}

extern "C" sdlf_status softmax_cross_entropy_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &p = op->in[0];
    int64_t count = sdlf_tensor_count(&p), classes = p.shape.dim[1];
    with_float(p.dtype, [&](auto zero) {
        using T = decltype(zero);
        cross_entropy_backward<T><<<cuda_blocks(calculator, count, 256), 256, 0, calculator->stream>>>(
            data_of<T>(p), data_of<int32_t>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->out[0]), count, classes,
            static_cast<T>(op->cross_entropy.smoothing), static_cast<T>(p.shape.dim[0]));
    });
    return cuda_check_launch("softmax_cross_entropy_backward");
}
