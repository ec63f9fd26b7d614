/* gemm through cuBLASLt, with bias, residual and ReLU in the product's own epilogue; other activations follow in place.
 *
 * Our matrices are row-major, cuBLAS's column-major, so it is asked for the transposed product c^T = op(b)^T op(a)^T: its
 * rows are our columns, and its bias, one number a row, is ours. The algorithm for a shape is asked of cuBLASLt once and kept
 * (descriptors and search would cost more than small products). */
#include "calculators/cuda/gemm.h"

#include "calculators/cuda/blas_library.h"
#include "calculators/cuda/gemm_tall.h"

#include <string.h>

cublasComputeType_t cuda_compute_type(sdlf_math math)
{
    switch (math) {
    case SDLF_MATH_TF32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case SDLF_MATH_FP16: return CUBLAS_COMPUTE_32F_FAST_16F;
    case SDLF_MATH_BF16: return CUBLAS_COMPUTE_32F_FAST_16BF;
    default: return CUBLAS_COMPUTE_32F;
    }
}

/* The largest power of two, up to 16, that an address is a multiple of. */
static uint32_t alignment_of(const void *address)
{
    uint32_t alignment = 16;
    while (((uintptr_t)address & (alignment - 1)) != 0) alignment /= 2;
    return alignment;
}

static cublasLtEpilogue_t epilogue_of(bool bias, bool relu)
{
    if (relu) return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static cuda_product_key key_of(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor *a = &op->in[0], *b = &op->in[1], *c = &op->out[0];
    cuda_product_key key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.m = c->shape.dim[0];
    key.n = c->shape.dim[1];
    key.k = a->shape.dim[op->gemm.transpose_a ? 0 : 1];
    key.dtype = c->dtype;
    key.math = calculator->math;
    key.transpose_a = op->gemm.transpose_a;
    key.transpose_b = op->gemm.transpose_b;
    key.bias = sdlf_tensor_present(&op->in[2]);
    key.residual = sdlf_tensor_present(&op->in[3]);
    key.relu = op->gemm.activation.function == SDLF_RELU;
    key.alignment[0] = alignment_of(a->data);
    key.alignment[1] = alignment_of(b->data);
    key.alignment[2] = alignment_of(c->data);
    key.alignment[3] = key.residual ? alignment_of(op->in[3].data) : 16;
    return key;
}

static void destroy(const cuda_blas_library *library, cuda_product *product)
{
    if (product->operation != NULL) library->lt_operation_destroy(product->operation);
    for (int i = 0; i < 3; i++) {
        if (product->layout[i] != NULL) library->lt_layout_destroy(product->layout[i]);
    }
    memset(product, 0, sizeof *product);
}

void cuda_release_products(cuda_calculator *calculator)
{
    for (int i = 0; i < calculator->product_count; i++) destroy(calculator->library, &calculator->products[i]);
    calculator->product_count = 0;
}

static cublasStatus_t set(const cuda_blas_library *library, cublasLtMatmulDesc_t descriptor,
                          cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size)
{
    return library->lt_operation_set(descriptor, attribute, value, size);
}

/* Descriptors of the product, in cuBLAS's view: first factor op(b)^T, second op(a)^T. */
static cublasStatus_t describe(const cuda_calculator *calculator, cuda_product *product)
{
    const cuda_product_key *key = &product->key;
    bool wide = key->dtype == SDLF_FLOAT64;
    cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    cublasComputeType_t compute = wide ? CUBLAS_COMPUTE_64F : cuda_compute_type(key->math);
    cublasOperation_t first = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = epilogue_of(key->bias, key->relu);
    uint64_t m = (uint64_t)key->m, n = (uint64_t)key->n, k = (uint64_t)key->k;
    cublasStatus_t status = calculator->library->lt_operation_create(&product->operation, compute, type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(calculator->library, product->operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(calculator->library, product->operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            set(calculator->library, product->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = key->transpose_b ? calculator->library->lt_layout_create(&product->layout[0], type, k, n, (int64_t)k)
                                  : calculator->library->lt_layout_create(&product->layout[0], type, n, k, (int64_t)n);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = key->transpose_a ? calculator->library->lt_layout_create(&product->layout[1], type, m, k, (int64_t)m)
                                  : calculator->library->lt_layout_create(&product->layout[1], type, k, m, (int64_t)k);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = calculator->library->lt_layout_create(&product->layout[2], type, n, m, (int64_t)n);
    return status;
}

static cublasStatus_t choose(cuda_calculator *calculator, cuda_product *product)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasStatus_t status = calculator->library->lt_preference_create(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    size_t workspace = CUDA_BLAS_WORKSPACE;
    const uint32_t *alignment = product->key.alignment; /* of our a, b, c, residual */
    calculator->library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                           sizeof workspace);
    calculator->library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment[1],
                                           sizeof *alignment);
    calculator->library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment[0],
                                           sizeof *alignment);
    calculator->library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment[3],
                                           sizeof *alignment);
    calculator->library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment[2],
                                           sizeof *alignment);
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    status =
        calculator->library->lt_choose(calculator->blas_lt, product->operation, product->layout[0], product->layout[1],
                                       product->layout[2], product->layout[2], preference, 1, &found, &count);
    calculator->library->lt_preference_destroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && count == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS) product->algorithm = found.algo;
    return status;
}

/* The kept product for this key, made if new. When the table is full the oldest half goes. */
static sdlf_status find_product(cuda_calculator *calculator, const cuda_product_key *key, cuda_product **found)
{
    for (int i = 0; i < calculator->product_count; i++) {
        *found = &calculator->products[i];
        if (memcmp(&(*found)->key, key, sizeof *key) == 0) return SDLF_OK;
    }
    if (calculator->product_count == CUDA_PRODUCTS) {
        for (int i = 0; i < CUDA_PRODUCTS / 2; i++) destroy(calculator->library, &calculator->products[i]);
        memmove(calculator->products, calculator->products + CUDA_PRODUCTS / 2,
                CUDA_PRODUCTS / 2 * sizeof *calculator->products);
        memset(calculator->products + CUDA_PRODUCTS / 2, 0, CUDA_PRODUCTS / 2 * sizeof *calculator->products);
        calculator->product_count = CUDA_PRODUCTS / 2;
    }
    cuda_product *product = &calculator->products[calculator->product_count];
    product->key = *key;
    cublasStatus_t status = describe(calculator, product);
    if (status == CUBLAS_STATUS_SUCCESS) status = choose(calculator, product);
    if (status != CUBLAS_STATUS_SUCCESS) {
        destroy(calculator->library, product);
        return cuda_check_blas(status, "cuBLASLt");
    }
    calculator->product_count++;
    *found = product;
    return SDLF_OK;
}

/* c = [ReLU](alpha op(a) op(b) + bias + beta residual). */
static sdlf_status multiply(cuda_calculator *calculator, const sdlf_operation *op, cuda_product *product, float beta)
{
    const sdlf_tensor *a = &op->in[0], *b = &op->in[1], *c = &op->out[0];
    const float alpha32 = op->gemm.alpha, beta32 = product->key.residual ? beta : 0.0f;
    const double alpha64 = (double)op->gemm.alpha, beta64 = (double)beta32;
    bool wide = c->dtype == SDLF_FLOAT64;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (product->key.bias)
        status = set(calculator->library, product->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &op->in[2].data,
                     sizeof op->in[2].data);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = calculator->library->lt_multiply(
            calculator->blas_lt, product->operation, wide ? (const void *)&alpha64 : &alpha32, b->data,
            product->layout[0], a->data, product->layout[1], wide ? (const void *)&beta64 : &beta32,
            product->key.residual ? op->in[3].data : c->data, product->layout[2], c->data, product->layout[2],
            &product->algorithm, calculator->blas_workspace, CUDA_BLAS_WORKSPACE, calculator->stream);
    return cuda_check_blas(status, "gemm");
}

/* What the product leaves over: c = act(c + bias + residual), any of the three absent. */
static sdlf_status finish(sdlf_calculator *base, const sdlf_operation *op, bool bias, bool residual, bool activation)
{
    const sdlf_tensor *c = &op->out[0];
    cuda_epilogue epilogue = {
        .dtype = c->dtype,
        .data = c->data,
        .bias = bias && sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL,
        .residual = residual && sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL,
        .count = sdlf_tensor_count(c),
        .channels = c->shape.dim[1],
        .area = 1,
    };
    if (activation) epilogue.activation = op->gemm.activation;
    if (epilogue.bias == NULL && epilogue.residual == NULL && epilogue.activation.function == SDLF_IDENTITY)
        return SDLF_OK;
    return cuda_apply_epilogue(base, &epilogue);
}

/* A fully connected layer's forward pass, in float32. */
static bool is_forward(const cuda_product_key *key)
{
    return key->dtype == SDLF_FLOAT32 && !key->transpose_a && key->transpose_b;
}

static bool suits_few_rows(const cuda_calculator *calculator, const cuda_product_key *key)
{
    bool tensor_cores = cuda_has_tensor_cores(calculator);
    return is_forward(key) && key->m <= FEW_ROWS && key->m * key->n * 4 <= CUDA_BLAS_WORKSPACE && key->n >= 64 &&
           key->n <= INT32_MAX && key->k >= 256 && key->k <= INT32_MAX && key->k % 4 == 0 && key->alignment[0] == 16 &&
           key->alignment[1] == 16 && calculator->shared_most >= (key->m > 64 ? 222 : 150) << 10 &&
           (calculator->math == SDLF_MATH_FP32 || tensor_cores);
}

sdlf_status gemm_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_product_key key = key_of(calculator, op);
    if (key.m == 0 || key.n == 0) return SDLF_OK;
    int rung = gemm_tall_choice(calculator, op);
    if (rung != GEMM_CUBLAS) return gemm_tall_cuda(base, op, rung);
    bool chosen = op->algorithm == GEMM_CUBLAS;
    if (!chosen && is_forward(&key) && key.n <= FEW_COLUMNS && key.m <= INT32_MAX)
        return cuda_gemm_few_columns(base, op);
    if (!chosen && suits_few_rows(calculator, &key)) return cuda_gemm_few_rows(base, op);
    if (key.k == 0) { /* an empty sum */
        sdlf_status status = SDLF_OK;
        if (!key.residual || op->in[3].data != op->out[0].data)
            status = cuda_check(
                cudaMemsetAsync(op->out[0].data, 0, (size_t)sdlf_tensor_bytes(&op->out[0]), calculator->stream),
                "gemm");
        else
            return finish(base, op, true, false, true); /* c is the residual already */
        return status == SDLF_OK ? finish(base, op, true, true, true) : status;
    }
    if (key.dtype == SDLF_FLOAT64) { /* double products have no epilogue but the residual */
        key.bias = key.relu = false;
    }
    cuda_product *product = NULL;
    sdlf_status status = find_product(calculator, &key, &product);
    if (status == SDLF_OK) status = multiply(calculator, op, product, 1);
    if (status != SDLF_OK) return status;
    bool activation_left = op->gemm.activation.function != SDLF_IDENTITY && !key.relu;
    return finish(base, op, !key.bias, false, activation_left);
}

sdlf_status cuda_gemm_accumulate(sdlf_calculator *base, const sdlf_operation *op, float beta)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_product_key key = key_of(calculator, op);
    cuda_product *product = NULL;
    sdlf_status status = find_product(calculator, &key, &product);
    return status == SDLF_OK ? multiply(calculator, op, product, beta) : status;
}
