/* SPDX-License-Identifier: MIT */
/* See strided.h. */
#include "calculators/cpu/strided.h"

enum { PIECE = 1 << 14 }; /* elements of a task, approximately */

cpu_strided cpu_strided_of(const sdlf_tensor *const *operand, int count)
{
    cpu_strided made = {.operands = count};
    const sdlf_shape *shape = &operand[0]->shape;
    for (int axis = 0; axis < shape->rank; axis++) {
        int64_t dim = shape->dim[axis];
        if (dim == 1) continue;
        int last = made.rank - 1;
        bool merges = last >= 0;
        for (int k = 0; k < count && merges; k++) {
            int64_t stride = sdlf_tensor_present(operand[k]) ? operand[k]->stride[axis] : 0;
            merges = made.stride[k][last] == dim * stride;
        }
        if (merges) {
            made.dim[last] *= dim;
        } else {
            made.dim[++last] = dim;
            made.rank++;
        }
        for (int k = 0; k < count; k++)
            made.stride[k][last] = sdlf_tensor_present(operand[k]) ? operand[k]->stride[axis] : 0;
    }
    if (made.rank == 0) {
        made.rank = 1;
        made.dim[0] = 1;
        for (int k = 0; k < count; k++) made.stride[k][0] = 1;
    }
    return made;
}

typedef struct walk {
    const cpu_strided *strided;
    cpu_strided_row *row;
    const void *context;
    int64_t rows, pieces, piece, rows_per_task;
} walk;

/* Some rows, or one piece of one row. */
static void walk_rows(void *context, int64_t index, int thread)
{
    const walk *w = context;
    const cpu_strided *s = w->strided;
    int inner = s->rank - 1;
    int64_t first = index / w->pieces * w->rows_per_task, start = index % w->pieces * w->piece;
    int64_t last = cpu_min(first + w->rows_per_task, w->rows), place[SDLF_MAX_RANK], offset[CPU_STRIDED_OPERANDS] = {0};
    int64_t rest = first, count = cpu_min(w->piece, s->dim[inner] - start);
    (void)thread;
    for (int axis = inner - 1; axis >= 0; axis--) {
        place[axis] = rest % s->dim[axis];
        rest /= s->dim[axis];
        for (int k = 0; k < s->operands; k++) offset[k] += place[axis] * s->stride[k][axis];
    }
    for (int k = 0; k < s->operands; k++) offset[k] += start * s->stride[k][inner];
    for (int64_t row = first; row < last; row++) {
        w->row(w->context, offset, count);
        for (int axis = inner - 1; axis >= 0; axis--) { /* the next row */
            bool carries = ++place[axis] == s->dim[axis];
            for (int k = 0; k < s->operands; k++)
                offset[k] += carries ? -(s->dim[axis] - 1) * s->stride[k][axis] : s->stride[k][axis];
            if (!carries) break;
            place[axis] = 0;
        }
    }
}

void cpu_strided_run(const cpu_calculator *cpu, const cpu_strided *strided, cpu_strided_row *row, const void *context,
                     bool exact)
{
    int64_t inner = strided->dim[strided->rank - 1], rows = 1;
    for (int axis = 0; axis < strided->rank - 1; axis++) rows *= strided->dim[axis];
    if (rows * inner == 0) return;
    walk w = {.strided = strided, .row = row, .context = context, .rows = rows};
    w.piece = cpu_min(inner, PIECE);
    w.pieces = cpu_divide_up(inner, w.piece);
    w.rows_per_task = cpu_max(1, PIECE / inner);
    int64_t tasks = cpu_divide_up(rows, w.rows_per_task) * w.pieces, time = cpu_time_of_elements(rows * inner);
    (exact ? cpu_parallel_static_exact : cpu_parallel_static)(cpu, tasks, time, walk_rows, &w);
}
