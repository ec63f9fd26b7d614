/* Matrix products of oneDNN (dnnl_sgemm, row-major like ours; float32 alone). It is loaded when a product is first wanted of it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "calculators/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)
/* Of that major version the system's loader knows the place; else it is where it was when this was built. */
#define FILE_NAME "libdnnl.so." TEXT_OF(DNNL_VERSION_MAJOR)

typedef dnnl_status_t sgemm_function(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                     const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta,
                                     float *c, dnnl_dim_t ldc);

/* Set once, and the process's: there is one oneDNN in it, as there would be one that it is linked with. */
static sgemm_function *sgemm;

static void load_once(void)
{
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) handle = dlopen(SDLF_ONEDNN_PATH, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, "dnnl_sgemm") : NULL;
    memcpy(&sgemm, &symbol, sizeof symbol);
}

static bool load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, load_once) == 0 && sgemm != NULL;
}

static void describe(char *text, size_t size)
{
    snprintf(text, size, "oneDNN %d.%d.%d", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

/* oneDNN asks OpenMP how many threads to use, and splits the inner dimension by that number: keep it to the calling thread.
 * Inside a parallel region it does so by itself, but a region of one thread is none. */
static void multiply(const cpu_gemm_arguments *g)
{
#ifdef _OPENMP
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, (float)g->alpha, g->a, g->lda, g->b,
          g->ldb, (float)g->beta, g->c, g->ldc);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
}

const cpu_gemm_library *cpu_gemm_library_of_build(void)
{
    static const cpu_gemm_library library = {.describe = describe, .load = load, .float32 = multiply};
    return &library;
}
