/* SPDX-License-Identifier: MIT */
/* gemm with integer b and scales (framework/operations/gemm.c): a fully connected layer with 8-bit or 4-bit weights.
 *
 * c[i,j] = sum over blocks g of scale[j,g] (sum over p in g of a[i,p] q[j,p] - zero[j,g] sum over p in g of a[i,p]). Integers are converted
 * to floats in registers and reused for up to 6 rows of a; the zero-point terms are computed separately, from the sums of a's blocks. Floor
 * for few rows: the bytes of q, a quarter or an eighth of float32's, over the bandwidth. A task handles a run of q's rows. */
#include "calculators/cpu/kernels/gemm_weight_only.h"

#include "calculators/cpu/kernels/activate.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum {
    MOST_ROWS = 6,
    MOST_COLUMNS = 4,
    GROUP =
        SDLF_GEMM_GROUP,  /* elements packed as 4 bits: first half in low bits of 16 bytes, second half in high bits */
    TASK_BYTES = 1 << 16, /* of q, approximately */
};

typedef int32_t whole __attribute__((vector_size(4 * LANES)));

/* LANES bytes, widened to int32; written with intrinsics since compilers scalarise this conversion. */
static inline whole widen_bytes(const uint8_t *from, const bool is_signed)
{
#if defined(__AVX512F__) && SDLF_LANES == 16
    __m128i narrow = _mm_loadu_si128((const __m128i *)(const void *)from);
    return (whole)(is_signed ? _mm512_cvtepi8_epi32(narrow) : _mm512_cvtepu8_epi32(narrow));
#elif defined(__AVX2__) && SDLF_LANES == 8 && SDLF_VECTOR_BYTES == 32
    __m128i narrow = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return (whole)(is_signed ? _mm256_cvtepi8_epi32(narrow) : _mm256_cvtepu8_epi32(narrow));
#else
    whole wide;
    for (int i = 0; i < LANES; i++) wide[i] = is_signed ? (int8_t)from[i] : from[i];
    return wide;
#endif
}

typedef struct weight_only_product {
    const element *a, *bias, *residual, *scale, *zero;
    const uint8_t *q;
    element *c, *sums; /* sums: of a's blocks (m, blocks), if there are zero points */
    int64_t m, n, k, row_bytes, blocks, block, columns_per_task;
    element alpha;
    const sdlf_activation *activation;
} weight_only_product;

static inline int nibble(const uint8_t *row, int64_t p)
{
    uint8_t byte = row[p / GROUP * (GROUP / 2) + p % (GROUP / 2)];
    return p % GROUP < GROUP / 2 ? byte & 15 : byte >> 4;
}

/* sum += a q over elements [first, last) of 8 bits; the count is a multiple of LANES. */
static inline __attribute__((always_inline)) void add_bytes(const int rows, const int columns,
                                                            const weight_only_product *all, const element *a,
                                                            const uint8_t *q, int64_t first, int64_t last,
                                                            vector sum[MOST_ROWS][MOST_COLUMNS])
{
    for (int64_t p = first; p < last; p += LANES) {
        for (int c = 0; c < columns; c++) {
            vector from = __builtin_convertvector(widen_bytes(q + c * all->row_bytes + p, true), vector);
            for (int r = 0; r < rows; r++) sum[r][c] += load(a + r * all->k + p) * from;
        }
    }
}

/* The same for 4 bits; a multiple of GROUP. */
static inline __attribute__((always_inline)) void add_halves(const int rows, const int columns,
                                                             const weight_only_product *all, const element *a,
                                                             const uint8_t *q, int64_t first, int64_t last,
                                                             vector sum[MOST_ROWS][MOST_COLUMNS])
{
    for (int64_t p = first; p < last; p += GROUP) {
        for (int h = 0; h < GROUP / 2; h += LANES) {
            for (int c = 0; c < columns; c++) {
                whole both = widen_bytes(q + c * all->row_bytes + p / 2 + h, false);
                vector low = __builtin_convertvector(both & 15, vector);
                vector high = __builtin_convertvector(both >> 4, vector);
                for (int r = 0; r < rows; r++) {
                    const element *x = a + r * all->k + p + h;
                    sum[r][c] += load(x) * low;
                    sum[r][c] += load(x + GROUP / 2) * high;
                }
            }
        }
    }
}

/* The scalar tail of a row of q, after the last whole step. */
static element rest_of(bool of_halves, const element *a, const uint8_t *q, int64_t first, int64_t last)
{
    element total = 0;
    for (int64_t p = first; p < last; p++) total += a[p] * (element)(of_halves ? nibble(q, p) : (int)(int8_t)q[p]);
    return total;
}

/* The zero-point term of c's element (i,j). */
static inline element zeros_of(const weight_only_product *all, int64_t i, int64_t j)
{
    const element *scale = all->scale + j * all->blocks, *zero = all->zero + j * all->blocks;
    const element *sums = all->sums + i * all->blocks;
    vector part = {0};
    int64_t g = 0;
    for (; g + LANES <= all->blocks; g += LANES) part += load(scale + g) * load(zero + g) * load(sums + g);
    element total = sum_lanes(part);
    for (; g < all->blocks; g++) total += scale[g] * zero[g] * sums[g];
    return total;
}

/* Rows [i, i + rows) and columns [j, j + columns) of c, before bias and activation; both counts are constants. */
static inline __attribute__((always_inline)) void multiply(const int rows, const int columns, const bool of_halves,
                                                           const weight_only_product *all, int64_t i, int64_t j)
{
    const element *a = all->a + i * all->k;
    const uint8_t *q = all->q + j * all->row_bytes;
    const int step = of_halves ? GROUP : LANES;
    vector total[MOST_ROWS][MOST_COLUMNS];
    element rest[MOST_ROWS][MOST_COLUMNS];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) total[r][c] = (vector){0}, rest[r][c] = 0;
    for (int64_t g = 0; g < all->blocks; g++) {
        int64_t first = g * all->block, last = cpu_min(first + all->block, all->k), even = last - (last - first) % step;
        vector sum[MOST_ROWS][MOST_COLUMNS];
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) sum[r][c] = (vector){0};
        if (of_halves)
            add_halves(rows, columns, all, a, q, first, even, sum);
        else
            add_bytes(rows, columns, all, a, q, first, even, sum);
        for (int c = 0; c < columns; c++) {
            element scale = all->scale[(j + c) * all->blocks + g];
            for (int r = 0; r < rows; r++) total[r][c] += sum[r][c] * scale;
            if (even == last) continue;
            for (int r = 0; r < rows; r++)
                rest[r][c] += scale * rest_of(of_halves, a + r * all->k, q + c * all->row_bytes, even, last);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            element product = sum_lanes(total[r][c]) + rest[r][c];
            if (of_halves) product -= zeros_of(all, i + r, j + c);
            all->c[(i + r) * all->n + j + c] = all->alpha * product;
        }
}

static inline __attribute__((always_inline)) void multiply_columns(const int rows, const int columns,
                                                                   const bool of_halves, const weight_only_product *all,
                                                                   int64_t i, int64_t j, int64_t last)
{
    for (; j + columns <= last; j += columns) multiply(rows, columns, of_halves, all, i, j);
    for (; j < last; j++) multiply(rows, 1, of_halves, all, i, j);
}

static void multiply_rows(const weight_only_product *all, const bool of_halves, int64_t i, int64_t rows, int64_t j,
                          int64_t last)
{
    switch (rows + (of_halves ? 10 : 0)) {
    case 1: multiply_columns(1, 4, false, all, i, j, last); break;
    case 2: multiply_columns(2, 2, false, all, i, j, last); break;
    case 3: multiply_columns(3, 2, false, all, i, j, last); break;
    case 4: multiply_columns(4, 1, false, all, i, j, last); break;
    case 5: multiply_columns(5, 1, false, all, i, j, last); break;
    case 6: multiply_columns(6, 1, false, all, i, j, last); break;
    case 11: multiply_columns(1, 4, true, all, i, j, last); break;
    case 12: multiply_columns(2, 2, true, all, i, j, last); break;
    case 13: multiply_columns(3, 2, true, all, i, j, last); break;
    case 14: multiply_columns(4, 1, true, all, i, j, last); break;
    case 15: multiply_columns(5, 1, true, all, i, j, last); break;
    default: multiply_columns(6, 1, true, all, i, j, last); break;
    }
}

static void compute_columns(void *context, int64_t index, int thread)
{
    const weight_only_product *all = context;
    int64_t first = index * all->columns_per_task, last = cpu_min(first + all->columns_per_task, all->n);
    (void)thread;
    for (int64_t i = 0; i < all->m; i += MOST_ROWS)
        multiply_rows(all, all->zero != NULL, i, cpu_min(MOST_ROWS, all->m - i), first, last);
    for (int64_t i = 0; i < all->m; i++) {
        element *c = all->c + i * all->n;
        for (int64_t j = first; j < last && all->bias; j++) c[j] += all->bias[j];
        for (int64_t j = first; j < last && all->residual; j++) c[j] += all->residual[i * all->n + j];
        activate_cpu(c + first, c + first, last - first, all->activation);
    }
}

static void sum_blocks(const weight_only_product *all)
{
    for (int64_t i = 0; i < all->m; i++)
        for (int64_t g = 0; g < all->blocks; g++) {
            element sum = 0;
            for (int64_t p = g * all->block; p < cpu_min((g + 1) * all->block, all->k); p++)
                sum += all->a[i * all->k + p];
            all->sums[i * all->blocks + g] = sum;
        }
}

int64_t gemm_weight_only_workspace_cpu(const sdlf_operation *operation)
{
    bool sums = sdlf_tensor_present(&operation->in[5]);
    return sums ? operation->out[0].shape.dim[0] * operation->in[4].shape.dim[1] * (int64_t)sizeof(element) : 0;
}

sdlf_status gemm_weight_only_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    int64_t k = operation->in[0].shape.dim[1], blocks = operation->in[4].shape.dim[1];
    weight_only_product all = {.a = input(operation, 0),
                               .bias = input(operation, 2),
                               .residual = input(operation, 3),
                               .scale = input(operation, 4),
                               .zero = input(operation, 5),
                               .q = operation->in[1].data,
                               .c = output(operation, 0),
                               .sums = operation->workspace.data,
                               .m = operation->out[0].shape.dim[0],
                               .n = operation->out[0].shape.dim[1],
                               .k = k,
                               .row_bytes = operation->in[1].shape.dim[1],
                               .blocks = blocks,
                               .block = sdlf_gemm_block(k, blocks),
                               .alpha = (element)operation->gemm.alpha,
                               .activation = &operation->gemm.activation};
    if (all.m == 0 || all.n == 0) return SDLF_OK;
    if (all.zero != NULL) sum_blocks(&all);
    all.columns_per_task = cpu_max(4, TASK_BYTES / cpu_max(all.row_bytes, 1) / 4 * 4);
    int64_t time = cpu_max(cpu_time_of_flops(2 * all.m * all.n * k), cpu_time_of_elements(all.n * k / 4));
    cpu_parallel(cpu_from(calculator), cpu_divide_up(all.n, all.columns_per_task), time, compute_columns, &all);
    return SDLF_OK;
}
