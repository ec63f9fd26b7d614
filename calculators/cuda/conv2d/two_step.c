/* SPDX-License-Identifier: MIT */
/* Convolution in two steps: im2col writes every window as a column, then a strided-batch GEMM (cuBLAS) for each group multiplies all images.
 * A 1x1 convolution with stride 1 has its columns in x already and skips the first step.
 *
 *   forward   y[n,g]  (K/G, PQ) = w[g] (K/G, CRS/G) columns[n,g] (CRS/G, PQ)
 *   dx        columns[n,g] = w[g]^T dy[n,g], then col2im
 *   dw        dw[g] = sum over n of dy[n,g] columns[n,g]^T: a part for each image, added in order
 *
 * In fp16 and bf16 both operands are rounded first: im2col writes 16-bit columns, and whatever it does not write (weights, dy, and the image
 * of a pointwise convolution) is rounded into the workspace; results are float32. Rows of P Q elements in the workspace are aligned to 16
 * bytes.
 *
 * The workspace holds the columns of as many images as fit WORKSPACE bytes, at least one. */
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/gemm/blas.h"
#include "calculators/cuda/gemm/convert_operands.h"

/* A row-major matrix, one of `images` x `groups`; strides in elements. */
typedef struct matrix {
    const void *data;
    bool rounded; /* in 16 bits */
    int64_t line; /* elements from one row to the next: cuBLAS's leading dimension */
    int64_t group_stride, image_stride;
    bool transposed;
} matrix;

static const char *at(const matrix *m, int64_t group, sdlf_dtype dtype)
{
    return (const char *)m->data + (size_t)(group * m->group_stride) * (m->rounded ? 2 : sdlf_dtype_size(dtype));
}

static cudaDataType_t type_of(const matrix *m, sdlf_dtype dtype, sdlf_math math)
{
    if (m->rounded) return math == SDLF_MATH_FP16 ? CUDA_R_16F : CUDA_R_16BF;
    return dtype == SDLF_FLOAT64 ? CUDA_R_64F : CUDA_R_32F;
}

/* c (m,n) = op(a) (m,k) op(b) (k,n) for every image and group, or c plus that; a and b are both rounded, or neither,
 * and c is of `dtype`. Sizes fit an int. Errors: those of cuda_check_blas for cuBLAS's status. cuBLAS is column-major,
 * and therefore computes c^T = op(b)^T op(a)^T. */
static sdlf_status batch_product(sdlf_calculator *base, sdlf_dtype dtype, int64_t m, int64_t n, int64_t k, matrix a,
                                 matrix b, matrix c, int64_t images, int64_t groups, bool accumulate)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    bool wide = dtype == SDLF_FLOAT64;
    const float one32 = 1, kept32 = accumulate ? 1 : 0;
    const double one64 = 1, kept64 = accumulate ? 1 : 0;
    sdlf_math math = calculator->math;
    for (int64_t group = 0; group < groups; group++) {
        cublasStatus_t status = calculator->library->gemm_strided_batched(
            calculator->blas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
            (int)n, (int)m, (int)k, wide ? (const void *)&one64 : &one32, at(&b, group, dtype),
            type_of(&b, dtype, math), (int)b.line, b.image_stride, at(&a, group, dtype), type_of(&a, dtype, math),
            (int)a.line, a.image_stride, wide ? (const void *)&kept64 : &kept32, (void *)at(&c, group, dtype),
            type_of(&c, dtype, math), (int)c.line, c.image_stride, (int)images,
            wide ? CUBLAS_COMPUTE_64F : cuda_compute_type(math), CUBLAS_GEMM_DEFAULT);
        if (status != CUBLAS_STATUS_SUCCESS) return cuda_check_blas(status, "conv2d, two-step product");
    }
    return SDLF_OK;
}

static const int64_t WORKSPACE = INT64_C(256) << 20;

bool cuda_is_pointwise(const cuda_conv2d *g)
{
    const sdlf_window2d *window = &g->window;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 1 || window->stride[i] != 1 || window->padding_before[i] != 0 ||
            window->padding_after[i] != 0)
            return false;
    }
    return true;
}

/* ---- what the products are of ---- */

/* Elements of one image's columns, and of one image's part of dw. */
static int64_t column_count(const cuda_conv2d *g)
{
    return g->channels * g->window.size[0] * g->window.size[1] * g->out_height * g->out_width;
}

static int64_t weight_count(const cuda_conv2d *g)
{
    return g->filters * g->group_channels * g->window.size[0] * g->window.size[1];
}

static int64_t area_of(const cuda_conv2d *g)
{
    return g->out_height * g->out_width;
}

/* C R S. */
static int64_t column_rows(const cuda_conv2d *g)
{
    return g->channels * g->window.size[0] * g->window.size[1];
}

static bool rounds(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_has_operands16(((const cuda_calculator *)calculator)->math) && op->out[0].dtype == SDLF_FLOAT32;
}

/* ---- the workspace: weights, where they are rounded; then what images need, all columns, all outputs, all parts ---- */

typedef struct room {
    bool rounded;
    int64_t weights; /* bytes */
    int64_t columns, output,
        parts;      /* bytes of an image: columns, or the rounded image in their place; dy, rounded; a part of dw */
    int64_t images; /* processed at once */
} room;

static int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static room room_of(const sdlf_calculator *calculator, const sdlf_operation *op, const cuda_conv2d *g)
{
    int64_t size = (int64_t)sdlf_dtype_size(op->out[0].dtype), line = cuda_operand16_line(area_of(g)) * 2;
    bool input = op->kind == SDLF_CONV2D_BACKWARD_INPUT, weights = op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS;
    room r = {.rounded = rounds(calculator, op), .images = g->batch};
    if (r.rounded && !input)
        r.columns = column_rows(g) * line;
    else if (!cuda_is_pointwise(g))
        r.columns = column_count(g) * size;
    if (r.rounded && !weights) r.weights = cuda_operand16_bytes(g->filters, weight_count(g) / g->filters);
    if (r.rounded && (input || weights)) r.output = g->filters * line;
    if (weights) r.parts = weight_count(g) * size;
    int64_t bytes = r.columns + r.output + r.parts;
    if (bytes > 0 && WORKSPACE / bytes < r.images) r.images = WORKSPACE / bytes;
    if (r.images < 1) r.images = 1;
    return r;
}

int64_t conv2d_two_step_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    room r = room_of(calculator, op, &g);
    return r.weights + aligned(r.images * r.columns) + aligned(r.images * r.output) + aligned(r.images * r.parts);
}

static char *columns_in(const sdlf_operation *op, const room *r)
{
    return (char *)op->workspace.data + r->weights;
}

static char *outputs_in(const sdlf_operation *op, const room *r)
{
    return columns_in(op, r) + aligned(r->images * r->columns);
}

static char *parts_in(const sdlf_operation *op, const room *r)
{
    return outputs_in(op, r) + aligned(r->images * r->output);
}

static int64_t line_of(int64_t columns, bool rounded)
{
    return rounded ? cuda_operand16_line(columns) : columns;
}

static matrix columns_matrix(const cuda_conv2d *g, const void *columns, bool rounded)
{
    int64_t line = line_of(area_of(g), rounded), all = column_rows(g) * line;
    return (matrix){columns, rounded, line, all / g->groups, all, false};
}

static matrix output_matrix(const cuda_conv2d *g, const void *y, bool rounded)
{
    int64_t line = line_of(area_of(g), rounded);
    return (matrix){y, rounded, line, g->group_filters * line, g->filters * line, false};
}

static matrix weight_matrix(const cuda_conv2d *g, const void *w, int64_t image_stride, bool rounded)
{
    int64_t line = line_of(weight_count(g) / g->filters, rounded);
    return (matrix){w, rounded, line, g->group_filters * line, image_stride, false};
}

/* ---- what products need ---- */

static char *image_of(const sdlf_tensor *tensor, int64_t n)
{
    return (char *)tensor->data + n * (sdlf_tensor_bytes(tensor) / tensor->shape.dim[0]);
}

/* The weights, unchanged or rounded. */
static sdlf_status make_weights(sdlf_calculator *base, const sdlf_operation *op, const cuda_conv2d *g, const room *r,
                                matrix *weights)
{
    *weights = weight_matrix(g, r->rounded ? op->workspace.data : op->in[1].data, 0, r->rounded);
    if (!r->rounded) return SDLF_OK;
    const cuda_operand16 operand = {op->in[1].data, op->workspace.data, g->filters, weight_count(g) / g->filters};
    return cuda_convert_operands(base, &operand, 1);
}

/* The columns of `images` images of x, from the n-th on. */
static sdlf_status make_columns(sdlf_calculator *base, const sdlf_operation *op, const cuda_conv2d *g, const room *r,
                                int64_t n, int64_t images, matrix *columns)
{
    const sdlf_tensor *x = &op->in[0];
    bool pointwise = cuda_is_pointwise(g);
    void *made = columns_in(op, r);
    *columns = columns_matrix(g, pointwise && !r->rounded ? (const void *)image_of(x, n) : made, r->rounded);
    if (!pointwise) return cuda_im2col(base, g, x->dtype, r->rounded, image_of(x, n), made, images);
    if (!r->rounded) return SDLF_OK;
    const cuda_operand16 operand = {image_of(x, n), made, images * g->channels, area_of(g)};
    return cuda_convert_operands(base, &operand, 1);
}

/* `images` images of dy, from the n-th on, unchanged or rounded. */
static sdlf_status make_output(sdlf_calculator *base, const sdlf_operation *op, const cuda_conv2d *g, const room *r,
                               const sdlf_tensor *dy, int64_t n, int64_t images, matrix *output)
{
    void *made = outputs_in(op, r);
    *output = output_matrix(g, r->rounded ? made : (const void *)image_of(dy, n), r->rounded);
    if (!r->rounded) return SDLF_OK;
    const cuda_operand16 operand = {image_of(dy, n), made, images * g->filters, area_of(g)};
    return cuda_convert_operands(base, &operand, 1);
}

/* ---- the kinds ---- */

sdlf_status conv2d_forward_two_step_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_tensor *x = &op->in[0], *y = &op->out[0];
    const room r = room_of(base, op, &g);
    int64_t area = area_of(&g);
    bool has_residual = sdlf_tensor_present(&op->in[3]);
    bool in_place = has_residual && op->in[3].data == y->data; /* the GEMM accumulates into it */
    matrix weights, columns;
    sdlf_status status = make_weights(base, op, &g, &r, &weights);
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += r.images) {
        int64_t images = g.batch - n < r.images ? g.batch - n : r.images;
        status = make_columns(base, op, &g, &r, n, images, &columns);
        if (status == SDLF_OK)
            status = batch_product(base, x->dtype, g.group_filters, area, weight_count(&g) / g.filters, weights,
                                   columns, output_matrix(&g, image_of(y, n), false), images, g.groups, in_place);
    }
    cuda_epilogue epilogue = {
        .dtype = y->dtype,
        .data = y->data,
        .bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL,
        .residual = has_residual && !in_place ? op->in[3].data : NULL,
        .count = sdlf_tensor_count(y),
        .channels = g.filters,
        .area = area,
        .activation = op->conv2d.activation,
    };
    if (status != SDLF_OK) return status;
    if (epilogue.bias == NULL && epilogue.residual == NULL && epilogue.activation.function == SDLF_IDENTITY)
        return SDLF_OK;
    return cuda_apply_epilogue(base, &epilogue);
}

sdlf_status conv2d_backward_input_two_step_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_tensor *dy = &op->in[0], *dx = &op->out[0];
    const room r = room_of(base, op, &g);
    matrix weights, output;
    sdlf_status status = make_weights(base, op, &g, &r, &weights);
    weights.transposed = true;
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += r.images) {
        int64_t images = g.batch - n < r.images ? g.batch - n : r.images;
        void *columns = cuda_is_pointwise(&g) ? image_of(dx, n) : columns_in(op, &r);
        status = make_output(base, op, &g, &r, dy, n, images, &output);
        if (status == SDLF_OK)
            status = batch_product(base, dx->dtype, weight_count(&g) / g.filters, area_of(&g), g.group_filters, weights,
                                   output, columns_matrix(&g, columns, false), images, g.groups, false);
        if (status == SDLF_OK && !cuda_is_pointwise(&g))
            status = cuda_col2im(base, &g, dx->dtype, columns, image_of(dx, n), images);
    }
    return status;
}

sdlf_status conv2d_backward_weights_two_step_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_tensor *dy = &op->in[1], *dw = &op->out[0];
    const room r = room_of(base, op, &g);
    int64_t weights = weight_count(&g);
    char *parts = parts_in(op, &r);
    matrix columns, output;
    sdlf_status status = SDLF_OK;
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += r.images) {
        int64_t images = g.batch - n < r.images ? g.batch - n : r.images;
        status = make_columns(base, op, &g, &r, n, images, &columns);
        columns.transposed = true;
        if (status == SDLF_OK) status = make_output(base, op, &g, &r, dy, n, images, &output);
        if (status == SDLF_OK)
            status = batch_product(base, dw->dtype, g.group_filters, weights / g.filters, area_of(&g), output, columns,
                                   weight_matrix(&g, parts, weights, false), images, g.groups, false);
        if (status == SDLF_OK) status = cuda_sum_parts(base, dw->dtype, parts, dw->data, weights, images, n > 0);
    }
    if (status != SDLF_OK || !sdlf_tensor_present(&op->out[1])) return status;
    return cuda_bias_gradient(base, dy, &op->out[1]);
}
