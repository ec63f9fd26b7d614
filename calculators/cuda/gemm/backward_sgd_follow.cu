/* SPDX-License-Identifier: MIT */
/* The rest of gemm_backward_sgd after cuBLAS has computed the GEMMs, including v = momentum v + g.
 *
 * Weights: a grid-stride loop, one thread per element: v += decay w; w -= rate v. Reads w and v, writes w, and v if there is decay.
 * Biases: a block has 32 units; each of its 32 rows of threads adds every 32nd row of dy, and their sums are added in order. */
#include "calculators/cuda/gemm/backward_sgd.h"
#include "calculators/cuda/sgd.cuh"

enum { THREADS = 256, COLUMNS = 32, LINES = 32 };

template <typename T> static __global__ void follow_velocity(const T *rate, T *w, T *v, int64_t count, float decay)
{
    T r = *rate;
    for (int64_t i = grid_first(); i < count; i += grid_step()) follow_at(w + i, v + i, r, decay);
}

template <typename T>
static __global__ void move_biases(const T *dy, const T *rate, T *b, T *v, int64_t rows, int64_t units,
                                   sdlf_sgd_rule rule)
{
    __shared__ T parts[LINES][COLUMNS];
    int64_t u = static_cast<int64_t>(blockIdx.x) * COLUMNS + threadIdx.x;
    T sum = 0;
    for (int64_t n = threadIdx.y; n < rows && u < units; n += LINES) sum += dy[n * units + u];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || u >= units) return;
    for (int line = 1; line < LINES; line++) sum += parts[line][threadIdx.x];
    move(b[u], v[u], sum, *rate, rule, rule.bias_decay);
}

extern "C" sdlf_status cuda_follow_velocity(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        follow_velocity<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[2]), data_of<T>(op->out[0]), data_of<T>(op->out[1]), count,
            gemm_backward_sgd_options_of(op)->sgd.decay);
    });
    return cuda_check_launch("gemm_backward_sgd");
}

extern "C" sdlf_status cuda_move_biases(sdlf_calculator *base, const sdlf_operation *op)
{
    if (!sdlf_tensor_present(&op->out[3])) return SDLF_OK;
    int64_t rows = op->in[1].shape.dim[0], units = op->in[1].shape.dim[1];
    with_float(op->out[3].dtype, [&](auto zero) {
        using T = decltype(zero);
        move_biases<T><<<(unsigned)((units + COLUMNS - 1) / COLUMNS), dim3(COLUMNS, LINES), 0, cuda_stream(base)>>>(
            data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->out[3]), data_of<T>(op->out[4]), rows, units,
            gemm_backward_sgd_options_of(op)->sgd);
    });
    return cuda_check_launch("gemm_backward_sgd");
}
