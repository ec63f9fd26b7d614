/* SPDX-License-Identifier: MIT */
/* See matmul.h. */
#include "calculators/matmul.h"

int64_t sdlf_matrix_offset(const sdlf_tensor *x, int64_t index)
{
    int64_t offset = 0;
    for (int axis = x->shape.rank - 3; axis >= 0; axis--) {
        offset += index % x->shape.dim[axis] * x->stride[axis];
        index /= x->shape.dim[axis];
    }
    return offset;
}

static sdlf_tensor matrix_of(const sdlf_tensor *x, int64_t index)
{
    int rank = x->shape.rank;
    sdlf_tensor matrix =
        sdlf_tensor_view(x->dtype, sdlf_shape(x->shape.dim[rank - 2], x->shape.dim[rank - 1]), x->data);
    if (x->data) matrix.data = (char *)x->data + sdlf_matrix_offset(x, index) * (int64_t)sdlf_dtype_size(x->dtype);
    return matrix;
}

sdlf_operation sdlf_matmul_product(const sdlf_operation *operation, int64_t index)
{
    return (sdlf_operation){
        .kind = SDLF_GEMM,
        .in = {matrix_of(&operation->in[0], index), matrix_of(&operation->in[1], index)},
        .out = {matrix_of(&operation->out[0], index)},
        .workspace = operation->workspace,
        .gemm = {.transpose_a = operation->matmul.transpose_a,
                 .transpose_b = operation->matmul.transpose_b,
                 .alpha = 1},
    };
}

sdlf_status sdlf_matmul_by_gemm(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_shape *y = &operation->out[0].shape;
    int64_t matrices = sdlf_shape_span(*y, 0, y->rank - 2);
    sdlf_status status = SDLF_OK;
    for (int64_t i = 0; i < matrices && status == SDLF_OK; i++) {
        sdlf_operation product = sdlf_matmul_product(operation, i);
        status = calculator->type->kernel[SDLF_GEMM].run(calculator, &product);
    }
    return status;
}

bool sdlf_matmul_by_gemm_supports(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_operation product = sdlf_matmul_product(operation, 0);
    return sdlf_calculator_supports(calculator, &product);
}

int64_t sdlf_matmul_by_gemm_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_operation product = sdlf_matmul_product(operation, 0);
    return sdlf_calculator_workspace(calculator, &product);
}
