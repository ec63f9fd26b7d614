/* SPDX-License-Identifier: MIT */
/* Inference, in host memory: matrices that a copy permutes and that only matmul then reads are read in place. Thus the
 * keys of attention are never transposed in memory, however many there are. */
#include "framework/plan/passes.h"

#include <string.h>

/* Makes operand `i` of the product, the copy's result, read the copy's source; false: impossible. */
static bool read_in_place(const sdlf_tensor *from, const sdlf_tensor *copy, sdlf_operation *product, int i)
{
    sdlf_tensor *operand = &product->in[i];
    int last = operand->shape.rank - 1;
    if (operand->offset != 0 || !sdlf_tensor_is_contiguous(operand) || operand->dtype != from->dtype) return false;
    if (!sdlf_shape_equal(operand->shape, copy->shape)) return false;
    const int64_t *dim = from->shape.dim, *stride = from->stride;
    bool transposed = stride[last - 1] == 1 && stride[last] == dim[last - 1];
    if (!transposed && !(stride[last] == 1 && stride[last - 1] == dim[last])) return false;
    *operand = transposed ? sdlf_tensor_transpose(*from, last - 1, last) : *from;
    bool *flag = i == 0 ? &product->matmul.transpose_a : &product->matmul.transpose_b;
    *flag = *flag != transposed;
    return true;
}

/* The product with every operand that is the copy's result read from the copy's source. */
static bool replace_reader(const sdlf_plan *plan, int copy, int reader, sdlf_operation *product)
{
    const sdlf_operation *transposition = &plan->steps[copy].operation;
    *product = plan->steps[reader].operation;
    if (product->kind != SDLF_MATMUL || plan_writes_between(plan, transposition, copy, reader)) return false;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        bool reads = sdlf_tensor_present(&product->in[i]) && product->in[i].buffer == transposition->out[0].buffer;
        if (reads && (i > 1 || !read_in_place(&transposition->in[0], &transposition->out[0], product, i))) return false;
    }
    return sdlf_operation_check(product) == SDLF_OK &&
           sdlf_calculator_supports(plan->steps[reader].calculator, product);
}

static bool is_transposition(const sdlf_plan *plan, const plan_step *step)
{
    const sdlf_tensor *from = &step->operation.in[0], *to = &step->operation.out[0];
    return !step->dead && step->operation.kind == SDLF_COPY && plan->buffers[to->buffer].kind == BUFFER_ARENA &&
           strcmp(step->calculator->space, SDLF_HOST_SPACE) == 0 && from->dtype == to->dtype && from->shape.rank >= 2 &&
           sdlf_shape_equal(from->shape, to->shape) && plan_covers_buffer(plan, to) &&
           plan_count_writers(plan, to->buffer) == 1 && plan_count_readers(plan, to->buffer) > 0;
}

static sdlf_status read_all_in_place(sdlf_plan *plan, int copy)
{
    int buffer = plan->steps[copy].operation.out[0].buffer;
    sdlf_operation product;
    sdlf_status status = SDLF_OK;
    for (int reader = plan_next_reader(plan, buffer, copy); reader >= 0;
         reader = plan_next_reader(plan, buffer, reader))
        if (!replace_reader(plan, copy, reader, &product)) return SDLF_OK;
    for (int reader = plan_next_reader(plan, buffer, copy); reader >= 0 && status == SDLF_OK;
         reader = plan_next_reader(plan, buffer, reader)) {
        replace_reader(plan, copy, reader, &product);
        status = plan_replace_operation(plan, reader, &product);
    }
    plan->steps[copy].dead = status == SDLF_OK;
    return status;
}

sdlf_status plan_fuse_transposed_operands(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; plan->options.mode == SDLF_INFER && i < plan->step_count && status == SDLF_OK; i++)
        if (is_transposition(plan, &plan->steps[i])) status = read_all_in_place(plan, i);
    return status;
}
