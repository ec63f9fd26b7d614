/* SPDX-License-Identifier: MIT */
/* Inference: a GEMM treats each row independently of its position, so a copy that permutes its input rows is removed if copies on the GEMM's
 * other side can absorb the permutation, reading parts of the result or writing the input rows. Thus attention over batch-first sequences is
 * not transposed to sequence first and back, as torch.nn.MultiheadAttention writes it. */
#include "framework/plan/passes.h"

static bool is_copy(const sdlf_operation *op)
{
    return op->kind == SDLF_COPY && op->in[0].dtype == op->out[0].dtype &&
           sdlf_shape_equal(op->in[0].shape, op->out[0].shape);
}

/* True if x is all of its buffer, contiguous. */
static bool is_whole(const sdlf_plan *plan, const sdlf_tensor *x)
{
    return x->offset == 0 && sdlf_tensor_is_contiguous(x) && plan_covers_buffer(plan, x);
}

/* True for a copy that permutes all rows of `width` elements. */
static bool permutes_rows(const sdlf_plan *plan, const sdlf_operation *op, int64_t width)
{
    const sdlf_tensor *from = &op->in[0], *to = &op->out[0];
    const int last = to->shape.rank - 1;
    return is_copy(op) && last > 0 && width > 1 && to->shape.dim[last] == width && from->stride[last] == 1 &&
           is_whole(plan, to) && plan_permutes_buffer(plan, from);
}

/* True for a GEMM of rows (m,k), from all of one buffer to all of another, that reads them once. */
static bool is_product(const sdlf_plan *plan, const sdlf_operation *op)
{
    return op->kind == SDLF_GEMM && !op->gemm.transpose_a && !sdlf_tensor_present(&op->in[3]) &&
           op->in[1].buffer != op->in[0].buffer && op->in[2].buffer != op->in[0].buffer && is_whole(plan, &op->in[0]) &&
           is_whole(plan, &op->out[0]) && op->in[0].dtype == op->out[0].dtype;
}

static int64_t width_of(const sdlf_tensor *rows)
{
    return rows->shape.dim[rows->shape.rank - 1];
}

/* The rows that `op` copies, as strided in a buffer of rows of another width. */
static sdlf_tensor copied_rows(const sdlf_operation *op, const sdlf_tensor *rows)
{
    sdlf_tensor view = op->in[0];
    const int last = view.shape.rank - 1;
    const int64_t old = view.shape.dim[last];
    view.shape.dim[last] = width_of(rows);
    for (int axis = 0; axis < last; axis++) view.stride[axis] = view.stride[axis] / old * width_of(rows);
    view.buffer = rows->buffer;
    view.dtype = rows->dtype;
    return view;
}

/* All of a tensor's elements, contiguous in that shape. */
static sdlf_tensor in_order(const sdlf_tensor *x, sdlf_shape shape)
{
    sdlf_tensor view = sdlf_tensor_view(x->dtype, shape, NULL);
    view.buffer = x->buffer;
    return view;
}

/* ---- a copy, a product, copies of parts of its result ---- */

/* The operand of a copy of part of the product's result, if rows are multiplied in the order before `copy`. */
static bool read_rows(const sdlf_plan *plan, const sdlf_operation *copy, int product, int reader, sdlf_operation *op)
{
    const sdlf_tensor *y = &plan->steps[product].operation.out[0];
    const sdlf_tensor from = copied_rows(copy, y), to = in_order(y, from.shape);
    *op = plan->steps[reader].operation;
    return is_copy(op) && plan->steps[reader].calculator == plan->steps[product].calculator &&
           plan_view_source(&from, &to, &op->in[0]) && sdlf_operation_check(op) == SDLF_OK &&
           sdlf_calculator_supports(plan->steps[reader].calculator, op);
}

static sdlf_status leave_out_before(sdlf_plan *plan, int copy)
{
    const sdlf_operation moved = plan->steps[copy].operation;
    const int product = is_copy(&moved) ? plan_sole_reader(plan, copy) : -1;
    if (product < 0 || !is_product(plan, &plan->steps[product].operation)) return SDLF_OK;
    sdlf_operation op, rows = plan->steps[product].operation;
    const int y = rows.out[0].buffer, first = plan_next_reader(plan, y, product);
    if (rows.in[0].buffer != moved.out[0].buffer || !permutes_rows(plan, &moved, width_of(&rows.in[0])) ||
        plan_writes_between(plan, &moved, copy, product) || plan->buffers[y].kind != BUFFER_ARENA ||
        plan_count_writers(plan, y) != 1 || first < 0)
        return SDLF_OK;
    for (int reader = first; reader >= 0; reader = plan_next_reader(plan, y, reader))
        if (!read_rows(plan, &moved, product, reader, &op)) return SDLF_OK;
    sdlf_status status = SDLF_OK;
    for (int reader = first; reader >= 0 && status == SDLF_OK; reader = plan_next_reader(plan, y, reader)) {
        read_rows(plan, &moved, product, reader, &op);
        status = plan_replace_operation(plan, reader, &op);
    }
    rows.in[0].buffer = moved.in[0].buffer;
    plan->steps[copy].dead = true;
    plan_join_groups(plan, plan->steps[copy].node, plan->steps[product].node);
    return status == SDLF_OK ? plan_replace_operation(plan, product, &rows) : status;
}

/* ---- a copy into rows, a product, a copy ---- */

/* The copy into rows, which now writes them in the order that `copy` gives the product's rows. */
static bool write_rows(const sdlf_operation *copy, sdlf_operation *op, int64_t width)
{
    sdlf_shape shape = copy->out[0].shape;
    const sdlf_shape *old = &op->out[0].shape;
    int first = old->rank;
    for (int64_t inner = 1; inner < width;) {
        if (first == 0) return false;
        inner *= old->dim[--first];
        if (inner > width) return false;
    }
    const int rows = shape.rank - 1, rank = rows + old->rank - first;
    if (rank > SDLF_MAX_RANK) return false;
    sdlf_tensor row = in_order(&op->out[0], sdlf_shape(width)), part = copied_rows(copy, &row);
    shape.rank = rank;
    for (int axis = rows; axis < rank; axis++) {
        shape.dim[axis] = old->dim[first + axis - rows];
        part.stride[axis] = op->out[0].stride[first + axis - rows];
    }
    part.shape = shape;
    if (!plan_view_source(&op->in[0], &op->out[0], &part)) return false;
    op->in[0] = part;
    op->out[0] = in_order(&op->out[0], shape);
    return sdlf_operation_check(op) == SDLF_OK;
}

static sdlf_status leave_out_behind(sdlf_plan *plan, int copy)
{
    const sdlf_operation moved = plan->steps[copy].operation;
    if (!is_copy(&moved)) return SDLF_OK;
    const int product = plan_first_writer(plan, moved.in[0].buffer);
    if (product < 0 || product > copy || plan_sole_reader(plan, product) != copy) return SDLF_OK;
    sdlf_operation rows = plan->steps[product].operation;
    const int result = moved.out[0].buffer;
    if (!is_product(plan, &rows) || !permutes_rows(plan, &moved, width_of(&rows.out[0])) ||
        plan->buffers[result].kind != BUFFER_ARENA || plan_count_writers(plan, result) != 1)
        return SDLF_OK;
    const int source = plan_first_writer(plan, rows.in[0].buffer);
    if (source < 0 || source > product || plan_sole_reader(plan, source) != product) return SDLF_OK;
    sdlf_operation op = plan->steps[source].operation;
    if (!is_copy(&op) || !is_whole(plan, &op.out[0]) || !write_rows(&moved, &op, width_of(&rows.in[0])) ||
        !sdlf_calculator_supports(plan->steps[source].calculator, &op))
        return SDLF_OK;
    rows.out[0].buffer = result;
    plan->steps[copy].dead = true;
    plan_join_groups(plan, plan->steps[product].node, plan->steps[copy].node);
    sdlf_status status = plan_replace_operation(plan, source, &op);
    return status == SDLF_OK ? plan_replace_operation(plan, product, &rows) : status;
}

sdlf_status plan_fuse_permuted_rows(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.state_count > 0) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = leave_out_before(plan, i);
        if (status == SDLF_OK && !plan->steps[i].dead) status = leave_out_behind(plan, i);
    }
    return status;
}
