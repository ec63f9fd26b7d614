/* SPDX-License-Identifier: MIT */
/* copy for x contiguous along one dimension, p, and y along another, q: in blocks of both, so that every cache line that is read or
 * written is used whole. 4-byte elements are transposed in registers, 4 by 4. Floor: the bytes over the copy bandwidth. */
#include "calculators/cpu/copy.h"

#include <string.h>

enum { SHORTEST = 4, BLOCK = 16, TASK_SIDE = 64 };

static int contiguous_dimension(const cpu_copy_context *copy, const int64_t *stride)
{
    for (int i = 0; i < copy->rank; i++) {
        if (stride[i] == copy->x_size) return i;
    }
    return -1;
}

bool cpu_copy_transposes(const cpu_copy_context *copy)
{
    if (copy->from != copy->to) return false;
    int p = contiguous_dimension(copy, copy->x_stride), q = contiguous_dimension(copy, copy->y_stride);
    return p >= 0 && q >= 0 && p != q && copy->dim[p] >= SHORTEST && copy->dim[q] >= SHORTEST;
}

typedef struct transposition {
    const cpu_copy_context *copy;
    int p, q;
    int64_t p_tasks, q_tasks, outer, outer_of_task;
} transposition;

typedef float lanes __attribute__((vector_size(16)));

/* y[i, j] = x[j, i] for i, j < 4; row strides in bytes. */
static inline void transpose_lanes(char *y, int64_t y_row, const char *x, int64_t x_row)
{
    lanes row[4], pair[4];
    for (int j = 0; j < 4; j++) memcpy(&row[j], x + j * x_row, sizeof row[j]);
    pair[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    pair[1] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    pair[2] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    pair[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    for (int i = 0; i < 4; i++) {
        const lanes *low = &pair[i / 2], *high = &pair[2 + i / 2];
        lanes made = i % 2 == 0 ? __builtin_shufflevector(*low, *high, 0, 1, 4, 5)
                                : __builtin_shufflevector(*low, *high, 2, 3, 6, 7);
        memcpy(y + i * y_row, &made, sizeof made);
    }
}

/* `size` is a compile-time constant at every call. */
static inline __attribute__((always_inline)) void transpose_elements(const size_t size, char *y, int64_t y_row,
                                                                     const char *x, int64_t x_row, int64_t rows,
                                                                     int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            memcpy(y + i * y_row + j * (int64_t)size, x + j * x_row + i * (int64_t)size, size);
        }
    }
}

/* y[i, j] = x[j, i] for i < rows, j < columns. */
static void transpose_block(char *y, int64_t y_row, const char *x, int64_t x_row, int64_t size, int64_t rows,
                            int64_t columns)
{
    switch (size) {
    case 1: transpose_elements(1, y, y_row, x, x_row, rows, columns); return;
    case 2: transpose_elements(2, y, y_row, x, x_row, rows, columns); return;
    case 4: break;
    default: transpose_elements(8, y, y_row, x, x_row, rows, columns); return;
    }
    int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4) {
        for (int64_t j = 0; j < whole_columns; j += 4)
            transpose_lanes(y + i * y_row + j * 4, y_row, x + j * x_row + i * 4, x_row);
    }
    transpose_elements(4, y + whole_columns * 4, y_row, x + whole_columns * x_row, x_row, whole_rows,
                       columns - whole_columns);
    transpose_elements(4, y + whole_rows * y_row, y_row, x + whole_rows * 4, x_row, rows - whole_rows, columns);
}

/* One part of the outer index `index`, starting at (first_p, first_q). */
static void transpose_part(const transposition *t, int64_t index, int64_t first_p, int64_t first_q)
{
    const cpu_copy_context *copy = t->copy;
    int64_t size = copy->x_size, x_row = copy->x_stride[t->q], y_row = copy->y_stride[t->p];
    int64_t last_q = cpu_min(first_q + TASK_SIDE, copy->dim[t->q]);
    int64_t last_p = cpu_min(first_p + TASK_SIDE, copy->dim[t->p]);
    const char *x = copy->x;
    char *y = copy->y;
    for (int i = copy->rank - 1; i >= 0; i--) {
        if (i == t->p || i == t->q) continue;
        x += index % copy->dim[i] * copy->x_stride[i];
        y += index % copy->dim[i] * copy->y_stride[i];
        index /= copy->dim[i];
    }
    for (int64_t p = first_p; p < last_p; p += BLOCK) {
        for (int64_t q = first_q; q < last_q; q += BLOCK)
            transpose_block(y + p * y_row + q * size, y_row, x + q * x_row + p * size, x_row, size,
                            cpu_min(BLOCK, last_p - p), cpu_min(BLOCK, last_q - q));
    }
}

static void transpose_task(void *context, int64_t index, int thread)
{
    const transposition *t = context;
    int64_t q = index % t->q_tasks * TASK_SIDE, p = index / t->q_tasks % t->p_tasks * TASK_SIDE;
    int64_t first = index / (t->q_tasks * t->p_tasks) * t->outer_of_task;
    (void)thread;
    for (int64_t i = first; i < cpu_min(first + t->outer_of_task, t->outer); i++) transpose_part(t, i, p, q);
}

void cpu_copy_transposed(const cpu_calculator *cpu, const cpu_copy_context *copy, int64_t count)
{
    transposition t = {
        .copy = copy, .p = contiguous_dimension(copy, copy->x_stride), .q = contiguous_dimension(copy, copy->y_stride)};
    t.p_tasks = cpu_divide_up(copy->dim[t.p], TASK_SIDE);
    t.q_tasks = cpu_divide_up(copy->dim[t.q], TASK_SIDE);
    int64_t each = copy->dim[t.p] * copy->dim[t.q];
    t.outer = count / each;
    t.outer_of_task = cpu_max(1, TASK_SIDE * TASK_SIDE / each);
    cpu_parallel_static_exact(cpu, cpu_divide_up(t.outer, t.outer_of_task) * t.p_tasks * t.q_tasks, count / 2,
                              transpose_task, &t);
}
