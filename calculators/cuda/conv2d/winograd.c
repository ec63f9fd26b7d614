/* SPDX-License-Identifier: MIT */
/* Winograd convolutions: what is supported, the number of blocks, and the GEMMs between the transforms. */
#include "calculators/cuda/conv2d/winograd.h"

#include "calculators/cuda/conv2d/implicit.h"
#include "calculators/cuda/gemm/blas.h"

#include <string.h>

enum { MOST_SPLITS = 16 };

/* How to compute it: in steps, or, if NULL, in one kernel with 2x2 tiles. */
typedef const cuda_winograd_steps *form;
static const form FUSED = NULL;

static int tile_side(form how)
{
    return how == NULL ? 2 : how->side;
}

static int64_t points_of(form how)
{
    return (int64_t)(tile_side(how) + 2) * (tile_side(how) + 2);
}

static const cuda_calculator *view(const sdlf_calculator *calculator)
{
    return (const cuda_calculator *)calculator;
}

/* Elements of u. */
static int64_t filter_numbers(const sdlf_operation *op, form how)
{
    const int64_t *w = op->in[1].shape.dim;
    if (how != NULL) return points_of(how) * w[0] * w[1];
    return WINOGRAD_POINTS * cuda_ceil_div(w[0], WINOGRAD_FILTERS) * WINOGRAD_FILTERS *
           cuda_ceil_div(w[1], WINOGRAD_CHANNELS) * WINOGRAD_CHANNELS;
}

static int64_t tiles_of(const sdlf_operation *op, form how)
{
    const int64_t *y = op->out[0].shape.dim;
    return y[0] * cuda_ceil_div(y[2], tile_side(how)) * cuda_ceil_div(y[3], tile_side(how));
}

bool cuda_winograd_takes(const sdlf_operation *op, form how)
{
    const sdlf_window2d *window = &op->conv2d.window;
    if (op->kind != SDLF_CONV2D_FORWARD || op->out[0].dtype != SDLF_FLOAT32 || op->conv2d.groups != 1) return false;
    if (sdlf_operation_is_channels_last(op)) return false;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 3 || window->stride[i] != 1 || window->dilation[i] != 1) return false;
    }
    /* cuda_implicit_counts bounds both factors: 64 bits hold their product */
    return cuda_implicit_counts(op) && filter_numbers(op, how) <= INT32_MAX &&
           tiles_of(op, how) + WINOGRAD_TILES <= INT32_MAX;
}

/* Splits of the channels: enough to fill the multiprocessors, each of which has one block at a time. Costs in k-steps of 8 channels:
 * the prologue and epilogue of a block are worth two, storing and adding partial outputs two and a quarter of one for each. */
static int choose_splits(const cuda_calculator *calculator, int64_t blocks, int64_t steps)
{
    int best = 1;
    double least = 0;
    for (int splits = 1; splits <= MOST_SPLITS && splits <= steps; splits++) {
        if (splits > 1 && blocks > CUDA_TICKETS) break;
        double cost = (double)cuda_ceil_div(blocks * splits, calculator->multiprocessors) *
                      ((double)cuda_ceil_div(steps, splits) + 2.0 + (splits > 1 ? 2.0 + 0.25 * splits : 0));
        if (splits > 1 && cost >= least) continue;
        best = splits;
        least = cost;
    }
    return best;
}

static cuda_winograd problem_of(const cuda_calculator *calculator, const sdlf_operation *op, form how)
{
    const int64_t *x = op->in[0].shape.dim, *y = op->out[0].shape.dim;
    cuda_winograd p;
    memset(&p, 0, sizeof p);
    p.x = op->in[0].data;
    p.y = op->out[0].data;
    p.bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL;
    p.residual = sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL;
    p.activation = op->conv2d.activation;
    p.tickets = calculator->tickets;
    p.channels = (int)x[1];
    p.height = (int)x[2];
    p.width = (int)x[3];
    p.filters = (int)y[1];
    p.out_height = (int)y[2];
    p.out_width = (int)y[3];
    p.tiles_down = (int)cuda_ceil_div(y[2], tile_side(how));
    p.tiles_across = (int)cuda_ceil_div(y[3], tile_side(how));
    p.tiles = (int)tiles_of(op, how);
    for (int i = 0; i < 2; i++) p.padding[i] = op->conv2d.window.padding_before[i];
    p.filter_blocks = (int)cuda_ceil_div(p.filters, WINOGRAD_FILTERS);
    p.tile_blocks = (int)cuda_ceil_div(p.tiles, WINOGRAD_TILES);
    p.splits = choose_splits(calculator, (int64_t)p.filter_blocks * p.tile_blocks,
                             cuda_ceil_div(p.channels, WINOGRAD_CHANNELS));
    return p;
}

static sdlf_status make_filters(sdlf_calculator *calculator, const sdlf_operation *op, void *to, form how)
{
    const int64_t *w = op->in[1].shape.dim;
    if (how == NULL) return cuda_winograd_filters_fused(calculator, op->in[1].data, to, (int)w[0], (int)w[1]);
    return how->filters(calculator, op->in[1].data, to, (int)w[0], (int)w[1]);
}

/* u, where it is not prepacked, then the rest, which is aligned because u's size is a multiple of 16 elements. */
static int64_t filters_in_workspace(const sdlf_operation *op, form how)
{
    return sdlf_tensor_present(&op->prepared) ? 0 : cuda_ceil_div(filter_numbers(op, how), 16) * 16;
}

static sdlf_status place_filters(sdlf_calculator *calculator, const sdlf_operation *op, cuda_winograd *p, form how)
{
    float *workspace = op->workspace.data;
    bool ready = sdlf_tensor_present(&op->prepared);
    p->u = ready ? op->prepared.data : workspace;
    p->scratch = workspace + filters_in_workspace(op, how);
    return ready ? SDLF_OK : make_filters(calculator, op, workspace, how);
}

/* ---- in one kernel ---- */

bool cuda_winograd_fused_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (view(calculator)->shared_most < cuda_winograd_shared() || !cuda_winograd_takes(op, FUSED)) return false;
    const int64_t *w = op->in[1].shape.dim;
    return cuda_ceil_div(w[0], WINOGRAD_FILTERS) <=
           INT32_MAX / cuda_ceil_div(tiles_of(op, FUSED), WINOGRAD_TILES) / MOST_SPLITS;
}

int64_t conv2d_winograd_fused_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return cuda_winograd_prepared(op, FUSED);
}

sdlf_status conv2d_winograd_fused_prepare_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_winograd_prepare(calculator, op, FUSED);
}

int64_t conv2d_winograd_fused_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_winograd p = problem_of(view(calculator), op, FUSED);
    int64_t parts = 0;
    if (p.splits > 1)
        parts = (int64_t)p.splits * p.filter_blocks * p.tile_blocks * WINOGRAD_FILTERS * WINOGRAD_TILES * 4;
    return (filters_in_workspace(op, FUSED) + parts) * (int64_t)sizeof(float);
}

sdlf_status conv2d_winograd_fused_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_winograd p = problem_of(view(calculator), op, FUSED);
    sdlf_status status = place_filters(calculator, op, &p, FUSED);
    return status == SDLF_OK ? cuda_winograd_fused(calculator, &p) : status;
}

/* ---- in steps ---- */

/* cuBLAS multiplies faster than the fused kernel, which also transforms. The steps win where each element of the arrays
 * between them is used in C K / (C + K) >= 80 multiplications, or where these stay in the L2 cache of a large device. */
bool cuda_winograd_prefers_steps(const sdlf_operation *op)
{
    static const int64_t cache = INT64_C(32) << 20;
    const int64_t *w = op->in[1].shape.dim;
    int64_t bytes = WINOGRAD_POINTS * tiles_of(op, &cuda_winograd_steps_2) * (w[0] + w[1]) * (int64_t)sizeof(float);
    return w[0] * w[1] >= 80 * (w[0] + w[1]) || bytes <= cache;
}

int64_t cuda_winograd_workspace(const sdlf_operation *op, form how)
{
    const int64_t *w = op->in[1].shape.dim;
    int64_t numbers = filters_in_workspace(op, how) + points_of(how) * tiles_of(op, how) * (w[0] + w[1]);
    return cuda_ceil_div(numbers * (int64_t)sizeof(float), 64) * 64;
}

/* Products (K,tiles) = u (K,C) v (C,tiles), one GEMM a point; cuBLAS, being column-major, computes the transposes. */
sdlf_status cuda_winograd_run(sdlf_calculator *base, const sdlf_operation *op, form how)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_winograd p = problem_of(calculator, op, how);
    sdlf_status status = place_filters(base, op, &p, how);
    float *v = p.scratch, *products = v + points_of(how) * p.channels * p.tiles;
    const float one = 1, zero = 0;
    if (status == SDLF_OK) status = how->patches(base, &p, v);
    if (status != SDLF_OK) return status;
    cublasStatus_t multiplied = calculator->library->gemm_strided_batched(
        calculator->blas, CUBLAS_OP_N, CUBLAS_OP_N, p.tiles, p.filters, p.channels, &one, v, CUDA_R_32F, p.tiles,
        (int64_t)p.channels * p.tiles, p.u, CUDA_R_32F, p.channels, (int64_t)p.filters * p.channels, &zero, products,
        CUDA_R_32F, p.tiles, (int64_t)p.filters * p.tiles, (int)points_of(how), CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
    if (multiplied != CUBLAS_STATUS_SUCCESS) return cuda_check_blas(multiplied, "conv2d, Winograd's products");
    return how->outputs(base, &p, products);
}

int64_t cuda_winograd_prepared(const sdlf_operation *op, form how)
{
    return filter_numbers(op, how) * (int64_t)sizeof(float);
}

sdlf_status cuda_winograd_prepare(sdlf_calculator *calculator, const sdlf_operation *op, form how)
{
    return make_filters(calculator, op, op->prepared.data, how);
}

bool cuda_winograd_2_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return cuda_winograd_takes(op, &cuda_winograd_steps_2);
}

int64_t conv2d_winograd_2_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return cuda_winograd_prepared(op, &cuda_winograd_steps_2);
}

sdlf_status conv2d_winograd_2_prepare_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_winograd_prepare(calculator, op, &cuda_winograd_steps_2);
}

int64_t conv2d_winograd_2_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return cuda_winograd_workspace(op, &cuda_winograd_steps_2);
}

sdlf_status conv2d_winograd_2_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_winograd_run(calculator, op, &cuda_winograd_steps_2);
}
