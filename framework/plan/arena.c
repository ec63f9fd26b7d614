/* SPDX-License-Identifier: MIT */
/* The memory planning pass: workspaces, lifetimes, in-place operations, and one offset for every buffer in its space.
 *
 * Buffers are placed from the largest to the smallest, each at the lowest offset where it overlaps no buffer that is
 * live at the same time. (Y. Pisarchyk, J. Lee: Efficient memory management for deep neural net inference, 2020: greedy
 * by size.) */
#include "framework/plan/passes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/first_fit.h"

enum { ALIGNMENT = 128 }; /* one cache line of a GPU; two of a CPU */

static int64_t round_up(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static sdlf_status add_workspace(sdlf_plan *plan, sdlf_calculator *calculator, sdlf_operation *operation)
{
    int64_t bytes = sdlf_calculator_workspace(calculator, operation);
    if (bytes <= 0) return SDLF_OK;
    sdlf_tensor workspace;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, SDLF_UINT8, sdlf_shape(bytes), &workspace);
    if (status != SDLF_OK) return status;
    plan->buffers[workspace.buffer].space = plan_space_of(plan, calculator);
    operation->workspace = workspace;
    return SDLF_OK;
}

static bool is_alike(const sdlf_tensor *a, const sdlf_tensor *b)
{
    if (sdlf_tensor_present(a) != sdlf_tensor_present(b)) return false;
    if (!sdlf_tensor_present(a)) return true;
    return a->dtype == b->dtype && a->layout == b->layout && sdlf_shape_equal(a->shape, b->shape) &&
           memcmp(a->stride, b->stride, (size_t)a->shape.rank * sizeof *a->stride) == 0;
}

/* True if both steps are the same operation on other data with the same constants: they then share prepacked operands,
 * as the steps of a recurrent network do. Options are compared byte by byte, including the rest of their union: if that
 * is not zero, equal steps may count as different, and prepack separately. */
static bool shares_prepared(const sdlf_plan *plan, const plan_step *first, const plan_step *second)
{
    const sdlf_operation *a = &first->operation, *b = &second->operation;
    const size_t options = offsetof(sdlf_operation, fill);
    bool same = first->calculator == second->calculator && a->kind == b->kind && a->algorithm == b->algorithm &&
                memcmp((const char *)a + options, (const char *)b + options, sizeof *a - options) == 0;
    for (int i = 0; i < SDLF_MAX_INPUTS && same; i++) {
        same = is_alike(&a->in[i], &b->in[i]);
        if (!same || !sdlf_tensor_present(&a->in[i]) || !plan->buffers[a->in[i].buffer].constant) continue;
        same = a->in[i].buffer == b->in[i].buffer && a->in[i].offset == b->in[i].offset;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS && same; i++) same = is_alike(&a->out[i], &b->out[i]);
    return same;
}

/* The first of the operands that the operation can have prepacked: weights in inference, sparse matrices always. 0:
 * there is none, or steps change one of them. */
static int packed_buffer(const sdlf_plan *plan, const sdlf_operation *operation)
{
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    int first = 0;
    for (int i = SDLF_MAX_INPUTS - 1; i >= 0; i--) {
        const sdlf_tensor *operand = &operation->in[i];
        if (!(type->packed >> i & 1) || !sdlf_tensor_present(operand)) continue;
        if (!plan->buffers[operand->buffer].constant) return 0;
        if (plan->options.mode == SDLF_INFER || type->in[i].sparse) first = operand->buffer;
    }
    return first;
}

/* Prepacks operands that no step changes, once, if the calculator requests it. `before` has for every buffer the last
 * step, counted from 1, that prepacked an operand of it. */
static sdlf_status add_prepared(sdlf_plan *plan, int index, int *before)
{
    plan_step *step = &plan->steps[index];
    sdlf_operation *operation = &step->operation;
    int from = packed_buffer(plan, operation);
    int64_t bytes = from > 0 ? sdlf_calculator_prepared(step->calculator, operation) : 0;
    if (bytes <= 0) return SDLF_OK;
    int *last = &before[from];
    bool host = plan_is_host_space(
        plan, plan_space_of(plan, step->calculator)); /* a device's kernels may keep counters in it */
    if (host && *last > 0 && shares_prepared(plan, &plan->steps[*last - 1], step)) {
        operation->prepared = plan->steps[*last - 1].operation.prepared;
        return SDLF_OK;
    }
    *last = index + 1;
    sdlf_status status = plan_new_tensor(plan, BUFFER_PREPARED, SDLF_UINT8, sdlf_shape(bytes), &operation->prepared);
    if (status == SDLF_OK) plan->buffers[operation->prepared.buffer].space = plan_space_of(plan, step->calculator);
    return status;
}

static sdlf_status add_workspaces(sdlf_plan *plan)
{
    int *before = calloc((size_t)plan->buffer_count + 1, sizeof *before);
    sdlf_status status = before != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        plan_step *step = &plan->steps[i];
        if (plan_step_moves(step)) continue;
        status = add_prepared(plan, i, before);
        if (status == SDLF_OK) status = add_workspace(plan, step->calculator, &step->operation);
    }
    free(before);
    plan_feed *feed = &plan->feed;
    if (status == SDLF_OK && feed->present && plan_holds_data(plan))
        status = add_workspace(plan, feed->calculator, &feed->shuffle);
    return status;
}

static void use(sdlf_plan *plan, const sdlf_tensor *tensor, int step)
{
    if (!sdlf_tensor_present(tensor)) return;
    plan_buffer *buffer = &plan->buffers[tensor->buffer];
    if (buffer->first_use < 0) buffer->first_use = step;
    buffer->last_use = step;
}

static void find_lifetimes(sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) use(plan, &op->in[j], i);
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) use(plan, &op->out[j], i);
        use(plan, &op->workspace, i);
        use(plan, &op->prepared, i);
    }
    use(plan, &plan->feed.shuffle.workspace, 0); /* before the first step, when nothing is live that it could damage */
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        if (buffer->first_use < 0 && buffer->kind != BUFFER_PINNED) continue;
        if (buffer->first_use >= 0 && buffer->kind == BUFFER_ARENA && !plan->options.keep_activations) continue;
        buffer->first_use = 0; /* keeps its offset for the whole plan */
        buffer->last_use = plan->step_count;
    }
}

/* Extends lifetimes over steps that a calculator may run in one launch, as none of them is known to end before another
 * begins: the buffers of one must not overlap the outputs of another. */
static void extend_joined_lifetimes(sdlf_plan *plan)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind != BUFFER_ARENA || buffer->first_use < 0 || buffer->last_use >= plan->step_count) continue;
        int offered = plan_count_offered(plan, buffer->last_use, plan->step_count);
        if (offered > 0) buffer->last_use += offered - 1;
    }
}

/* True if the buffer needs a place in an arena. A float32 parameter in host memory is the model's own, and a feed's
 * data there are the caller's. */
static bool needs_arena(const sdlf_plan *plan, const plan_buffer *buffer)
{
    if (buffer->first_use < 0 || buffer->space < 0 || buffer->alias >= 0) return false;
    bool host = plan_is_host_space(plan, buffer->space), original = buffer->source == (int)(buffer - plan->buffers);
    if (buffer->kind == BUFFER_DATA && host) return false;
    bool kept = buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE;
    if (buffer->kind == BUFFER_SCALE) return !original || plan_reused_buffer(plan, buffer) == NULL;
    if (!kept && buffer->kind != BUFFER_DATA) return true;
    if (kept && host && original && buffer->dtype == SDLF_FLOAT32) return false;
    if (plan->options.reuse == NULL || host) return true;
    const plan_buffer *reused = plan_reused_buffer(plan, buffer);
    return reused != NULL && plan_is_passing_copy(plan->options.reuse, reused); /* not available to other plans */
}

static bool same_strides(const sdlf_tensor *a, const sdlf_tensor *b)
{
    bool last = sdlf_tensor_is_channels_last(a) && sdlf_tensor_is_channels_last(b);
    return last || (sdlf_tensor_is_contiguous(a) && sdlf_tensor_is_contiguous(b));
}

static bool is_same_part(const sdlf_tensor *a, const sdlf_tensor *b)
{
    bool same = a->offset == b->offset && sdlf_shape_equal(a->shape, b->shape);
    for (int axis = 0; axis < a->shape.rank && same; axis++)
        same = a->shape.dim[axis] <= 1 || a->stride[axis] == b->stride[axis];
    return same;
}

/* True if operand `i`'s buffer is also another operand, which may not alias the result or reads it in other order. */
static bool is_read_elsewhere(const sdlf_operation *op, int i)
{
    unsigned may_alias = sdlf_operation_type(op)->may_alias;
    for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
        if (j == i || !sdlf_tensor_present(&op->in[j]) || op->in[j].buffer != op->in[i].buffer) continue;
        if (!(may_alias & 1u << j) || !is_same_part(&op->in[i], &op->in[j])) return true;
    }
    return false;
}

/* Aliases y to x if the operation allows it, x is dead afterwards, and both fill their buffers. */
static void reuse_in_place(sdlf_plan *plan, int index)
{
    const sdlf_operation *op = &plan->steps[index].operation;
    if (plan_step_moves(&plan->steps[index]) || !sdlf_tensor_present(&op->out[0])) return;
    const sdlf_operation_class *type = sdlf_operation_type(op);
    plan_buffer *y = &plan->buffers[op->out[0].buffer];
    if (y->kind != BUFFER_ARENA || y->first_use != index || y->alias >= 0) return;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!(type->may_alias & 1u << i) || !sdlf_tensor_present(&op->in[i])) continue;
        int root = op->in[i].buffer;
        if (plan->buffers[root].kind != BUFFER_ARENA || plan->buffers[root].last_use != index) continue;
        if (op->in[i].dtype != op->out[0].dtype || !same_strides(&op->in[i], &op->out[0]) ||
            !plan_covers_buffer(plan, &op->in[i]) || !plan_covers_buffer(plan, &op->out[0]) ||
            plan->buffers[root].space != y->space)
            continue;
        if (is_read_elsewhere(op, i)) continue;
        while (plan->buffers[root].alias >= 0) root = plan->buffers[root].alias;
        if (plan->buffers[root].bytes < y->bytes) continue;
        y->alias = root;
        if (plan->buffers[root].last_use < y->last_use) plan->buffers[root].last_use = y->last_use;
        return;
    }
}

/* Sort keys include the buffer index, for a deterministic order. */
typedef struct arena_block {
    int64_t bytes;
    int buffer;
} arena_block;

static int larger_first(const void *a, const void *b)
{
    const arena_block *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->buffer - y->buffer;
}

/* Adds a block to the totals of its space. */
static sdlf_status count_block(plan_space *space, int64_t offset, int64_t bytes)
{
    if (offset > INT64_MAX / 2 - bytes || space->unshared > INT64_MAX / 2 - bytes)
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: needs more than 2^62 bytes");
    if (offset + bytes > space->bytes) space->bytes = offset + bytes;
    space->unshared += bytes;
    return SDLF_OK;
}

/* Computes the offsets of all blocks of one space, the largest first. */
static sdlf_status place_blocks(sdlf_plan *plan, int space, const arena_block *blocks, int count)
{
    first_fit *fit = first_fit_create(plan->step_count + 1);
    sdlf_status status = fit != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        plan_buffer *buffer = &plan->buffers[blocks[i].buffer];
        if (buffer->space != space) continue;
        status = first_fit_place(fit, buffer->first_use, buffer->last_use, blocks[i].bytes, &buffer->offset);
        if (status == SDLF_OK) status = count_block(&plan->spaces[space], buffer->offset, blocks[i].bytes);
    }
    if (fit != NULL) plan->looks += first_fit_looks(fit);
    first_fit_free(fit);
    return status;
}

/* Computes the live bytes at each step, as prefix sums of allocations and releases. */
static void count_live(sdlf_plan *plan, const arena_block *blocks, int count)
{
    int64_t live = 0;
    for (int i = 0; i < plan->step_count; i++) plan->steps[i].live = 0;
    for (int i = 0; i < count; i++) {
        const plan_buffer *buffer = &plan->buffers[blocks[i].buffer];
        if (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE || buffer->first_use >= plan->step_count)
            continue;
        plan->steps[buffer->first_use].live += blocks[i].bytes;
        if (buffer->last_use + 1 < plan->step_count) plan->steps[buffer->last_use + 1].live -= blocks[i].bytes;
    }
    for (int i = 0; i < plan->step_count; i++) plan->steps[i].live = live += plan->steps[i].live;
}

sdlf_status plan_assign_offsets(sdlf_plan *plan)
{
    sdlf_status status = add_workspaces(plan);
    if (status == SDLF_OK) status = plan_list_reused(plan);
    if (status != SDLF_OK) return status;
    find_lifetimes(plan);
    plan_find_unpacked_weights(plan);
    if (!plan->options.keep_activations) {
        for (int i = 0; i < plan->step_count; i++) reuse_in_place(plan, i);
    }
    extend_joined_lifetimes(plan);
    arena_block *blocks = malloc((size_t)plan->buffer_count * sizeof *blocks);
    if (blocks == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    int count = 0;
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind == BUFFER_PINNED && buffer->space < 0) buffer->space = 0; /* an input that nothing reads */
        if (needs_arena(plan, buffer)) blocks[count++] = (arena_block){round_up(buffer->bytes), i};
    }
    qsort(blocks, (size_t)count, sizeof *blocks, larger_first);
    for (int i = 0; i < plan->space_count && status == SDLF_OK; i++) status = place_blocks(plan, i, blocks, count);
    count_live(plan, blocks, count);
    free(blocks);
    for (int i = 1; i < plan->buffer_count; i++) {
        int root = i;
        while (plan->buffers[root].alias >= 0) root = plan->buffers[root].alias;
        plan->buffers[i].offset = plan->buffers[root].offset;
    }
    return status;
}
