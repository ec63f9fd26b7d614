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

/* All work goes to one stream, in order; nothing waits for it but download and synchronize. */
typedef struct cuda_calculator {
    sdlf_calculator base;
    int device;
    int capability; /* 90 for 9.0 */
    int multiprocessors;
    sdlf_math math;
    char space[16]; /* "cuda:0" */
    char name[256]; /* of the device */
    cudaStream_t stream;
    cublasHandle_t blas;
    cublasLtHandle_t blas_lt;
    void *blas_workspace; /* ours, so that no library allocates while work is recorded */
} cuda_calculator;

enum { CUDA_BLAS_WORKSPACE = 32 << 20 };

cuda_calculator *cuda_calculator_from(sdlf_calculator *calculator);
static inline cudaStream_t cuda_stream(sdlf_calculator *calculator)
{
    return cuda_calculator_from(calculator)->stream;
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

/* ---- memory (memory.cu) ---- */
sdlf_kernel fill_cuda, copy_cuda;

/* ---- one element a thread ---- */
sdlf_kernel activation_forward_cuda, activation_backward_cuda, add_cuda;

#ifdef __cplusplus
}
#endif
#endif
