/* SPDX-License-Identifier: MIT */
/* Pointwise convolutions: the choice of a tile. A few images of one pixel are treated as the rows of a GEMM: gemm/gemv.cu. */
#include "calculators/cuda/conv2d/pointwise.h"

#include "calculators/cuda/conv2d/implicit.h"
#include "calculators/cuda/gemm/gemm.h"

#include <string.h>

const cuda_pointwise_tile cuda_pointwise_tiles[POINTWISE_TILES] = {{64, 128}, {32, 64}, {16, 32}, {8, 16}};

/* Bytes of shared memory of the largest tile, in float32 and in float64. */
enum { SHARED_SINGLE = 96 << 10, SHARED_DOUBLE = 116 << 10 };

bool cuda_pointwise_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_window2d *window = &op->conv2d.window;
    if (op->kind != SDLF_CONV2D_FORWARD || op->conv2d.groups != 1 || !cuda_implicit_counts(op)) return false;
    if (sdlf_operation_is_channels_last(op)) return false;
    int needed = op->out[0].dtype == SDLF_FLOAT64 ? SHARED_DOUBLE : SHARED_SINGLE;
    if (((const cuda_calculator *)calculator)->shared_most < needed) return false;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 1 || window->padding_before[i] != 0 || window->padding_after[i] != 0) return false;
    }
    return true;
}

/* The largest tile of which there are blocks for three quarters of the multiprocessors, and fewer rows than twice the filters. */
static int choose(const cuda_calculator *calculator, const cuda_pointwise *p, sdlf_dtype dtype)
{
    for (int tile = dtype == SDLF_FLOAT64; tile < POINTWISE_TILES - 1; tile++) {
        const cuda_pointwise_tile *size = &cuda_pointwise_tiles[tile];
        int64_t blocks = (int64_t)cuda_ceil_div(p->filters, size->filters) * cuda_ceil_div(p->pixels, size->pixels);
        bool fits =
            size->filters < 2 * p->filters && cuda_ceil_div(p->filters, size->filters) * size->filters < 2 * p->filters;
        if (fits && blocks * 4 >= calculator->multiprocessors * INT64_C(3)) return tile;
    }
    return POINTWISE_TILES - 1;
}

static bool aligned(const void *address)
{
    return ((uintptr_t)address & 15) == 0;
}

/* Images of one pixel as the rows of a matrix. */
static sdlf_tensor rows_of(const sdlf_tensor *images)
{
    if (!sdlf_tensor_present(images)) return (sdlf_tensor){0};
    return sdlf_tensor_reshape(*images, sdlf_shape(images->shape.dim[0], images->shape.dim[1]));
}

/* True if this is a GEMV kernel's problem and that is faster; sets *gemm. With shorter sums too few threads of a block have work. */
static bool is_gemv(const cuda_calculator *calculator, const sdlf_operation *op, sdlf_operation *gemm)
{
    enum { SHORT = 256 };
    const int64_t *x = op->in[0].shape.dim;
    if (x[2] * x[3] != 1 || x[1] < SHORT) return false;
    *gemm = (sdlf_operation){.kind = SDLF_GEMM,
                             .in = {rows_of(&op->in[0]), rows_of(&op->in[1]), op->in[2], rows_of(&op->in[3])},
                             .out = {rows_of(&op->out[0])},
                             .gemm = {.transpose_b = true, .alpha = 1, .activation = op->conv2d.activation}};
    return cuda_gemm_takes(calculator, gemm, GEMM_GEMV) && cuda_gemm_lies_aligned(gemm);
}

sdlf_status conv2d_pointwise_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    sdlf_operation gemm;
    if (is_gemv(calculator, op, &gemm)) return cuda_gemm_gemv(base, &gemm);
    const sdlf_tensor *x = &op->in[0], *y = &op->out[0];
    cuda_pointwise p;
    memset(&p, 0, sizeof p);
    p.x = x->data;
    p.w = op->in[1].data;
    p.bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL;
    p.residual = sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL;
    p.y = y->data;
    p.activation = op->conv2d.activation;
    p.channels = (int)x->shape.dim[1];
    p.height = (int)x->shape.dim[2];
    p.width = (int)x->shape.dim[3];
    p.filters = (int)y->shape.dim[1];
    p.out_height = (int)y->shape.dim[2];
    p.out_width = (int)y->shape.dim[3];
    p.pixels = (int)(y->shape.dim[0] * y->shape.dim[2] * y->shape.dim[3]);
    for (int i = 0; i < 2; i++) p.stride[i] = op->conv2d.window.stride[i];
    p.plain = p.stride[0] == 1 && p.stride[1] == 1;
    int chunk = 16 / (int)sdlf_dtype_size(x->dtype);
    p.wide_w = aligned(p.w) && p.channels % chunk == 0;
    p.wide_x = aligned(p.x) && p.plain && p.height * p.width % chunk == 0;
    int tile = choose(calculator, &p, x->dtype);
    p.filter_blocks = cuda_ceil_div(p.filters, cuda_pointwise_tiles[tile].filters);
    p.pixel_blocks = cuda_ceil_div(p.pixels, cuda_pointwise_tiles[tile].pixels);
    return cuda_pointwise_product(base, &p, x->dtype, tile);
}
