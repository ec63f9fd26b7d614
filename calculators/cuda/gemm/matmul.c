/* SPDX-License-Identifier: MIT */
/* matmul: if the matrices of a batch are evenly spaced, a single strided-batched cuBLAS call; else one gemm after another
 * (calculators/matmul.h). In fp16 and bf16 the operands are rounded into the workspace first; they must then be contiguous, or one matrix
 * for all. */
#include "calculators/matmul.h"

#include "calculators/cuda/gemm/blas.h"
#include "calculators/cuda/gemm/convert_operands.h"

/* The matrices of an operand. */
typedef struct batch {
    int64_t count, stride; /* elements from one matrix to the next */
    int64_t rows, columns; /* as they are stored */
    bool even;
} batch;

static batch batch_of(const sdlf_tensor *x)
{
    int rank = x->shape.rank;
    batch b = {.count = 1, .rows = x->shape.dim[rank - 2], .columns = x->shape.dim[rank - 1], .even = true};
    for (int axis = rank - 3; axis >= 0; axis--) {
        int64_t dim = x->shape.dim[axis];
        if (dim == 1) continue;
        if (b.count == 1)
            b.stride = x->stride[axis];
        else
            b.even = b.even && x->stride[axis] == b.stride * b.count;
        b.count *= dim;
    }
    return b;
}

static const cuda_calculator *known(const sdlf_calculator *calculator)
{
    return (const cuda_calculator *)calculator;
}

static bool rounds(const sdlf_calculator *base, const sdlf_operation *op)
{
    return cuda_has_operands16(known(base)->math) && op->out[0].dtype == SDLF_FLOAT32;
}

/* Number of matrices to round: all of them, or one if it is shared. */
static int64_t distinct(const batch *b)
{
    return b->stride == 0 ? 1 : b->count;
}

static int64_t rounded_bytes(const batch *b)
{
    return cuda_operand16_bytes(distinct(b) * b->rows, b->columns);
}

/* True if one call suffices. cuBLAS sizes are int. */
static bool is_one_call(const sdlf_calculator *base, const sdlf_operation *op)
{
    const batch a = batch_of(&op->in[0]), b = batch_of(&op->in[1]), y = batch_of(&op->out[0]);
    const batch *all[] = {&a, &b, &y};
    bool fits = y.count > 1 && a.even && b.even && y.count <= INT32_MAX;
    for (int i = 0; i < 3; i++) {
        const batch *m = all[i];
        fits = fits && m->rows > 0 && m->columns > 0 && m->rows <= INT32_MAX && m->columns <= INT32_MAX - 8;
        bool dense = m->stride == 0 || m->stride == m->rows * m->columns || m->count == 1;
        if (rounds(base, op)) fits = fits && dense;
    }
    return fits;
}

int64_t matmul_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (!is_one_call(base, op)) return sdlf_matmul_by_gemm_workspace(base, op);
    if (!rounds(base, op)) return 0;
    const batch a = batch_of(&op->in[0]), b = batch_of(&op->in[1]);
    return rounded_bytes(&a) + rounded_bytes(&b);
}

/* An operand as it is passed to cuBLAS. */
typedef struct operand {
    const void *data;
    cudaDataType_t type;
    int line; /* from one row to the next */
    long long stride;
} operand;

static operand operand_of(const sdlf_tensor *x, const batch *b)
{
    bool wide = x->dtype == SDLF_FLOAT64;
    return (operand){x->data, wide ? CUDA_R_64F : CUDA_R_32F, (int)b->columns, b->stride};
}

static sdlf_status round_both(sdlf_calculator *base, const sdlf_operation *op, const batch *a, const batch *b,
                              operand made[2])
{
    const batch *from[] = {a, b};
    cuda_operand16 operands[2];
    char *room = op->workspace.data;
    for (int i = 0; i < 2; i++) {
        operands[i] = (cuda_operand16){op->in[i].data, room, distinct(from[i]) * from[i]->rows, from[i]->columns};
        room += rounded_bytes(from[i]);
        made[i].data = operands[i].to;
        made[i].type = known(base)->math == SDLF_MATH_FP16 ? CUDA_R_16F : CUDA_R_16BF;
        made[i].line = (int)cuda_operand16_line(from[i]->columns);
        made[i].stride = from[i]->stride == 0 ? 0 : from[i]->rows * made[i].line;
    }
    return cuda_convert_operands(base, operands, 2);
}

sdlf_status matmul_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (!is_one_call(base, op)) return sdlf_matmul_by_gemm(base, op);
    cuda_calculator *calculator = cuda_calculator_from(base);
    const batch a = batch_of(&op->in[0]), b = batch_of(&op->in[1]), y = batch_of(&op->out[0]);
    bool wide = op->out[0].dtype == SDLF_FLOAT64, transposed_a = op->matmul.transpose_a,
         transposed_b = op->matmul.transpose_b;
    operand made[2] = {operand_of(&op->in[0], &a), operand_of(&op->in[1], &b)};
    const operand out = operand_of(&op->out[0], &y);
    const float one32 = 1, none32 = 0;
    const double one64 = 1, none64 = 0;
    sdlf_status status = rounds(base, op) ? round_both(base, op, &a, &b, made) : SDLF_OK;
    if (status != SDLF_OK) return status;
    /* ours are row-major, cuBLAS's column-major: y^T = op(b)^T op(a)^T */
    cublasStatus_t done = calculator->library->gemm_strided_batched(
        calculator->blas, transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N, transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N,
        (int)y.columns, (int)y.rows, (int)(transposed_a ? a.rows : a.columns), wide ? (const void *)&one64 : &one32,
        made[1].data, made[1].type, made[1].line, made[1].stride, made[0].data, made[0].type, made[0].line,
        made[0].stride, wide ? (const void *)&none64 : &none32, (void *)out.data, out.type, out.line, out.stride,
        (int)y.count, wide ? CUBLAS_COMPUTE_64F : cuda_compute_type(calculator->math), CUBLAS_GEMM_DEFAULT);
    return cuda_check_blas(done, "matmul");
}
