/* Averages of whole images (N,H,W,C), C a multiple of 8, and their gradient. */
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { THREADS = 256 };

/* A block an image and 8 times LANES channels: SHARES threads share the pixels of each 8, whose sums are added in order. */
enum { LANES = 8, SHARES = THREADS / LANES };

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    global_average(const T *x, T *y, int64_t area, int vectors, int groups)
{
    __shared__ float8 part[SHARES][LANES];
    await_kernels();
    const int lane = static_cast<int>(threadIdx.x) % LANES, share = static_cast<int>(threadIdx.x) / LANES;
    const int64_t image = blockIdx.x / groups, vector = static_cast<int64_t>(blockIdx.x) % groups * LANES + lane;
    float8 sum = {};
    for (int64_t i = share; vector < vectors && i < area; i += SHARES) {
        const float8 value = load8(x, (image * area + i) * vectors + vector);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += value.at[v];
    }
    part[share][lane] = sum;
    __syncthreads();
    if (share != 0 || vector >= vectors) return;
    for (int i = 1; i < SHARES; i++) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += part[i][lane].at[v];
    }
#pragma unroll
    for (int v = 0; v < VECTOR; v++) sum.at[v] /= static_cast<float>(area);
    store8(y, image * vectors + vector, sum);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    global_average_backward(const T *dy, T *dx, int64_t count, divider<int64_t> vectors, divider<int64_t> area)
{
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t vector, rest, pixel = divide(e, vectors, vector), image = divide(pixel, area, rest);
        float8 gradient = load8(dy, image * vectors.number + vector);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) gradient.at[v] /= static_cast<float>(area.number);
        store8(dx, e, gradient);
    }
}

sdlf_status global_avg_pool2d_forward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_shape shape = op->in[0].shape;
    const int vectors = static_cast<int>(shape.dim[1] / VECTOR), groups = (vectors + LANES - 1) / LANES;
    with_storage(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, global_average<T>, static_cast<unsigned>(shape.dim[0] * groups), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->out[0]), shape.dim[2] * shape.dim[3], vectors, groups);
    });
    return cuda_check_launch("global_avg_pool2d_forward");
}

sdlf_status global_avg_pool2d_backward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_shape shape = op->out[0].shape;
    const int64_t count = sdlf_tensor_count(&op->out[0]) / VECTOR;
    with_storage(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, global_average_backward<T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<T>(op->in[0]), data_of<T>(op->out[0]), count, divider<int64_t>(shape.dim[1] / VECTOR),
                          divider<int64_t>(shape.dim[2] * shape.dim[3]));
    });
    return cuda_check_launch("global_avg_pool2d_backward");
}
