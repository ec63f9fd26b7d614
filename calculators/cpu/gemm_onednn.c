/* SPDX-License-Identifier: MIT */
/* GEMM from oneDNN (dnnl_sgemm, row-major like ours; float32 only). The library is loaded on first use.
 *
 * If memory runs out while it is loaded, or while it generates a kernel (at the first GEMM of each form), it throws a C++ exception,
 * which ends a C program. So no race calls it (cpu.c: on request), and it is not loaded without memory to spare. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "calculators/cpu/cpu.h"
#include "framework/heap.h"

#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)
/* The loader finds this major version on its search path; otherwise it is opened at its location at build time. */
#define FILE_NAME "libdnnl.so." TEXT_OF(DNNL_VERSION_MAJOR)

enum { ROOM = 128 << 20 /* bytes: with its dependencies it takes 120 MB of address space and 9 MB of memory */ };

typedef dnnl_status_t sgemm_function(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                     const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta,
                                     float *c, dnnl_dim_t ldc);

/* Set once, and process-wide: oneDNN is loaded once, as it would be if it were linked. */
static struct {
    sgemm_function *sgemm;
    int (*get_threads)(void); /* omp_get_max_threads, omp_set_num_threads of its OpenMP runtime; NULL: none */
    void (*set_threads)(int count);
} library;

static void find(void *handle, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, size);
}

static void load_once(void)
{
    void *room = sdlf_heap_allocate(ROOM);
    sdlf_heap_free(room);
    void *handle = room != NULL ? dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle == NULL && room != NULL) handle = dlopen(SDLF_ONEDNN_PATH, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return;
    find(handle, "dnnl_sgemm", &library.sgemm, sizeof library.sgemm);
    find(handle, "omp_get_max_threads", &library.get_threads, sizeof library.get_threads);
    find(handle, "omp_set_num_threads", &library.set_threads, sizeof library.set_threads);
}

static bool load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, load_once) == 0 && library.sgemm != NULL;
}

static void describe(char *text, size_t size)
{
    snprintf(text, size, "oneDNN %d.%d.%d", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

/* oneDNN asks OpenMP for the number of threads and partitions the k dimension by it: restrict it to the calling thread. */
static bool multiply(const cpu_gemm_arguments *g)
{
    int threads = library.get_threads != NULL ? library.get_threads() : 1;
    if (threads > 1) library.set_threads(1);
    dnnl_status_t status = library.sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k,
                                         (float)g->alpha, g->a, g->lda, g->b, g->ldb, (float)g->beta, g->c, g->ldc);
    if (threads > 1) library.set_threads(threads);
    return status == dnnl_success;
}

const cpu_gemm_library *cpu_gemm_library_of_build(void)
{
    static const cpu_gemm_library onednn = {.describe = describe, .load = load, .float32 = multiply};
    return &onednn;
}
