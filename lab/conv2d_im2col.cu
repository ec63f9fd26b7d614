/* SPDX-License-Identifier: MIT */
/* im2col and a plain GEMM: the first kernel writes every window as a column (conv2d/im2col.cu), the second multiplies as in a
 * textbook:
 *
 *   y[n,g] (K/G, PQ) = w[g] (K/G, CRS/G)  columns[n,g] (CRS/G, PQ)
 *
 * A block of 256 threads computes 64 x 64 elements. In k-steps of 16 it loads 64x16 of w and 16x64 of the columns into shared memory; a
 * thread accumulates 4 x 4 results in registers, 16 apart, and does 16 multiply-adds with 8 loads. Bias, residual and activation are
 * fused into the epilogue. The workspace holds the columns of as many images as fit 256 MiB. */
#include "lab/conv2d.cuh"

static const int64_t WORKSPACE = INT64_C(256) << 20;
enum { SIDE = 64, DEPTH = 16, EACH = 4, THREADS = 256, APART = SIDE / EACH };

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    product(const __grid_constant__ operands<T> o, const T *columns, int64_t first_image, int64_t images)
{
    __shared__ T a[DEPTH][SIDE + 1], b[DEPTH][SIDE];
    const cuda_conv2d &g = o.g;
    int area = static_cast<int>(g.out_height * g.out_width), filters = static_cast<int>(g.group_filters);
    int depth = static_cast<int>(g.group_channels) * g.window.size[0] * g.window.size[1];
    int64_t across = (area + SIDE - 1) / SIDE, down = (filters + SIDE - 1) / SIDE;
    int thread = threadIdx.x, column = thread % APART, row = thread / APART;
    for (int64_t block = blockIdx.x; block < across * down * g.groups * images; block += gridDim.x) {
        int64_t plane = block / (across * down), group = plane % g.groups, n = first_image + plane / g.groups;
        int left = static_cast<int>(block % across) * SIDE, top = static_cast<int>(block / across % down) * SIDE;
        const T *w = o.w + group * filters * depth, *from = columns + plane * depth * area;
        T sum[EACH][EACH] = {};
        for (int first = 0; first < depth; first += DEPTH) {
            for (int i = thread; i < SIDE * DEPTH; i += THREADS) {
                int k = top + i / DEPTH, e = first + i % DEPTH;
                a[i % DEPTH][i / DEPTH] = k < filters && e < depth ? w[static_cast<int64_t>(k) * depth + e] : T(0);
            }
            for (int i = thread; i < SIDE * DEPTH; i += THREADS) {
                int pixel = left + i % SIDE, e = first + i / SIDE;
                b[i / SIDE][i % SIDE] = pixel < area && e < depth ? from[static_cast<int64_t>(e) * area + pixel] : T(0);
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < DEPTH; e++) {
                T left_factor[EACH], right_factor[EACH];
#pragma unroll
                for (int i = 0; i < EACH; i++) left_factor[i] = a[e][row + i * APART];
#pragma unroll
                for (int j = 0; j < EACH; j++) right_factor[j] = b[e][column + j * APART];
#pragma unroll
                for (int i = 0; i < EACH; i++) {
#pragma unroll
                    for (int j = 0; j < EACH; j++) sum[i][j] += left_factor[i] * right_factor[j];
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                int k = top + row + i * APART, pixel = left + column + j * APART;
                if (k >= filters || pixel >= area) continue;
                int64_t filter = group * filters + k;
                put(o, (n * g.filters + filter) * area + pixel, filter, sum[i][j]);
            }
        }
    }
}

/* Elements of one image's columns; and the images whose columns fit WORKSPACE, at least one. */
static int64_t column_count(const cuda_conv2d &g)
{
    if (cuda_is_pointwise(&g)) return 0;
    return g.channels * g.window.size[0] * g.window.size[1] * g.out_height * g.out_width;
}

static int64_t images_at_once(const cuda_conv2d &g, sdlf_dtype dtype)
{
    int64_t bytes = column_count(g) * (int64_t)sdlf_dtype_size(dtype);
    int64_t images = bytes > 0 ? WORKSPACE / bytes : g.batch;
    return images < 1 ? 1 : images > g.batch ? g.batch : images;
}

extern "C" int64_t lab_conv2d_im2col_workspace(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    return images_at_once(g, op->in[0].dtype) * column_count(g) * (int64_t)sdlf_dtype_size(op->in[0].dtype);
}

extern "C" sdlf_status lab_conv2d_im2col(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    int64_t tiles = (g.out_height * g.out_width + SIDE - 1) / SIDE * ((g.group_filters + SIDE - 1) / SIDE) * g.groups;
    int64_t step = images_at_once(g, op->in[0].dtype);
    sdlf_status status = SDLF_OK;
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += step) {
        int64_t images = g.batch - n < step ? g.batch - n : step;
        with_float(op->out[0].dtype, [&](auto zero) {
            using T = decltype(zero);
            operands<T> o = operands_of<T>(op);
            const T *image = o.x + n * g.channels * g.height * g.width, *columns = image;
            if (!cuda_is_pointwise(&g)) {
                columns = static_cast<const T *>(op->workspace.data);
                status = cuda_im2col(base, &g, op->in[0].dtype, false, image, op->workspace.data, images);
            }
            if (status != SDLF_OK) return;
            unsigned blocks = cuda_blocks(calculator, tiles * images * THREADS, THREADS);
            product<T><<<blocks, THREADS, 0, calculator->stream>>>(o, columns, n, images);
        });
        if (status == SDLF_OK) status = cuda_check_launch("conv2d_forward, im2col");
    }
    return status;
}
