/* SPDX-License-Identifier: MIT */
/* The CUDA calculator's object, its kernels, and what they share. For C and for CUDA C. */
#ifndef SDLF_CALCULATORS_CUDA_H
#define SDLF_CALCULATORS_CUDA_H

#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <sdlf/calculator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A product whose descriptors and algorithm are kept (gemm/blas_product.c). The key is compared byte by byte. */
typedef struct cuda_product_key {
    int64_t m, n, k;
    sdlf_dtype dtype;
    sdlf_math math;
    uint32_t alignment[4];
    bool rounded, transpose_a, transpose_b, bias, residual, relu;
} cuda_product_key;

typedef struct cuda_product {
    cuda_product_key key;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t layout[3];
    cublasLtMatmulAlgo_t algorithm;
} cuda_product;

enum { CUDA_PRODUCTS = 64 };

/* All work goes to one stream, in order, except for the transfers that queues.c puts on a second one; nothing waits for it but
 * download and synchronize. */
/* Blocks of a cluster, those of them that every device with clusters runs, and blocks that a multiprocessor has room for, that are asked about. */
enum { CUDA_CLUSTER = 16, CUDA_CLUSTER_PORTABLE = 8, CUDA_CLUSTER_FIT = 6 };

typedef struct cuda_calculator {
    sdlf_calculator base;
    int device;
    int capability; /* 90 for 9.0 */
    int kernels; /* architecture that this build's kernels for it were made for; negative: translated by the driver */
    int multiprocessors;
    int shared_most;                                  /* bytes of shared memory that a block may have */
    int clusters[CUDA_CLUSTER_FIT][CUDA_CLUSTER + 1]; /* cuda_clusters_at_once */
    bool overlaps; /* may a kernel start while the one before it ends (launch.cuh)? */
    sdlf_math math;
    char space[16];                    /* "cuda:0" */
    char name[256];                    /* of the device */
    struct cuda_blas_library *library; /* owned; gemm/blas.h, which C++ cannot read */
    cudaStream_t stream, transfers;
    cublasHandle_t blas;
    cublasLtHandle_t blas_lt;
    void *blas_workspace; /* ours, so that no library allocates while work is recorded */
    unsigned *tickets;    /* CUDA_TICKETS of them, all 0 between kernels; see take_ticket in kernels.cuh */
    cuda_product products[CUDA_PRODUCTS];
    int product_count;
} cuda_calculator;

enum { CUDA_BLAS_WORKSPACE = 32 << 20, CUDA_TICKETS = 1 << 14 };

/* The calculator behind the interface; its device becomes the calling thread's. Every entry point begins with it, so that
 * calculators of several devices, and calls from other threads than the one that opened them, find their own. */
cuda_calculator *cuda_calculator_from(sdlf_calculator *calculator);
static inline cudaStream_t cuda_stream(sdlf_calculator *calculator)
{
    return cuda_calculator_from(calculator)->stream;
}

/* a / b, rounded up: blocks of b that hold a. */
static inline int64_t cuda_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

extern const sdlf_queue_class cuda_queues;

/* Does the device have what came with that compute capability, and were its kernels built to use it? */
static inline bool cuda_is_built_for(const cuda_calculator *calculator, int capability)
{
    int built = calculator->kernels < 0 ? -calculator->kernels : calculator->kernels;
    return calculator->capability >= capability && built >= capability;
}

/* Are there tensor cores for tf32 and bfloat16, and kernels of ours that use them? */
static inline bool cuda_has_tensor_cores(const cuda_calculator *calculator)
{
    return cuda_is_built_for(calculator, 80);
}

/* Clusters of `size` blocks that run at a time where `fit` of the blocks have room on a multiprocessor (clusters.cu); 0: none of that size,
 * which is beyond CUDA_CLUSTER_PORTABLE. */
void cuda_count_clusters(cuda_calculator *calculator);
static inline int cuda_clusters_at_once(const cuda_calculator *calculator, int size, int fit)
{
    int known = fit < CUDA_CLUSTER_FIT ? fit : CUDA_CLUSTER_FIT;
    return calculator->clusters[known - 1][size];
}

/* SDLF_OK, or SDLF_ERROR_DEVICE (SDLF_ERROR_MEMORY where memory ran out) with what was tried and CUDA's own words. */
sdlf_status cuda_check(cudaError_t error, const char *what);
/* The same for the launch just made. */
sdlf_status cuda_check_launch(const char *kernel);
sdlf_status cuda_check_blas(cublasStatus_t status, const char *what);

/* Blocks of `threads` for `count` elements, at most what keeps every multiprocessor busy: kernels stride over the rest. */
static inline unsigned cuda_blocks(const cuda_calculator *calculator, int64_t count, int threads)
{
    int64_t wanted = (count + threads - 1) / threads;
    int64_t most = (int64_t)calculator->multiprocessors * (2048 / threads);
    if (wanted > most) wanted = most;
    return wanted < 1 ? 1u : (unsigned)wanted;
}

/* Which of this build's architectures serves the current device, as cuda_calculator.kernels has it (memory.cu). */
cudaError_t cuda_kernel_architecture(int *architecture);

/* ---- products ---- */

cublasComputeType_t cuda_compute_type(sdlf_math math);
void cuda_release_products(cuda_calculator *calculator);

/* c = act(c + bias + residual) on c (N, channels, area), in place; bias and residual may be NULL. */
typedef struct cuda_epilogue {
    sdlf_dtype dtype;
    void *data;
    const void *bias, *residual;
    int64_t count, channels, area;
    sdlf_activation activation;
} cuda_epilogue;
sdlf_status cuda_apply_epilogue(sdlf_calculator *calculator, const cuda_epilogue *epilogue);

/* ---- kernels, one file a family ---- */

sdlf_kernel fill_cuda, copy_cuda, gather_batch_cuda, next_batch_cuda, shuffle_cuda;
sdlf_kernel cuda_auto_augment; /* of a gather_batch the pictures that it changes, in its workspace (auto_augment.cu) */
sdlf_kernel gemm_cuda, gemm_backward_sgd_cuda, spmm_csr_cuda, spmm_csr_prepare_cuda, reduce_cuda, add_cuda;
sdlf_kernel activation_forward_cuda, activation_backward_cuda;
sdlf_kernel conv2d_relu_max_pool_forward_cuda, conv2d_relu_max_pool_backward_cuda;
sdlf_kernel max_pool2d_forward_cuda, max_pool2d_backward_cuda;
sdlf_kernel avg_pool2d_forward_cuda, avg_pool2d_backward_cuda;
sdlf_kernel global_avg_pool2d_forward_cuda, global_avg_pool2d_backward_cuda;
sdlf_kernel dropout_forward_cuda, dropout_backward_cuda, random_uniform_cuda, random_normal_cuda;
sdlf_kernel binary_cuda, binary_backward_cuda, select_cuda;
sdlf_kernel arg_reduce_cuda, gather_cuda, gather_backward_cuda, top_k_cuda;
sdlf_kernel resample_cuda, resample_backward_cuda, normalize_forward_cuda, normalize_backward_cuda;
sdlf_kernel batch_norm2d_forward_cuda, batch_norm2d_infer_cuda, batch_norm2d_backward_cuda;
sdlf_kernel softmax_forward_cuda, softmax_backward_cuda, log_softmax_forward_cuda, log_softmax_backward_cuda;
sdlf_kernel softmax_cross_entropy_forward_cuda, softmax_cross_entropy_backward_cuda;
sdlf_kernel update_cuda, clip_scale_cuda, check_finite_cuda, loss_scale_update_cuda;

int64_t arg_reduce_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t batch_norm2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t normalize_backward_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel matmul_cuda;
int64_t matmul_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t reduce_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t shuffle_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool random_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
extern const char *const gemm_algorithms_cuda[];
bool gemm_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int gemm_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t gemm_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t gemm_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel gemm_prepare_cuda;
int64_t gemm_backward_sgd_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool gemm_backward_sgd_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool conv2d_pool_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_pool_forward_cuda, conv2d_halo16_pool_prepare_cuda;
bool conv2d_pool_forward_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_pool_forward_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_pool_forward_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool conv2d_pool_backward_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_pool_backward_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool spmm_csr_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t spmm_csr_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t spmm_csr_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t softmax_cross_entropy_forward_workspace_cuda(const sdlf_calculator *calculator,
                                                     const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
