/* gemm_backward_sgd as two products and a sweep: dx = dy w; v = momentum v + dy^T x, where the product adds to the velocity
 * itself, so that no gradient is stored; then w and v move on. Moves w three times and v four times less the gradient's
 * writing and reading. Without a velocity, or with Nesterov's rule, which needs the old one, and for biases and activations, the
 * plan keeps the parts. */
#include "calculators/cuda/blas_library.h"
#include "calculators/cuda/cuda.h"

bool gemm_backward_sgd_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    bool fits = op->in[0].shape.dim[0] <= INT32_MAX && op->in[0].shape.dim[1] <= INT32_MAX &&
                op->in[1].shape.dim[1] <= INT32_MAX; /* cuBLAS takes them as int */
    bool parts = sdlf_tensor_present(&op->out[3]) || op->gemm_backward.activation.function != SDLF_IDENTITY;
    return fits && !parts && sdlf_tensor_present(&op->out[1]) && !op->gemm_backward.sgd.nesterov;
}

static sdlf_status input_gradient(sdlf_calculator *base, const sdlf_operation *op)
{
    if (!sdlf_tensor_present(&op->out[2])) return SDLF_OK;
    const sdlf_operation product = {
        .kind = SDLF_GEMM, .in = {op->in[1], op->out[0]}, .out = {op->out[2]}, .gemm = {.alpha = 1}};
    return gemm_cuda(base, &product);
}

/* v = momentum v + dy^T x, in cuBLAS's column-major view: v^T (I,U) = x^T dy. */
static sdlf_status velocity(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *x = &op->in[0], *dy = &op->in[1], *v = &op->out[1];
    int rows = (int)x->shape.dim[0], inputs = (int)x->shape.dim[1], units = (int)dy->shape.dim[1];
    bool wide = v->dtype == SDLF_FLOAT64;
    const float one32 = 1, momentum32 = op->gemm_backward.sgd.momentum;
    const double one64 = 1, momentum64 = (double)op->gemm_backward.sgd.momentum;
    cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    return cuda_check_blas(
        calculator->library->gemm(calculator->blas, CUBLAS_OP_N, CUBLAS_OP_T, inputs, units, rows,
                                  wide ? (const void *)&one64 : &one32, x->data, type, inputs, dy->data, type, units,
                                  wide ? (const void *)&momentum64 : &momentum32, v->data, type, inputs,
                                  wide ? CUBLAS_COMPUTE_64F : cuda_compute_type(calculator->math), CUBLAS_GEMM_DEFAULT),
        "gemm_backward_sgd");
}

sdlf_status gemm_backward_sgd_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_status status = input_gradient(base, op);
    if (status == SDLF_OK) status = velocity(base, op);
    return status == SDLF_OK ? cuda_follow_velocity(base, op) : status;
}
