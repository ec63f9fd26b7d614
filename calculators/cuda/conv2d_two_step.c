/* Convolution in two steps: im2col writes every window as a column, then products do the arithmetic, one for each image and
 * group in a strided batch. A 1x1 convolution with stride 1 has its columns in x already and skips the first step.
 *
 *   forward   y[n,g]  (K/G, PQ) = w[g] (K/G, CRS/G) columns[n,g] (CRS/G, PQ)
 *   dx        columns[n,g] = w[g]^T dy[n,g], then col2im
 *   dw        dw[g] = sum over n of dy[n,g] columns[n,g]^T: a part for each image, added in order
 *
 * The workspace holds as many images' columns as fit WORKSPACE, at least one. */
#include "calculators/cuda/blas_library.h"
#include "calculators/cuda/conv2d.h"

static const int64_t WORKSPACE = INT64_C(256) << 20;

static cuda_conv2d geometry(const sdlf_operation *op)
{
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    return cuda_conv2d_of(op, x, w, y);
}

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

/* Elements of one image's columns, and of one image's part of dw. */
static int64_t column_count(const cuda_conv2d *g)
{
    return g->channels * g->window.size[0] * g->window.size[1] * g->out_height * g->out_width;
}

static int64_t weight_count(const cuda_conv2d *g)
{
    return g->filters * g->group_channels * g->window.size[0] * g->window.size[1];
}

/* Elements of workspace that an image needs. */
static int64_t image_count(const sdlf_operation *op, const cuda_conv2d *g)
{
    int64_t columns = cuda_is_pointwise(g) ? 0 : column_count(g);
    return op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS ? columns + weight_count(g) : columns;
}

static int64_t images_at_once(const sdlf_operation *op, const cuda_conv2d *g)
{
    int64_t bytes = image_count(op, g) * (int64_t)sdlf_dtype_size(op->out[0].dtype);
    int64_t images = bytes > 0 ? WORKSPACE / bytes : g->batch;
    return images < 1 ? 1 : images > g->batch ? g->batch : images;
}

int64_t conv2d_two_step_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    cuda_conv2d g = geometry(op);
    return images_at_once(op, &g) * image_count(op, &g) * (int64_t)sdlf_dtype_size(op->out[0].dtype);
}

/* A row-major matrix among `images` x `groups` of them; strides in elements. */
typedef struct matrix {
    const void *data;
    int64_t columns; /* of the stored matrix: its leading dimension */
    int64_t group_stride, image_stride;
    bool transposed;
} matrix;

static const char *at(const matrix *m, int64_t group, size_t size)
{
    return (const char *)m->data + (size_t)(group * m->group_stride) * size;
}

/* c (m,n) = op(a) (m,k) op(b) (k,n) for every image and group, or c + that. cuBLAS, column-major, is asked for c^T = op(b)^T op(a)^T. */
static sdlf_status multiply(sdlf_calculator *base, sdlf_dtype dtype, int64_t m, int64_t n, int64_t k, matrix a,
                            matrix b, matrix c, int64_t images, int64_t groups, bool accumulate)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    bool wide = dtype == SDLF_FLOAT64;
    size_t size = sdlf_dtype_size(dtype);
    const float one32 = 1, kept32 = accumulate ? 1 : 0;
    const double one64 = 1, kept64 = accumulate ? 1 : 0;
    cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    for (int64_t group = 0; group < groups; group++) {
        cublasStatus_t status = calculator->library->gemm_strided_batched(
            calculator->blas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
            (int)n, (int)m, (int)k, wide ? (const void *)&one64 : &one32, at(&b, group, size), type, (int)b.columns,
            b.image_stride, at(&a, group, size), type, (int)a.columns, a.image_stride,
            wide ? (const void *)&kept64 : &kept32, (void *)at(&c, group, size), type, (int)c.columns, c.image_stride,
            (int)images, wide ? CUBLAS_COMPUTE_64F : cuda_compute_type(calculator->math), CUBLAS_GEMM_DEFAULT);
        if (status != CUBLAS_STATUS_SUCCESS) return cuda_check_blas(status, "conv2d, two-step product");
    }
    return SDLF_OK;
}

/* The operands of image `first` on, as matrices. */
static matrix columns_matrix(const cuda_conv2d *g, const void *columns)
{
    int64_t all = column_count(g);
    return (matrix){columns, g->out_height * g->out_width, all / g->groups, all, false};
}

static matrix output_matrix(const cuda_conv2d *g, const void *y)
{
    int64_t area = g->out_height * g->out_width;
    return (matrix){y, area, g->group_filters * area, g->filters * area, false};
}

static matrix weight_matrix(const cuda_conv2d *g, const void *w, int64_t image_stride)
{
    int64_t row = weight_count(g) / g->filters;
    return (matrix){w, row, g->group_filters * row, image_stride, false};
}

static char *image_of(const sdlf_tensor *tensor, int64_t n)
{
    return (char *)tensor->data + n * (sdlf_tensor_bytes(tensor) / tensor->shape.dim[0]);
}

sdlf_status conv2d_forward_two_step_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_conv2d g = geometry(op);
    const sdlf_tensor *x = &op->in[0], *y = &op->out[0];
    int64_t step = images_at_once(op, &g), area = g.out_height * g.out_width;
    bool has_residual = sdlf_tensor_present(&op->in[3]);
    bool in_place = has_residual && op->in[3].data == y->data; /* the product is added to it */
    sdlf_status status = SDLF_OK;
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += step) {
        int64_t images = g.batch - n < step ? g.batch - n : step;
        const void *columns = image_of(x, n);
        if (!cuda_is_pointwise(&g)) {
            columns = op->workspace.data;
            status = cuda_im2col(base, &g, x->dtype, image_of(x, n), op->workspace.data, images);
        }
        if (status == SDLF_OK)
            status = multiply(base, x->dtype, g.group_filters, area, weight_count(&g) / g.filters,
                              weight_matrix(&g, op->in[1].data, 0), columns_matrix(&g, columns),
                              output_matrix(&g, image_of(y, n)), images, g.groups, in_place);
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
    cuda_conv2d g = geometry(op);
    const sdlf_tensor *dy = &op->in[0], *dx = &op->out[0];
    int64_t step = images_at_once(op, &g), area = g.out_height * g.out_width;
    sdlf_status status = SDLF_OK;
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += step) {
        int64_t images = g.batch - n < step ? g.batch - n : step;
        void *columns = cuda_is_pointwise(&g) ? image_of(dx, n) : op->workspace.data;
        matrix weights = weight_matrix(&g, op->in[1].data, 0);
        weights.transposed = true;
        status = multiply(base, dx->dtype, weight_count(&g) / g.filters, area, g.group_filters, weights,
                          output_matrix(&g, image_of(dy, n)), columns_matrix(&g, columns), images, g.groups, false);
        if (status == SDLF_OK && !cuda_is_pointwise(&g))
            status = cuda_col2im(base, &g, dx->dtype, columns, image_of(dx, n), images);
    }
    return status;
}

sdlf_status conv2d_backward_weights_two_step_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_conv2d g = geometry(op);
    const sdlf_tensor *x = &op->in[0], *dy = &op->in[1], *dw = &op->out[0];
    int64_t step = images_at_once(op, &g), area = g.out_height * g.out_width, weights = weight_count(&g);
    sdlf_status status = SDLF_OK;
    for (int64_t n = 0; n < g.batch && status == SDLF_OK; n += step) {
        int64_t images = g.batch - n < step ? g.batch - n : step;
        void *parts = op->workspace.data;
        const void *columns = image_of(x, n);
        if (!cuda_is_pointwise(&g)) {
            void *made = (char *)parts + (size_t)(step * weights) * sdlf_dtype_size(dw->dtype);
            columns = made;
            status = cuda_im2col(base, &g, x->dtype, image_of(x, n), made, images);
        }
        matrix transposed = columns_matrix(&g, columns);
        transposed.transposed = true;
        if (status == SDLF_OK)
            status = multiply(base, dw->dtype, g.group_filters, weights / g.filters, area,
                              output_matrix(&g, image_of(dy, n)), transposed, weight_matrix(&g, parts, weights), images,
                              g.groups, false);
        if (status == SDLF_OK) status = cuda_sum_parts(base, dw->dtype, parts, dw->data, weights, images, n > 0);
    }
    if (status != SDLF_OK || !sdlf_tensor_present(&op->out[1])) return status;
    return cuda_bias_gradient(base, dy, &op->out[1]);
}
