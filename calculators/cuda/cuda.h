/* SPDX-License-Identifier: MIT */
/* The CUDA calculator's object, its kernels, and the declarations that they share. For C and for CUDA C. */
#ifndef SDLF_CALCULATORS_CUDA_H
#define SDLF_CALCULATORS_CUDA_H

#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <sdlf/calculator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cuBLASLt matrix product whose descriptors and algorithm are cached (gemm/blas_product.c). The key is compared byte by byte. */
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

/* All work goes to one stream, in order, except for the transfers that queues.c puts on a second one; only download and
 * synchronize wait for it. */
/* Largest cluster, largest cluster that every device with clusters supports, and largest number of blocks per multiprocessor in the table below. */
enum { CUDA_CLUSTER = 16, CUDA_CLUSTER_PORTABLE = 8, CUDA_CLUSTER_FIT = 6 };

typedef struct cuda_calculator {
    sdlf_calculator base;
    int device;
    int capability; /* 90 for 9.0 */
    int kernels;    /* architecture that this build's kernels were compiled for; negative: JIT-compiled by the driver */
    int multiprocessors;
    int shared_most;                                  /* bytes of shared memory that a block may use */
    int clusters[CUDA_CLUSTER_FIT][CUDA_CLUSTER + 1]; /* cuda_clusters_at_once */
    bool overlaps; /* true if a kernel may start while its predecessor ends (launch.cuh) */
    sdlf_math math;
    char space[16];                    /* "cuda:0" */
    char name[256];                    /* of the device */
    struct cuda_blas_library *library; /* owned; gemm/blas.h, which C++ cannot include */
    cudaStream_t stream, transfers;
    cublasHandle_t blas;
    cublasLtHandle_t blas_lt;
    void *blas_workspace; /* owned here, so that no library allocates during graph capture */
    unsigned *tickets;    /* CUDA_TICKETS of them, all 0 between kernels; see is_last_block in kernels.cuh */
    cuda_product products[CUDA_PRODUCTS];
    int product_count;
} cuda_calculator;

enum { CUDA_BLAS_WORKSPACE = 32 << 20, CUDA_TICKETS = 1 << 14 };

/* The calculator behind the interface; its device becomes the calling thread's current device. Every entry point begins with it,
 * so that calculators on several devices, and calls from threads other than the one that opened them, use the right device. */
cuda_calculator *cuda_calculator_from(sdlf_calculator *calculator);
static inline cudaStream_t cuda_stream(sdlf_calculator *calculator)
{
    return cuda_calculator_from(calculator)->stream;
}

/* a / b, rounded up: the number of blocks of b elements that cover a elements. */
static inline int64_t cuda_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

extern const sdlf_queue_class cuda_queues;

/* True if the device has this compute capability or a newer one, and kernels compiled for it or a newer one. */
static inline bool cuda_is_built_for(const cuda_calculator *calculator, int capability)
{
    int built = calculator->kernels < 0 ? -calculator->kernels : calculator->kernels;
    return calculator->capability >= capability && built >= capability;
}

/* True if there are Tensor Cores for tf32 and bfloat16, and kernels compiled for them. */
static inline bool cuda_has_tensor_cores(const cuda_calculator *calculator)
{
    return cuda_is_built_for(calculator, 80);
}

/* The number of clusters of `size` blocks that are resident at a time when a multiprocessor holds `fit` blocks (clusters.cu); 0: no cluster
 * of that size, which is larger than CUDA_CLUSTER_PORTABLE. */
void cuda_count_clusters(cuda_calculator *calculator);
static inline int cuda_clusters_at_once(const cuda_calculator *calculator, int size, int fit)
{
    int known = fit < CUDA_CLUSTER_FIT ? fit : CUDA_CLUSTER_FIT;
    return calculator->clusters[known - 1][size];
}

/* SDLF_OK, or SDLF_ERROR_DEVICE (SDLF_ERROR_MEMORY if memory ran out) with `what` failed and CUDA's error text. */
sdlf_status cuda_check(cudaError_t error, const char *what);
/* The same for the launch just issued. */
sdlf_status cuda_check_launch(const char *kernel);
sdlf_status cuda_check_blas(cublasStatus_t status, const char *what);

/* The number of blocks of `threads` threads for `count` elements, at most as many as fill every multiprocessor: kernels use a grid-stride loop. */
static inline unsigned cuda_blocks(const cuda_calculator *calculator, int64_t count, int threads)
{
    int64_t wanted = (count + threads - 1) / threads;
    int64_t most = (int64_t)calculator->multiprocessors * (2048 / threads);
    if (wanted > most) wanted = most;
    return wanted < 1 ? 1u : (unsigned)wanted;
}

/* Which of this build's architectures the current device runs, encoded as in cuda_calculator.kernels (memory.cu). */
cudaError_t cuda_kernel_architecture(int *architecture);

/* ---- matrix products by cuBLAS ---- */

cublasComputeType_t cuda_compute_type(sdlf_math math);
void cuda_release_products(cuda_calculator *calculator);

/* c = act(c + bias + residual), c being (N, channels, area), in place; bias and residual may be NULL. */
typedef struct cuda_epilogue {
    sdlf_dtype dtype;
    void *data;
    const void *bias, *residual;
    int64_t count, channels, area;
    sdlf_activation activation;
} cuda_epilogue;
sdlf_status cuda_apply_epilogue(sdlf_calculator *calculator, const cuda_epilogue *epilogue);

/* ---- kernels, one file per family ---- */

sdlf_kernel fill_cuda, copy_cuda, gather_batch_cuda, next_batch_cuda, shuffle_cuda;
sdlf_kernel
    cuda_auto_augment; /* augments the images of a gather_batch that it changes, in its workspace (auto_augment.cu) */
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
sdlf_kernel conv2d_pool_forward_cuda, conv2d_pool_forward_prepare_cuda;
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
