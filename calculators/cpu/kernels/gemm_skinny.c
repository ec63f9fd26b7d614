/* SPDX-License-Identifier: MIT */
/* gemm for few rows of a and a b that is stored transposed: a fully connected layer of one or a few samples.
 *
 * c[i, j] is the dot product of row i of a and row j of b. Several rows of b are read at a time, each as a separate
 * prefetched stream, and each of their vectors is used for all rows of a: b moves through memory once, and nothing is
 * packed. Floor: the bytes of b over the bandwidth. A task handles a run of b's rows, which the same thread gets at
 * every call: the weights that a recurrent network uses at every step stay in the threads' own caches. No workspace. */
#include "calculators/cpu/kernels/gemm_skinny.h"

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/interleave.h"

enum {
    MOST_ROWS = 6,                  /* of a: with more, packing costs less than the separate accumulators */
    MOST_COLUMNS = 4,               /* rows of b at a time; finish_four needs 4 */
    AHEAD = 2048 / sizeof(element), /* prefetch distance of b, in elements */
    TASK_BYTES = 1 << 17,           /* of b, approximately */
};

typedef struct few {
    const element *a, *b, *bias, *residual;
    element *c;
    int64_t m, n, k, columns_per_task;
    element alpha;
    const sdlf_activation *activation;
} few;

bool gemm_skinny_takes_cpu(const sdlf_operation *operation)
{
    const sdlf_shape *c = &operation->out[0].shape;
    return operation->gemm.transpose_b && !operation->gemm.transpose_a && c->dim[0] > 0 && c->dim[0] <= MOST_ROWS &&
           operation->in[0].shape.dim[1] >= LANES;
}

/* Reduces four accumulators to c's elements (r,j) to (r,j+3), and adds the elements of a's row from `p` on; each zip
 * and addition halves the lanes of every sum. c may alias the residual. */
static inline __attribute__((always_inline)) void finish_four(const few *all, int64_t r, int64_t j, int64_t p,
                                                              const vector *v)
{
    const element *b = all->b + j * all->k;
    int64_t k = all->k, place = r * all->n + j;
    four_lanes more;
#if SDLF_LANES > 2
    vector even = zip_low(v[0], v[2]) + zip_high(v[0], v[2]), odd = zip_low(v[1], v[3]) + zip_high(v[1], v[3]);
    vector all_four = zip_low(even, odd) + zip_high(even, odd);
    four_lanes total = __builtin_shufflevector(all_four, all_four, 0, 1, 2, 3);
    UNROLLED
    for (int i = 4; i < LANES; i += 4) {
        memcpy(&more, (const element *)&all_four + i, sizeof more);
        total += more;
    }
#else
    four_lanes total = {sum_lanes(v[0]), sum_lanes(v[1]), sum_lanes(v[2]), sum_lanes(v[3])};
#endif
    for (; p < k; p++) total += all->a[r * k + p] * (four_lanes){b[p], b[k + p], b[2 * k + p], b[3 * k + p]};
    total *= all->alpha;
    if (all->bias) {
        memcpy(&more, all->bias + j, sizeof more);
        total += more;
    }
    if (all->residual) {
        memcpy(&more, all->residual + place, sizeof more);
        total += more;
    }
    memcpy(all->c + place, &total, sizeof total);
}

/* c's columns [j, j + columns) before the activation; rows and columns are compile-time constants. */
static inline __attribute__((always_inline)) void dot_rows(const int rows, const int columns, const few *all, int64_t j)
{
    vector sum[MOST_ROWS][MOST_COLUMNS];
    const element *b = all->b + j * all->k;
    int64_t k = all->k, p = 0;
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < columns; c++) sum[r][c] = (vector){0};
    }
    for (; p + LANES <= k; p += LANES) {
        vector from[MOST_COLUMNS];
        for (int c = 0; c < columns; c++) {
            from[c] = load(b + c * k + p);
            __builtin_prefetch(b + c * k + p + AHEAD);
        }
        for (int r = 0; r < rows; r++) {
            vector x = load(all->a + r * k + p);
            for (int c = 0; c < columns; c++) sum[r][c] += x * from[c];
        }
    }
    for (int r = 0; r < rows && columns == 4; r++) finish_four(all, r, j, p, sum[r]);
    for (int r = 0; r < rows && columns != 4; r++) {
        for (int c = 0; c < columns; c++) {
            element total = sum_lanes(sum[r][c]);
            for (int64_t q = p; q < k; q++) total += all->a[r * k + q] * b[c * k + q];
            int64_t place = r * all->n + j + c; /* c may alias the residual */
            total = all->alpha * total + (all->bias ? all->bias[j + c] : 0);
            all->c[place] = all->residual ? total + all->residual[place] : total;
        }
    }
}

static inline __attribute__((always_inline)) void dot_columns(const int rows, const few *all, int64_t j, int64_t last)
{
    for (; j + MOST_COLUMNS <= last; j += MOST_COLUMNS) dot_rows(rows, MOST_COLUMNS, all, j);
    for (; j < last; j++) dot_rows(rows, 1, all, j);
}

static void compute_columns(void *context, int64_t index, int thread)
{
    const few *all = context;
    int64_t first = index * all->columns_per_task, last = cpu_min(first + all->columns_per_task, all->n);
    (void)thread;
    switch (all->m) {
    case 1: dot_columns(1, all, first, last); break;
    case 2: dot_columns(2, all, first, last); break;
    case 3: dot_columns(3, all, first, last); break;
    case 4: dot_columns(4, all, first, last); break;
    case 5: dot_columns(5, all, first, last); break;
    default: dot_columns(6, all, first, last); break;
    }
    for (int64_t i = 0; i < all->m; i++) {
        element *c = all->c + i * all->n;
        activate_cpu(c + first, c + first, last - first, all->activation);
    }
}

sdlf_status gemm_skinny_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    few all = {.a = input(operation, 0),
               .b = input(operation, 1),
               .bias = input(operation, 2),
               .residual = input(operation, 3),
               .c = output(operation, 0),
               .m = operation->out[0].shape.dim[0],
               .n = operation->out[0].shape.dim[1],
               .k = operation->in[0].shape.dim[1],
               .alpha = (element)operation->gemm.alpha,
               .activation = &operation->gemm.activation};
    int64_t columns = TASK_BYTES / (int64_t)sizeof(element) / all.k;
    all.columns_per_task = cpu_max(MOST_COLUMNS, columns / MOST_COLUMNS * MOST_COLUMNS);
    int64_t time = cpu_max(cpu_time_of_flops(2 * all.m * all.n * all.k), cpu_time_of_elements(all.n * all.k));
    cpu_parallel_static(cpu_from(calculator), cpu_divide_up(all.n, all.columns_per_task), time, compute_columns, &all);
    return SDLF_OK;
}
