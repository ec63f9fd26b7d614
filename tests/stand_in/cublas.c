/* SPDX-License-Identifier: MIT */
/* Stand-ins for the functions of cuBLAS and cuBLASLt that calculators/cuda loads by name; used with cuda_runtime.c.
 * Handles are created, GEMMs do nothing. Arguments that are unused here are omitted. */
#include <stdlib.h>
#include <string.h>

#define MAKES(name)                                                                                                    \
    int name(void **made);                                                                                             \
    int name(void **made)                                                                                              \
    {                                                                                                                  \
        *made = calloc(1, 1);                                                                                          \
        return *made != NULL ? 0 : 3; /* CUBLAS_STATUS_ALLOC_FAILED */                                                 \
    }
#define DESTROYS(name)                                                                                                 \
    int name(void *made);                                                                                              \
    int name(void *made)                                                                                               \
    {                                                                                                                  \
        free(made);                                                                                                    \
        return 0;                                                                                                      \
    }
#define SUCCEEDS(name)                                                                                                 \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 0;                                                                                                      \
    }

MAKES(cublasCreate_v2)
MAKES(cublasLtCreate)
MAKES(cublasLtMatmulDescCreate)
MAKES(cublasLtMatrixLayoutCreate)
MAKES(cublasLtMatmulPreferenceCreate)
DESTROYS(cublasDestroy_v2)
DESTROYS(cublasLtDestroy)
DESTROYS(cublasLtMatmulDescDestroy)
DESTROYS(cublasLtMatrixLayoutDestroy)
DESTROYS(cublasLtMatmulPreferenceDestroy)
SUCCEEDS(cublasSetStream_v2)
SUCCEEDS(cublasSetWorkspace_v2)
SUCCEEDS(cublasGemmEx)
SUCCEEDS(cublasGemmStridedBatchedEx)
SUCCEEDS(cublasLtMatmulDescSetAttribute)
SUCCEEDS(cublasLtMatmulPreferenceSetAttribute)
SUCCEEDS(cublasLtMatmul)

/* One algorithm, all zeros. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, void *found, int *count);

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, void *found, int *count)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)wanted;
    memset(found, 0, 96); /* a cublasLtMatmulHeuristicResult_t */
    *count = 1;
    return 0;
}
