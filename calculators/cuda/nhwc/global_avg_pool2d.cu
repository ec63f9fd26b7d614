/* SPDX-License-Identifier: MIT */
/* NHWC global average pooling, forward and backward: 8 channels per thread. Each moves its image once. */
#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { THREADS = 256 };

enum { MOST_LANES = 8, MOST_PARTS = 8, WARP = 32 };

/* Partition of an image: `lanes` adjacent threads have 8 channels each; a block's other threads, and a cluster's blocks, split the pixels. */
struct average_cut {
    int64_t area;
    int vectors; /* of 8 channels */
    int lanes, groups, parts;
};

static average_cut cut_average(const cuda_calculator *calculator, const sdlf_shape &shape)
{
    enum { LEAST_PIXELS = 4 }; /* per thread */
    average_cut cut = {shape.dim[2] * shape.dim[3], static_cast<int>(shape.dim[1] / VECTOR), 1, 1, 1};
    while (cut.lanes < MOST_LANES && cut.lanes < cut.vectors) cut.lanes *= 2;
    cut.groups = (cut.vectors + cut.lanes - 1) / cut.lanes;
    while (cut.parts < MOST_PARTS && cuda_is_built_for(calculator, 90) &&
           shape.dim[0] * cut.groups * cut.parts < calculator->multiprocessors &&
           cut.area >= 2 * cut.parts * LEAST_PIXELS * THREADS / cut.lanes)
        cut.parts *= 2;
    return cut;
}

static __device__ __forceinline__ void add8(float8 &sum, const float8 &more)
{
#pragma unroll
    for (int v = 0; v < VECTOR; v++) sum.at[v] += more.at[v];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) global_average(const T *x, T *y, const average_cut cut)
{
    alignas(16) __shared__ float8 sums[THREADS / WARP][MOST_LANES];
    wait_and_launch_dependent_grids();
    const int thread = static_cast<int>(threadIdx.x), lane = thread % cut.lanes, shares = THREADS / cut.lanes;
    const int part = static_cast<int>(blockIdx.x) % cut.parts, block = static_cast<int>(blockIdx.x) / cut.parts;
    const int64_t image = block / cut.groups, vector = static_cast<int64_t>(block % cut.groups) * cut.lanes + lane;
    const int64_t each = (cut.area + cut.parts - 1) / cut.parts, end = min(cut.area, (part + 1) * each);
    float8 sum = {};
    if (vector < cut.vectors) {
#pragma unroll 4
        for (int64_t i = part * each + thread / cut.lanes; i < end; i += shares)
            add8(sum, load8(x, (image * cut.area + i) * cut.vectors + vector));
    }
    for (int other = WARP / 2; other >= cut.lanes; other /= 2) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += __shfl_xor_sync(0xffffffffu, sum.at[v], other);
    }
    if (thread % WARP < cut.lanes) sums[thread / WARP][lane] = sum;
    __syncthreads();
    if (thread < cut.lanes) {
        for (int warp = 1; warp < THREADS / WARP; warp++) add8(sum, sums[warp][lane]);
        sums[0][lane] = sum;
    }
    __syncwarp();
    if (cut.parts > 1) cluster_sync();
    if (part == 0 && thread < cut.lanes && vector < cut.vectors) {
        for (int other = 1; other < cut.parts; other++) {
#pragma unroll
            for (int v = 0; v < VECTOR; v += 2) {
                const float2 two = read_other2(&sums[0][lane].at[v], other);
                sum.at[v] += two.x;
                sum.at[v + 1] += two.y;
            }
        }
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] /= static_cast<float>(cut.area);
        store8(y, image * cut.vectors + vector, sum);
    }
    __syncwarp();
    if (cut.parts > 1) cluster_sync(); /* wait until the first block has read the others' sums */
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    global_average_backward(const T *dy, T *dx, int64_t count, divider<int64_t> vectors, divider<int64_t> area)
{
    wait_and_launch_dependent_grids();
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
    const average_cut cut = cut_average(calculator, op->in[0].shape);
    const dim3 blocks(static_cast<unsigned>(op->in[0].shape.dim[0] * cut.groups * cut.parts));
    with_storage(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_cluster(calculator, global_average<T>, blocks, dim3(THREADS), 0, dim3(static_cast<unsigned>(cut.parts)),
                       data_of<T>(op->in[0]), data_of<T>(op->out[0]), cut);
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
