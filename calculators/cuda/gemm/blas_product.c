/* SPDX-License-Identifier: MIT */
/* GEMMs through cuBLASLt, with bias, residual and ReLU in its epilogue (gemm/blas.h).
 *
 * Our matrices are row-major, cuBLAS's column-major, so we request the transposed product c^T = op(b)^T op(a)^T: its rows
 * are our columns, and its bias, one value per row, is ours. */
#include "calculators/cuda/gemm/blas.h"

#include "calculators/cuda/gemm/convert_operands.h"

#include <string.h>

/* For unrounded float32 operands. In fp16 and bf16 operands are passed in 16 bits; otherwise nothing is rounded. */
cublasComputeType_t cuda_compute_type(sdlf_math math)
{
    return math == SDLF_MATH_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
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

static cuda_product_key key_of(const cuda_blas_product *product)
{
    cuda_product_key key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.m = product->m;
    key.n = product->n;
    key.k = product->k;
    key.dtype = product->dtype;
    key.math = product->math;
    key.rounded = product->rounded;
    key.transpose_a = product->transpose_a;
    key.transpose_b = product->transpose_b;
    key.bias = product->bias != NULL;
    key.residual = product->residual != NULL;
    key.relu = product->relu;
    key.alignment[0] = alignment_of(product->a);
    key.alignment[1] = alignment_of(product->b);
    key.alignment[2] = alignment_of(product->c);
    key.alignment[3] = key.residual ? alignment_of(product->residual) : 16;
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

/* The layout of a matrix as it is stored, which cuBLAS sees transposed. */
static cublasStatus_t lay_out(const cuda_blas_library *library, cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                              int64_t rows, int64_t columns, int64_t line)
{
    return library->lt_layout_create(layout, type, (uint64_t)columns, (uint64_t)rows, line);
}

/* Creates the descriptors of the product, in cuBLAS's view: operand A is op(b)^T, operand B op(a)^T. */
static cublasStatus_t describe(const cuda_calculator *calculator, cuda_product *product)
{
    const cuda_blas_library *library = calculator->library;
    const cuda_product_key *key = &product->key;
    bool wide = key->dtype == SDLF_FLOAT64;
    cudaDataType_t scale = wide ? CUDA_R_64F : CUDA_R_32F, operands = scale;
    if (key->rounded) operands = key->math == SDLF_MATH_FP16 ? CUDA_R_16F : CUDA_R_16BF;
    cudaDataType_t result = wide || key->dtype == SDLF_FLOAT32 ? scale : operands;
    cublasComputeType_t compute = wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    if (!wide && !key->rounded) compute = cuda_compute_type(key->math);
    cublasOperation_t first = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = epilogue_of(key->bias, key->relu);
    int64_t a_columns = key->transpose_a ? key->m : key->k, b_columns = key->transpose_b ? key->k : key->n;
    int64_t a_line = key->rounded ? cuda_operand16_line(a_columns) : a_columns;
    int64_t b_line = key->rounded ? cuda_operand16_line(b_columns) : b_columns;
    cublasStatus_t status = library->lt_operation_create(&product->operation, compute, scale);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(library, product->operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(library, product->operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(library, product->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out(library, &product->layout[0], operands, key->transpose_b ? key->n : key->k, b_columns, b_line);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out(library, &product->layout[1], operands, key->transpose_a ? key->k : key->m, a_columns, a_line);
    if (status == CUBLAS_STATUS_SUCCESS) status = lay_out(library, &product->layout[2], result, key->m, key->n, key->n);
    return status;
}

static cublasStatus_t choose(cuda_calculator *calculator, cuda_product *product)
{
    const cuda_blas_library *library = calculator->library;
    cublasLtMatmulPreference_t preference = NULL;
    cublasStatus_t status = library->lt_preference_create(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    size_t workspace = CUDA_BLAS_WORKSPACE;
    const uint32_t *alignment = product->key.alignment; /* of a, b, c, residual */
    library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment[1],
                               sizeof *alignment);
    library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment[0],
                               sizeof *alignment);
    library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment[3],
                               sizeof *alignment);
    library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment[2],
                               sizeof *alignment);
    /* no partial sums in 16 bits */
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (product->key.dtype != SDLF_FLOAT32 && product->key.dtype != SDLF_FLOAT64)
        library->lt_preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                   sizeof reductions);
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    status =
        calculator->library->lt_choose(calculator->blas_lt, product->operation, product->layout[0], product->layout[1],
                                       product->layout[2], product->layout[2], preference, 1, &found, &count);
    library->lt_preference_destroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && count == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS) product->algorithm = found.algo;
    return status;
}

/* Returns the cached product for this key, creating it if needed. When the table is full, the older half is released. */
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

sdlf_status cuda_blas_multiply(cuda_calculator *calculator, const cuda_blas_product *product)
{
    const cuda_product_key key = key_of(product);
    cuda_product *kept = NULL;
    sdlf_status found = find_product(calculator, &key, &kept);
    if (found != SDLF_OK) return found;
    const float alpha32 = product->alpha, beta32 = key.residual ? product->beta : 0.0f;
    const double alpha64 = (double)alpha32, beta64 = (double)beta32;
    bool wide = product->dtype == SDLF_FLOAT64;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (key.bias)
        status = set(calculator->library, kept->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias,
                     sizeof product->bias);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = calculator->library->lt_multiply(
            calculator->blas_lt, kept->operation, wide ? (const void *)&alpha64 : &alpha32, product->b, kept->layout[0],
            product->a, kept->layout[1], wide ? (const void *)&beta64 : &beta32,
            key.residual ? product->residual : product->c, kept->layout[2], product->c, kept->layout[2],
            &kept->algorithm, calculator->blas_workspace, CUDA_BLAS_WORKSPACE, calculator->stream);
    return cuda_check_blas(status, "gemm");
}

sdlf_status cuda_blas_multiply_first(cuda_calculator *calculator, cuda_blas_product *product, int64_t rows)
{
    cuda_blas_product first = *product;
    first.m = rows;
    product->m -= rows;
    product->a = (const float *)product->a + rows * product->k;
    product->c = (float *)product->c + rows * product->n;
    if (product->residual != NULL) product->residual = (const float *)product->residual + rows * product->n;
    return cuda_blas_multiply(calculator, &first);
}
