/* SPDX-License-Identifier: MIT */
/* The second kernel of the weight and bias gradients of conv2d + ReLU + max-pool: adds the partial sums that the first kernel's blocks
 * stored, and updates the weights where the operation is an update.
 *
 * A block computes 32 elements; each of its 32 lines of threads adds every 32nd partial sum, and the lines' sums are added in order. */
#include "calculators/cuda/conv2d_pool/weights.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/sgd.cuh"

enum { WARP = 32, LINES = 32 };

/* Where the sums go: to gradients, or into weights. Absent outputs are NULL. */
template <typename T> struct pool_epilogue {
    const T *parts, *rate;
    T *dw, *db, *w, *v, *b, *bv;
    int64_t weights, filters;
    int blocks;
    sdlf_sgd_rule rule;
};

template <typename T> static __global__ void __launch_bounds__(WARP *LINES) conv2d_pool_epilogue(pool_epilogue<T> f)
{
    __shared__ T lines[LINES][WARP + 1];
    int64_t count = f.weights + f.filters, e = static_cast<int64_t>(blockIdx.x) * WARP + threadIdx.x;
    T sum = 0;
    wait_and_launch_dependent_grids();
#pragma unroll 8
    for (int block = threadIdx.y; block < f.blocks; block += LINES)
        sum += e < count ? f.parts[block * count + e] : T(0);
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || e >= count) return;
#pragma unroll
    for (int line = 1; line < LINES; line++) sum += lines[line][threadIdx.x];
    if (e < f.weights) {
        if (f.dw != nullptr) f.dw[e] = sum;
        if (f.w != nullptr) move_at(f.w + e, f.v != nullptr ? f.v + e : nullptr, sum, *f.rate, f.rule, f.rule.decay);
    } else {
        int64_t k = e - f.weights;
        if (f.db != nullptr) f.db[k] = sum;
        if (f.b != nullptr)
            move_at(f.b + k, f.bv != nullptr ? f.bv + k : nullptr, sum, *f.rate, f.rule, f.rule.bias_decay);
    }
}

template <typename T> static pool_epilogue<T> epilogue_of(const sdlf_operation *op, int blocks)
{
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    pool_epilogue<T> f = {.parts = static_cast<const T *>(op->workspace.data)};
    f.weights = sdlf_tensor_count(operands.w);
    f.filters = operands.dy->shape.dim[1];
    f.blocks = blocks;
    if (op->fused.fusion == &sdlf_conv2d_pool_backward_fusion) {
        f.dw = optional<T>(op->out[0]);
        f.db = optional<T>(op->out[1]);
        return f;
    }
    f.rate = data_of<T>(op->in[3]);
    f.w = data_of<T>(op->out[0]);
    f.v = optional<T>(op->out[1]);
    f.b = optional<T>(op->out[2]);
    f.bv = optional<T>(op->out[3]);
    f.rule = conv2d_pool_options_of(op)->sgd;
    return f;
}

sdlf_status cuda_conv2d_pool_epilogue(const cuda_calculator *calculator, const sdlf_operation *op, int blocks)
{
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        const pool_epilogue<T> f = epilogue_of<T>(op, blocks);
        int64_t count = f.weights + f.filters;
        launch_overlapped(calculator, conv2d_pool_epilogue<T>, (unsigned)((count + WARP - 1) / WARP), dim3(WARP, LINES),
                          0, f);
    });
    return cuda_check_launch("conv2d_relu_max_pool_backward");
}
