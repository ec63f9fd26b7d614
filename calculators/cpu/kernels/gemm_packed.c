/* SPDX-License-Identifier: MIT */
/* gemm whose b is of integers with scales (framework/operations/gemm.c): a fully connected layer with weights of 8 or 4 bits.
 *
 * c[i,j] = sum over blocks g of scale[j,g] (sum over p in g of a[i,p] q[j,p] - zero[j,g] sum over p in g of a[i,p]). Integers become floats in
 * registers, where up to 6 rows of a use them; the sums of a's blocks are made beforehand. Floor for few rows: the bytes of q, a quarter or an
 * eighth of float32's, over the bandwidth. A task takes a run of q's rows. */
#include "calculators/cpu/kernels/gemm_packed.h"

#include <string.h>

#include "calculators/cpu/kernels/activate.h"

enum {
    MOST_ROWS = 6,
    GROUP = SDLF_GEMM_GROUP, /* elements whose 4 bits lie together: the first half low in 16 bytes, the second half high */
    TASK_BYTES = 1 << 16,    /* of q, about */
};

typedef int8_t bytes __attribute__((vector_size(LANES)));
typedef int32_t whole __attribute__((vector_size(4 * LANES)));

typedef struct packed_product {
    const element *a, *bias, *residual, *scale, *zero;
    const uint8_t *q;
    element *c, *sums; /* sums: of a's blocks (m, blocks), where there are zeros */
    int64_t m, n, k, row_bytes, blocks, block, columns_per_task;
    element alpha;
    const sdlf_activation *activation;
} packed_product;

static inline vector widen(const void *from)
{
    bytes narrow;
    memcpy(&narrow, from, sizeof narrow);
    return __builtin_convertvector(__builtin_convertvector(narrow, whole), vector);
}

/* The low, or the high, 4 bits of LANES bytes. */
static inline vector widen_half(const uint8_t *from, bool high)
{
    bytes narrow;
    memcpy(&narrow, from, sizeof narrow);
    whole wide = __builtin_convertvector(narrow, whole);
    return __builtin_convertvector(high ? wide >> 4 & 15 : wide & 15, vector);
}

static inline int nibble(const uint8_t *row, int64_t p)
{
    uint8_t byte = row[p / GROUP * (GROUP / 2) + p % (GROUP / 2)];
    return p % GROUP < GROUP / 2 ? byte & 15 : byte >> 4;
}

/* Sums of a q over elements [first, last) of a block of `columns` rows of q, of 8 bits. */
static inline __attribute__((always_inline)) void multiply_bytes(const int rows, const int columns,
                                                                 const packed_product *all, const element *a,
                                                                 const uint8_t *q, int64_t first, int64_t last,
                                                                 vector sum[MOST_ROWS][4], element *rest)
{
    int64_t p = first;
    for (; p + LANES <= last; p += LANES) {
        for (int c = 0; c < columns; c++) {
            vector from = widen(q + c * all->row_bytes + p);
            for (int r = 0; r < rows; r++) sum[r][c] += load(a + r * all->k + p) * from;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            element total = 0;
            for (int64_t i = p; i < last; i++)
                total += a[r * all->k + i] * (element)(int8_t)q[c * all->row_bytes + i];
            rest[r * 4 + c] = total;
        }
}

/* The same of 4 bits; `first` is a multiple of GROUP. */
static inline __attribute__((always_inline)) void multiply_halves(const int rows, const int columns,
                                                                  const packed_product *all, const element *a,
                                                                  const uint8_t *q, int64_t first, int64_t last,
                                                                  vector sum[MOST_ROWS][4], element *rest)
{
    int64_t p = first;
    for (; p + GROUP <= last; p += GROUP) {
        for (int h = 0; h < GROUP / 2; h += LANES) {
            for (int c = 0; c < columns; c++) {
                const uint8_t *from = q + c * all->row_bytes + p / 2 + h;
                vector low = widen_half(from, false), high = widen_half(from, true);
                for (int r = 0; r < rows; r++) {
                    const element *x = a + r * all->k + p + h;
                    sum[r][c] += load(x) * low;
                    sum[r][c] += load(x + GROUP / 2) * high;
                }
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            element total = 0;
            for (int64_t i = p; i < last; i++)
                total += a[r * all->k + i] * (element)nibble(q + c * all->row_bytes, i);
            rest[r * 4 + c] = total;
        }
}

/* Rows [i, i + rows) and columns [j, j + columns) of c, before bias and activation; rows and columns are constants. */
static inline __attribute__((always_inline)) void multiply(const int rows, const int columns, bool halves,
                                                           const packed_product *all, int64_t i, int64_t j)
{
    const element *a = all->a + i * all->k;
    const uint8_t *q = all->q + j * all->row_bytes;
    vector total[MOST_ROWS][4];
    element single[MOST_ROWS][4], rest[MOST_ROWS * 4];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) total[r][c] = (vector){0}, single[r][c] = 0;
    for (int64_t g = 0; g < all->blocks; g++) {
        int64_t first = g * all->block, last = cpu_min(first + all->block, all->k);
        vector sum[MOST_ROWS][4];
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) sum[r][c] = (vector){0};
        if (halves)
            multiply_halves(rows, columns, all, a, q, first, last, sum, rest);
        else
            multiply_bytes(rows, columns, all, a, q, first, last, sum, rest);
        for (int c = 0; c < columns; c++) {
            element scale = all->scale[(j + c) * all->blocks + g];
            element zero = halves ? all->zero[(j + c) * all->blocks + g] : 0;
            for (int r = 0; r < rows; r++) {
                total[r][c] += sum[r][c] * scale;
                if (halves) rest[r * 4 + c] -= zero * all->sums[(i + r) * all->blocks + g];
                single[r][c] += rest[r * 4 + c] * scale;
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            all->c[(i + r) * all->n + j + c] = all->alpha * (sum_lanes(total[r][c]) + single[r][c]);
}

static inline __attribute__((always_inline)) void multiply_columns(const int rows, const int columns, bool halves,
                                                                   const packed_product *all, int64_t i, int64_t j,
                                                                   int64_t last)
{
    for (; j + columns <= last; j += columns) multiply(rows, columns, halves, all, i, j);
    for (; j < last; j++) multiply(rows, 1, halves, all, i, j);
}

static void multiply_rows(const packed_product *all, bool halves, int64_t i, int64_t rows, int64_t j, int64_t last)
{
    switch (rows + (halves ? 10 : 0)) {
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
    const packed_product *all = context;
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

static void sum_blocks(const packed_product *all)
{
    for (int64_t i = 0; i < all->m; i++)
        for (int64_t g = 0; g < all->blocks; g++) {
            element sum = 0;
            for (int64_t p = g * all->block; p < cpu_min((g + 1) * all->block, all->k); p++)
                sum += all->a[i * all->k + p];
            all->sums[i * all->blocks + g] = sum;
        }
}

int64_t gemm_packed_workspace_cpu(const sdlf_operation *operation)
{
    bool sums = sdlf_tensor_present(&operation->in[5]);
    return sums ? operation->out[0].shape.dim[0] * operation->in[4].shape.dim[1] * (int64_t)sizeof(element) : 0;
}

sdlf_status gemm_packed_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    int64_t k = operation->in[0].shape.dim[1], blocks = operation->in[4].shape.dim[1];
    packed_product all = {.a = input(operation, 0),
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
