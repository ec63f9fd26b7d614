/* SPDX-License-Identifier: MIT */
/* The convolution algorithms on the GPU: names, notes and work estimates. conv2d/automatic.c has the rule of "auto",
 * conv2d/conv2d.c what each algorithm supports; docs/guides/convolution-algorithms.md explains them. */
#include "calculators/cuda/conv2d/algorithms.h"

#include "calculators/cuda/conv2d/conv2d.h"

const char *const conv2d_algorithms_cuda[] = {
    [CUDA_CONV2D_AUTO] = "auto",
    LAB_CONV2D_NAMES,
    [CUDA_CONV2D_DIRECT] = "direct",
    [CUDA_CONV2D_TWO_STEP] = "two-step",
    [CUDA_CONV2D_POINTWISE] = "pointwise",
    [CUDA_CONV2D_POINTWISE_WARPS] = "pointwise-warps",
    [CUDA_CONV2D_IMPLICIT] = "implicit-gemm",
    [CUDA_CONV2D_STEM] = "stem",
    [CUDA_CONV2D_DEPTHWISE] = "depthwise",
    [CUDA_CONV2D_WINOGRAD_FUSED] = "winograd-2x2",
    [CUDA_CONV2D_WINOGRAD_2] = "winograd-2x2-steps",
    [CUDA_CONV2D_HALO] = "halo",
    [CUDA_CONV2D_HALO16] = "halo-16bit",
    [CUDA_CONV2D_ALGORITHMS] = NULL,
};

const sdlf_algorithm_note conv2d_notes_cuda[] = {
    [CUDA_CONV2D_AUTO] = {.summary = "the plan's own choice"},
    LAB_CONV2D_NOTES,
    [CUDA_CONV2D_DIRECT] = {.summary = "one thread an output"},
    [CUDA_CONV2D_TWO_STEP] = {.summary = "patches as a matrix in memory, then a product by cuBLAS",
                              .takes = "matrices up to the sizes of cuBLAS"},
    [CUDA_CONV2D_POINTWISE] = {.summary = "only the product, several warps to a sum: the image is the matrix",
                               .takes = "windows of 1x1 without padding"},
    [CUDA_CONV2D_POINTWISE_WARPS] =
        {.summary = "the same by warps that read the image straight into registers, weights ready in shared memory",
         .takes = "1x1 with stride 1, channels in eights, planes of fours or 49; fp32; on compute capability 9.0"},
    [CUDA_CONV2D_IMPLICIT] = {.summary = "a product that gathers its patches from the image; tensor cores unless fp32",
                              .takes = "windows of up to 31 rows and columns together"},
    [CUDA_CONV2D_STEM] = {.summary =
                              "all channels of a rectangle and all weights in shared memory; strips for few filters",
                          .takes = "few channels, windows of 3x3 to 7x7, strides 1 and 2 (3)"},
    [CUDA_CONV2D_DEPTHWISE] = {.summary = "strips of pixels in registers, a channel a plane",
                               .takes = "filters of one channel"},
    [CUDA_CONV2D_WINOGRAD_FUSED] = {.summary = "tiles of 2x2 outputs, 16 multiplications for 36, in one kernel",
                                    .takes = CUDA_CONV2D_WINOGRAD_TAKES},
    [CUDA_CONV2D_WINOGRAD_2] = {.summary = "the same in three steps, products by cuBLAS",
                                .takes = CUDA_CONV2D_WINOGRAD_TAKES},
    [CUDA_CONV2D_HALO] =
        {.summary = "a product that reads its patches from a part of the image in shared memory; tensor cores",
         .takes = "channels last, one group, windows of up to 120 taps; not in fp32"},
    [CUDA_CONV2D_HALO16] = {.summary = "the same, with parts of the image loaded by TMA",
                            .takes = "as for halo, stride 1, channels in multiples of 4; on compute capability 9.0"},
};

/* Bytes of an algorithm's intermediate arrays, each written and read once: the im2col matrix of all images, or else the workspace. */
static int64_t own_bytes(const sdlf_calculator *calculator, const sdlf_operation *operation, bool columns)
{
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(operation, &x, &w, &y);
    cuda_conv2d g = cuda_conv2d_of(operation, x, w, y);
    if (!columns) return conv2d_workspace_cuda(calculator, operation);
    if (cuda_is_pointwise(&g)) return 0;
    int64_t count = g.batch * g.channels * g.window.size[0] * g.window.size[1] * g.out_height * g.out_width;
    return count * (int64_t)sdlf_dtype_size(x->dtype);
}

/* FLOPs of Winograd's transforms of filters, input patches and output tiles (conv2d/winograd.cuh), and of the GEMMs
 * between them. */
static int64_t winograd_flops(const sdlf_operation *operation, int m, bool fused)
{
    const int64_t *x = operation->in[0].shape.dim, *y = operation->out[0].shape.dim;
    int64_t tiles = y[0] * ((y[2] + m - 1) / m) * ((y[3] + m - 1) / m), points = (m + 2) * (m + 2);
    int64_t filter = m == 2 ? 3 * 5 + 4 * 5 : 3 * 12 + 6 * 12, patch = m == 2 ? 4 * 4 + 4 * 4 : 6 * 19 + 6 * 19;
    int64_t output = m == 2 ? 4 * 4 + 2 * 4 : 6 * 13 + 4 * 13;
    int64_t blocks = fused ? (y[1] + 63) / 64 : 1; /* each block of filters transforms patches for itself */
    int64_t flops = tiles * (blocks * x[1] * patch + y[1] * output) + 2 * points * tiles * x[1] * y[1];
    return sdlf_tensor_present(&operation->prepared) ? flops : flops + x[1] * y[1] * filter;
}

/* Prepacked weights are read instead of the operation's own. */
sdlf_cost conv2d_work_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    int algorithm =
        operation->algorithm != CUDA_CONV2D_AUTO ? operation->algorithm : conv2d_automatic_cuda(calculator, operation);
    sdlf_cost cost = sdlf_operation_cost(operation);
    if (sdlf_tensor_present(&operation->prepared))
        cost.bytes += sdlf_tensor_bytes(&operation->prepared) - sdlf_tensor_bytes(&operation->in[1]);
    const cuda_conv2d_algorithm *by = cuda_conv2d_algorithm_of(algorithm);
    if (by->winograd > 0) cost.flops = winograd_flops(operation, by->winograd, algorithm == CUDA_CONV2D_WINOGRAD_FUSED);
    cost.bytes += 2 * own_bytes(calculator, operation, by->columns);
    return cost;
}

/* True for the algorithms of conv2d/halo.h, unless the kernel itself starts without waiting for the one before it (op->before). */
bool cuda_conv2d_starts_others_late(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_FORWARD || !sdlf_operation_is_channels_last(op) || op->before != NULL) return false;
    int algorithm = op->algorithm == CUDA_CONV2D_AUTO ? conv2d_automatic_cuda(calculator, op) : op->algorithm;
    return algorithm == CUDA_CONV2D_HALO || algorithm == CUDA_CONV2D_HALO16;
}
