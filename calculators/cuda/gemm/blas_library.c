/* SPDX-License-Identifier: MIT */
/* Loads cuBLAS and cuBLASLt: from the system loader's search path, or else from the toolkit of this build. */
#include "calculators/cuda/gemm/blas.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static sdlf_status load(const char *file, void **handle)
{
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*handle != NULL) return SDLF_OK;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", SDLF_CUDA_LIBRARIES, file);
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle != NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "the CUDA calculator needs %s: %s", file, dlerror());
}

typedef struct entry {
    const char *name;
    size_t offset; /* in the table */
} entry;

static sdlf_status look_up(cuda_blas_library *library, void *handle, const entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, entries[i].name);
        if (symbol == NULL)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "cuBLAS has no %s: %s", entries[i].name, dlerror());
        memcpy((char *)library + entries[i].offset, &symbol, sizeof symbol);
    }
    return SDLF_OK;
}

sdlf_status cuda_blas_load(cuda_blas_library *library)
{
    static const entry plain[] = {
        {"cublasCreate_v2", offsetof(cuda_blas_library, create)},
        {"cublasDestroy_v2", offsetof(cuda_blas_library, destroy)},
        {"cublasSetStream_v2", offsetof(cuda_blas_library, set_stream)},
        {"cublasSetWorkspace_v2", offsetof(cuda_blas_library, set_workspace)},
        {"cublasGemmEx", offsetof(cuda_blas_library, gemm)},
        {"cublasGemmStridedBatchedEx", offsetof(cuda_blas_library, gemm_strided_batched)},
    };
    static const entry light[] = {
        {"cublasLtCreate", offsetof(cuda_blas_library, lt_create)},
        {"cublasLtDestroy", offsetof(cuda_blas_library, lt_destroy)},
        {"cublasLtMatmulDescCreate", offsetof(cuda_blas_library, lt_operation_create)},
        {"cublasLtMatmulDescDestroy", offsetof(cuda_blas_library, lt_operation_destroy)},
        {"cublasLtMatmulDescSetAttribute", offsetof(cuda_blas_library, lt_operation_set)},
        {"cublasLtMatrixLayoutCreate", offsetof(cuda_blas_library, lt_layout_create)},
        {"cublasLtMatrixLayoutDestroy", offsetof(cuda_blas_library, lt_layout_destroy)},
        {"cublasLtMatmulPreferenceCreate", offsetof(cuda_blas_library, lt_preference_create)},
        {"cublasLtMatmulPreferenceSetAttribute", offsetof(cuda_blas_library, lt_preference_set)},
        {"cublasLtMatmulPreferenceDestroy", offsetof(cuda_blas_library, lt_preference_destroy)},
        {"cublasLtMatmulAlgoGetHeuristic", offsetof(cuda_blas_library, lt_choose)},
        {"cublasLtMatmul", offsetof(cuda_blas_library, lt_multiply)},
    };
    void *handle = NULL, *light_handle = NULL;
    sdlf_status status = load(SDLF_CUBLASLT_FILE, &light_handle); /* first: cuBLAS itself needs it */
    if (status == SDLF_OK) status = load(SDLF_CUBLAS_FILE, &handle);
    if (status == SDLF_OK) status = look_up(library, handle, plain, sizeof plain / sizeof plain[0]);
    if (status == SDLF_OK) status = look_up(library, light_handle, light, sizeof light / sizeof light[0]);
    return status;
}
