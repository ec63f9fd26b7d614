/* SPDX-License-Identifier: MIT */
/* GEMM from a CBLAS library, primarily OpenBLAS. */
#include <stdio.h>

#include <cblas.h>

#include "calculators/cpu/cpu.h"

static void describe(char *text, size_t size)
{
#ifdef OPENBLAS_VERSION
    const char *name = OPENBLAS_VERSION; /* " OpenBLAS 0.3.21 " */
    while (*name == ' ') name++;
    int length = 0;
    while (name[length] && !(name[length] == ' ' && (name[length + 1] == ' ' || !name[length + 1]))) length++;
    snprintf(text, size, "%.*s", length, name);
#else
    snprintf(text, size, "CBLAS");
#endif
}

static bool float32(const cpu_gemm_arguments *g)
{
    cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans,
                (int)g->m, (int)g->n, (int)g->k, (float)g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, (float)g->beta,
                g->c, (int)g->ldc);
    return true;
}

static bool float64(const cpu_gemm_arguments *g)
{
    cblas_dgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans,
                (int)g->m, (int)g->n, (int)g->k, g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, g->beta, g->c,
                (int)g->ldc);
    return true;
}

const cpu_gemm_library *cpu_gemm_library_of_build(void)
{
    static const cpu_gemm_library library = {.describe = describe, .float32 = float32, .float64 = float64};
#ifdef OPENBLAS_VERSION
    openblas_set_num_threads(1); /* one thread a call: the caller already partitions c into tiles */
#endif
    return &library;
}
