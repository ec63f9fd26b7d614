/* Matrix products of oneDNN (dnnl_sgemm, row-major like ours; float32 alone). */
#include <stdio.h>

#include <oneapi/dnnl/dnnl.h>

#include "calculators/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static void describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

/* oneDNN asks OpenMP how many threads to use, and splits the inner dimension by that number: keep it to the calling thread.
 * Inside a parallel region it does so by itself, but a region of one thread is none. */
static void multiply(const cpu_gemm_arguments *g)
{
#ifdef _OPENMP
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, (float)g->alpha, g->a, g->lda,
               g->b, g->ldb, (float)g->beta, g->c, g->ldc);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
}

const cpu_gemm_library *cpu_gemm_library_of_build(void)
{
    static const cpu_gemm_library library = {.describe = describe, .float32 = multiply};
    return &library;
}
